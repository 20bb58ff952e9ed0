// Whatever a client writes into an object's fields, it is stored or refused, and neither the API nor a controller falls
// over it: sound objects of every kind that has behaviour, with values of the wrong type at random places.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

int Pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); }

struct Api : RestTest {
  void TestBody() override {}
  using RestTest::Ask;
  using RestTest::kernel_;
  using RestTest::Send;
};

struct Sample {
  std::string collection;
  json body;
};

std::vector<Sample> Samples() {
  const json labels = {{"app", "web"}};
  const json pod_spec = {
      {"containers", json::array({{{"name", "c"},
                                   {"image", "x"},
                                   {"env", json::array({{{"name", "A"}, {"value", "b"}}})},
                                   {"ports", json::array({{{"name", "http"}, {"containerPort", 80}}})},
                                   {"resources", {{"limits", {{"cpu", "1"}}}}}}})},
      {"volumes", json::array({{{"name", "v"}, {"emptyDir", json::object()}}})},
      {"nodeName", "node1"}};
  const json pod_template = {{"metadata", {{"labels", labels}}}, {"spec", pod_spec}};
  const auto meta = [](const json& more = json::object()) {
    json out = {{"name", "web"}, {"labels", {{"app", "web"}}}, {"annotations", {{"a", "b"}}}};
    out.update(more);
    return out;
  };
  const json owner = {
      {"ownerReferences",
       json::array(
           {{{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"name", "web"}, {"uid", "1"}, {"controller", true}}})},
      {"finalizers", json::array({"example.com/wait"})}};
  const std::string core = "/api/v1/namespaces/default/", apps = "/apis/apps/v1/namespaces/default/";
  const json workload = {{"replicas", 2}, {"selector", {{"matchLabels", labels}}}, {"template", pod_template}};
  json deployment = workload;
  deployment["strategy"] = {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxSurge", 1}, {"maxUnavailable", "25%"}}}};
  const json status = {{"phase", "Running"},
                       {"podIP", "10.1.0.9"},
                       {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  return {
      {core + "pods", {{"metadata", meta(owner)}, {"spec", pod_spec}, {"status", status}}},
      {core + "services",
       {{"metadata", meta()},
        {"spec",
         {{"type", "LoadBalancer"},
          {"selector", labels},
          {"externalIPs", json::array({"1.2.3.4"})},
          {"ports", json::array({{{"name", "http"}, {"port", 80}, {"targetPort", "http"}, {"protocol", "TCP"}}})}}},
        {"status", {{"loadBalancer", {{"ingress", json::array({{{"ip", "1.2.3.4"}}})}}}}}}},
      {core + "endpoints",
       {{"metadata", meta()},
        {"subsets", json::array({{{"addresses", json::array({{{"ip", "10.0.0.1"}}})},
                                  {"ports", json::array({{{"name", "http"}, {"port", 80}}})}}})}}},
      {core + "secrets",
       {{"metadata", meta({{"annotations", {{"kubernetes.io/service-account.name", "default"}}}})},
        {"type", "kubernetes.io/service-account-token"},
        {"data", {{"a", "Yg=="}}},
        {"stringData", {{"b", "c"}}}}},
      {core + "serviceaccounts", {{"metadata", meta()}, {"secrets", json::array({{{"name", "s"}}})}}},
      {apps + "deployments", {{"metadata", meta()}, {"spec", deployment}}},
      {apps + "replicasets", {{"metadata", meta(owner)}, {"spec", workload}}},
      {"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
       {{"metadata", meta({{"labels", {{"kubernetes.io/service-name", "web"}}}})},
        {"addressType", "IPv4"},
        {"endpoints", json::array({{{"addresses", json::array({"10.0.0.1"})}, {"conditions", {{"ready", true}}}}})},
        {"ports", json::array({{{"name", "http"}, {"port", 80}}})}}},
      {"/apis/rbac.authorization.k8s.io/v1/clusterroles",
       {{"metadata", meta()},
        {"rules", json::array({{{"apiGroups", json::array({""})},
                                {"resources", json::array({"pods"})},
                                {"verbs", json::array({"list"})}}})}}},
      {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       {{"metadata", meta()},
        {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "web"}}},
        {"subjects", json::array({{{"kind", "User"}, {"name", "me"}}})}}},
      {"/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       {{"metadata", {{"name", "things.example.com"}}},
        {"spec",
         {{"group", "example.com"},
          {"scope", "Namespaced"},
          {"names",
           {{"plural", "things"}, {"singular", "thing"}, {"kind", "Thing"}, {"shortNames", json::array({"t"})}}},
          {"versions",
           json::array({{{"name", "v1"},
                         {"served", true},
                         {"storage", true},
                         {"schema",
                          {{"openAPIV3Schema", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}}},
                         {"additionalPrinterColumns",
                          json::array({{{"name", "A"}, {"type", "string"}, {"jsonPath", ".spec.a"}}})}}})}}}}},
      {"/api/v1/nodes",
       {{"metadata", meta()},
        {"status", {{"addresses", json::array({{{"type", "InternalIP"}, {"address", "10.9.9.9"}}})}}}}},
      {"/api/v1/namespaces", {{"metadata", meta({{"finalizers", json::array({"a.b/c"})}})}, {"spec", json::object()}}},
      {"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
       {{"metadata", meta()},
        {"webhooks", json::array({{{"name", "a.b.c"},
                                   {"clientConfig", {{"service", {{"name", "s"}, {"namespace", "n"}}}}},
                                   {"namespaceSelector", {{"matchLabels", labels}}}}})}}},
  };
}

json Strange() {
  switch (Pick(0, 11)) {
    case 0:
      return nullptr;
    case 1:
      return true;
    case 2:
      return -1;
    case 3:
      return 1e300;
    case 4:
      return 18446744073709551615u;
    case 5:
      return "";
    case 6:
      return "text \xf0\x9f\x8c\x8a/..";
    case 7:
      return json::array();
    case 8:
      return json::array({nullptr, 1, "a", json::object()});
    case 9:
      return json::object();
    default:
      return {{"a", {{"b", json::array({1})}}}};
  }
}

void Disturb(json& value) {
  // Most changes go deep.
  if (value.is_structured() && !value.empty() && Pick(0, 6) != 0) {
    auto it = value.begin();
    std::advance(it, Pick(0, static_cast<int>(value.size())));
    return Disturb(*it);
  }
  value = Strange();
}

TEST(HostileBodies, AreStoredOrRefusedAndNobodyFallsOverThem) {
  int stored = 0, refused = 0;
  EXPECT_TRUE(rc::check([&] {
    Api api;
    const std::vector<Sample> samples = Samples();
    for (int step = 0, steps = Pick(1, 25); step < steps; ++step) {
      Sample sample = samples[static_cast<size_t>(Pick(0, static_cast<int>(samples.size())))];
      const std::string one =
          sample.collection + "/" + (sample.collection.ends_with("definitions") ? "things.example.com" : "web");
      for (int i = 0, changes = Pick(0, 3); i < changes; ++i) Disturb(sample.body);
      Answer answer;
      switch (Pick(0, 7)) {
        case 0:
        case 1:
        case 2:
          answer = api.Send("POST", sample.collection, sample.body);
          break;
        case 3:
          answer = api.Send("PUT", one, sample.body);
          break;
        case 4: {
          json applied = sample.body;
          if (applied.is_object()) {
            const std::string kind = api.Send("GET", sample.collection).body.value("kind", "");
            applied["kind"] = kind.substr(0, kind.size() - 4);
            const std::string path = sample.collection;
            applied["apiVersion"] =
                path.starts_with("/api/") ? "v1" : path.substr(6, path.find('/', path.find('/', 6) + 1) - 6);
          }
          answer = api.Send("PATCH", one + "?fieldManager=me&force=true", applied, "application/apply-patch+yaml");
          break;
        }
        case 5:
          answer =
              api.Send("PATCH", one + (Pick(0, 2) == 0 ? "/status" : ""), sample.body,
                       Pick(0, 2) == 0 ? "application/merge-patch+json" : "application/strategic-merge-patch+json");
          break;
        default:
          answer = api.Send("DELETE", one, Pick(0, 3) == 0 ? Strange() : json());
      }
      // What does not fit an apply's schema is 500 in a real one, too.
      const bool untyped = answer.body.is_object() && answer.body.value("message", "").starts_with("failed to create");
      if (answer.code >= 500 && !untyped) RC_FAIL(answer.body.dump());
      RC_ASSERT(answer.code >= 200);
      // Of a path that is nobody's, a server says no more than that.
      if (answer.code >= 400 && !answer.body.is_discarded()) RC_ASSERT(answer.body["kind"] == "Status");
      if (answer.body.is_discarded()) RC_ASSERT(answer.code == 404);
      ++(answer.code < 300 ? stored : refused);
      if (Pick(0, 2) == 0) api.kernel_.RunUntil(api.kernel_.Now() + 2s);
      Request table = Api::Ask("GET", sample.collection);
      table.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
      const int listed = api.Send(table).code;
      RC_ASSERT(listed == 200 || listed == 404);
    }
    api.kernel_.RunUntil(api.kernel_.Now() + 20s);
  }));
  EXPECT_GT(stored, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace wavetank::fakekube::http
