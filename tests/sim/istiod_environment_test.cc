// What istiod's manifests say, and what a kubeconfig shows, in a whole mesh.
#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "core/agent/secret_manager.h"
#include "core/base/json_access.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "sim/agent/pod_agent.h"
#include "sim/mending/installation.h"
#include "sim/world_site.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const json kOwnId = {{"name", "CLUSTER_ID"}, {"value", "cluster1"}};

class IstiodEnvironment : public TwoClusterWorld {
 protected:
  void Begin(const std::string& mend = "", const std::string& profile = "") {
    WorldOptions options = TwoClusters(false);
    if (!profile.empty()) options.profile = profile;
    options.mending = *Mending::Parse(mend);
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(options);
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
  }
  // istiod, told `env`, in cluster1 alone.
  void Istiod(const json& env, json args = json::array({"discovery"})) {
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    Do("install", {{"cluster", "cluster1"}});
    json patch = world_->cluster("cluster1").api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
    json& container = patch["spec"]["template"]["spec"]["containers"][0];
    container["env"] = env;
    container["args"] = std::move(args);
    Do("apply", {{"cluster", "cluster1"}, {"object", patch}});
    world_->RunUntilSettled(world_->Now() + 3min);
  }
  void Sleep() {
    for (const char* file : {"sample", "sleep"}) Apply("cluster1", file);
    world_->RunUntilSettled(world_->Now() + 3min);
  }
  // ConfigMap `istio`, before istiod starts anew with `env`.
  void MeshConfig(const std::string& yaml) {
    Do("apply", {{"cluster", "cluster1"},
                 {"object",
                  {{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"metadata", {{"name", "istio"}, {"namespace", kSystemNamespace}}},
                   {"data", {{"mesh", yaml}}}}}});
  }
  // global.caAddress of the injection values, and a Service of that name before istiod.
  void CaAddress(const std::string& address, const std::string& service) {
    fakekube::ApiServer& api = world_->cluster("cluster1").api();
    json map = api.Get("ConfigMap", {kSystemNamespace, "istio-sidecar-injector"})->body;
    json values = json::parse(map["data"]["values"].get<std::string>());
    values["global"]["caAddress"] = address;
    map["data"]["values"] = values.dump();
    ASSERT_TRUE(api.Apply(map).ok());
    json istiod = api.Get("Service", {kSystemNamespace, "istiod"})->body;
    istiod["metadata"] = {{"name", service}, {"namespace", kSystemNamespace}};
    istiod["spec"].erase("clusterIP");
    istiod["spec"].erase("clusterIPs");
    istiod.erase("status");
    ASSERT_TRUE(api.Apply(istiod).ok());
    world_->RunUntilSettled(world_->Now() + 1min);
  }
  const PodProcess* PodOf(const std::string& app) {
    for (const PodProcess* pod : world_->Pods()) {
      if (pod->app() == app) return pod;
    }
    return nullptr;
  }
  // Both clusters' istiods, without remote Secrets.
  void TwoIstiods(const std::string& mend = "") {
    Begin(mend);
    for (const std::string cluster : {"cluster1", "cluster2"}) {
      Do("cacerts", {{"cluster", cluster}, {"root", "root"}});
      Do("install", {{"cluster", cluster}});
    }
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
  }
  // cluster2's remote Secret in cluster1, its kubeconfig with `from` replaced.
  void SecretWith(const std::string& from, const std::string& to) {
    Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "present"}});
    fakekube::ApiServer& api = world_->cluster("cluster1").api();
    json secret = api.Get("Secret", {kSystemNamespace, "istio-remote-secret-cluster2"})->body;
    std::string config;
    ASSERT_TRUE(absl::Base64Unescape(secret["data"]["cluster2"].get<std::string>(), &config));
    ASSERT_THAT(config, HasSubstr(from));
    secret["data"]["cluster2"] = absl::Base64Escape(absl::StrReplaceAll(config, {{from, to}}));
    ASSERT_TRUE(api.Apply(secret).ok());
    world_->RunUntil(world_->Now() + 1min);
  }
  std::string TokenIn(const std::string& secret) {
    std::string config;
    absl::Base64Unescape(
        Text(At(world_->cluster("cluster1").api().Get("Secret", {kSystemNamespace, secret})->body, "data"), "cluster2"),
        &config);
    const size_t at = config.find("token: \"") + 8;
    return config.substr(at, config.find('"', at) - at);
  }
};

TEST_F(IstiodEnvironment, ItsClusterIdIsTheManifests) {
  Begin();
  Istiod(json::array({{{"name", "CLUSTER_ID"}, {"value", "west"}}}));
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().options().cluster_id.str(), "west");
}

TEST_F(IstiodEnvironment, WithoutClusterIdItIsKubernetes) {
  Begin();
  Istiod(json::array({{{"name", "POD_NAMESPACE"}, {"value", "istio-system"}}}));
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().options().cluster_id.str(), "Kubernetes");
}

// Every installation tells its istiod more than a switch.
TEST_F(IstiodEnvironment, ASwitchAloneLeavesTheRestToBeFilledIn) {
  Begin();
  Istiod(json::array({{{"name", "PILOT_TRACE_SAMPLING"}, {"value", "1"}}}));
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().options().cluster_id.str(), "cluster1");
  EXPECT_THAT(world_->MendedLines(), Contains(HasSubstr("mended clusterID (cluster1)")));
}

TEST_F(IstiodEnvironment, AnIstiodThatIsToldNothingIsMendedAndThatIsSaid) {
  Begin();
  Istiod(json::array());
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().options().cluster_id.str(), "cluster1");
  EXPECT_THAT(world_->MendedLines(), Contains(HasSubstr("mended clusterID (cluster1)")));
}

TEST_F(IstiodEnvironment, ProxiesOfAnotherClusterIdAreRefusedAndSayWhy) {
  Begin();
  Istiod(json::array({{{"name", "CLUSTER_ID"}, {"value", "west"}}}));
  Sleep();
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("rpc error: code = Unauthenticated")));
}

TEST_F(IstiodEnvironment, LimitsFollowFromTheProcessorsSince121) {
  struct Case {
    const char* profile;
    const char* throttle;
    int pushes, streams;
  };
  // Of two processors: 15 + 5 * 2.
  for (const Case& each : {Case{"istio-1.18", "", 100, 25}, Case{"istio-1.30", "", 25, 25},
                           Case{"istio-1.30", "0", 25, 25}, Case{"istio-1.30", "7", 7, 25}}) {
    Begin("", each.profile);
    json env = json::array({{{"name", "CLUSTER_ID"}, {"value", "cluster1"}}});
    if (*each.throttle != '\0') env.push_back({{"name", "PILOT_PUSH_THROTTLE"}, {"value", each.throttle}});
    Istiod(env);
    const pilot::IstiodOptions& options = world_->IstiodOf("cluster1")->istiod().options();
    EXPECT_EQ(options.push_throttle, each.pushes) << each.profile << " " << each.throttle;
    EXPECT_EQ(options.requests_per_second, each.streams) << each.profile << " " << each.throttle;
  }
}

TEST_F(IstiodEnvironment, WithoutACaServerNoPodIsAdmitted) {
  Begin();
  Istiod(json::array(
      {{{"name", "CLUSTER_ID"}, {"value", "cluster1"}}, {{"name", "ENABLE_CA_SERVER"}, {"value", "false"}}}));
  Sleep();
  EXPECT_FALSE(world_->IstiodOf("cluster1")->istiod().options().enable_ca);
  EXPECT_THAT(world_->Unready(), Contains(HasSubstr("was not admitted: failed calling webhook")));
}

TEST_F(IstiodEnvironment, AReferenceToNothingKeepsItDown) {
  Begin();
  Istiod(
      json::array({{{"name", "CLUSTER_ID"}, {"valueFrom", {{"configMapKeyRef", {{"name", "none"}, {"key", "k"}}}}}}}));
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("couldn't find key k in ConfigMap istio-system/none")));
}

TEST_F(IstiodEnvironment, ItsRevisionDecidesWhichWebhookItPatches) {
  Begin();
  Istiod(json::array({{{"name", "CLUSTER_ID"}, {"value", "cluster1"}}, {{"name", "REVISION"}, {"value", "canary"}}}));
  for (const kube::ObjectRef& configuration : world_->cluster("cluster1").api().List("MutatingWebhookConfiguration")) {
    EXPECT_TRUE(Text(At(Items(At(configuration->body, "webhooks"))[0], "clientConfig"), "caBundle").empty());
  }
}

// istiod: pilot/pkg/bootstrap/sidecarinjector.go: without a name of it nobody patches the configuration.
TEST_F(IstiodEnvironment, WithoutAConfigurationsNameItPatchesNoWebhook) {
  Begin();
  Istiod(json::array({kOwnId, {{"name", "INJECTION_WEBHOOK_CONFIG_NAME"}, {"value", ""}}}));
  for (const kube::ObjectRef& configuration : world_->cluster("cluster1").api().List("MutatingWebhookConfiguration")) {
    EXPECT_TRUE(Text(At(Items(At(configuration->body, "webhooks"))[0], "clientConfig"), "caBundle").empty());
  }
  Sleep();
  EXPECT_THAT(world_->Unready(),
              Contains(AllOf(HasSubstr("https://istiod.istio-system.svc:443/inject"),
                             HasSubstr("x509: certificate signed by unknown authority"), HasSubstr("caBundle"))));
}

TEST_F(IstiodEnvironment, AGoodKubeconfigIsRead) {
  TwoIstiods();
  SecretWith("kind: Config", "kind: Config");
  EXPECT_THAT(world_->Complaints(), IsEmpty());
  EXPECT_THAT(world_->MendedLines(), Contains(HasSubstr("mended rbac (cluster2)")));
}

TEST_F(IstiodEnvironment, ATokenOfNobodyIsUnauthorized) {
  TwoIstiods();
  Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "present"}});
  SecretWith(TokenIn("istio-remote-secret-cluster2"), "garbage");
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("cannot read cluster cluster2: Unauthorized")));
}

TEST_F(IstiodEnvironment, WithoutARoleNothingIsRead) {
  TwoIstiods("istiod,clusterID,roots");
  SecretWith("kind: Config", "kind: Config");
  EXPECT_THAT(world_->Complaints(),
              Contains(AllOf(HasSubstr("is forbidden: User "),
                             HasSubstr("system:serviceaccount:istio-system:istio-reader-service-account"))));
}

TEST_F(IstiodEnvironment, ARoleThatIsBoundDecides) {
  TwoIstiods();
  const json account = {
      {"kind", "ServiceAccount"}, {"name", "istio-reader-service-account"}, {"namespace", "istio-system"}};
  Do("apply", {{"cluster", "cluster2"},
               {"object",
                {{"apiVersion", "rbac.authorization.k8s.io/v1"},
                 {"kind", "ClusterRole"},
                 {"metadata", {{"name", "reader"}}},
                 {"rules", json::array({{{"apiGroups", json::array({""})},
                                         {"resources", json::array({"pods"})},
                                         {"verbs", json::array({"list", "watch"})}}})}}}});
  Do("apply", {{"cluster", "cluster2"},
               {"object",
                {{"apiVersion", "rbac.authorization.k8s.io/v1"},
                 {"kind", "ClusterRoleBinding"},
                 {"metadata", {{"name", "reader"}}},
                 {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "reader"}}},
                 {"subjects", json::array({account})}}}});
  SecretWith("kind: Config", "kind: Config");
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("is forbidden")));
  EXPECT_THAT(world_->Complaints(), Not(Contains(HasSubstr("cannot list resource \"pods\""))));
}

TEST_F(IstiodEnvironment, AReadersRoleThatIsThereAndBoundToNobodyIsNotGiven) {
  TwoIstiods();
  Do("apply", {{"cluster", "cluster2"},
               {"object",
                {{"apiVersion", "rbac.authorization.k8s.io/v1"},
                 {"kind", "ClusterRole"},
                 {"metadata", {{"name", "istio-reader-clusterrole-istio-system"}}},
                 {"rules", json::array({{{"apiGroups", json::array({"*"})},
                                         {"resources", json::array({"*"})},
                                         {"verbs", json::array({"*"})}}})}}}});
  SecretWith("kind: Config", "kind: Config");
  EXPECT_THAT(world_->Complaints(),
              Contains(AllOf(HasSubstr("is forbidden: User "),
                             HasSubstr("system:serviceaccount:istio-system:istio-reader-service-account"))));
}

// The rules of istiod's ClusterRole in its chart, and the verbs and resources of one taken away.
json RulesOfIstiodWithout(const std::string& resource, const std::string& verb) {
  json rules = json::array();
  const auto rule = [&](const std::string& group, const json& resources, const json& verbs) {
    for (const json& each : resources) {
      json left = json::array();
      for (const json& one : verbs) {
        if (each != resource || one != verb) left.push_back(one);
      }
      rules.push_back({{"apiGroups", {group}}, {"resources", {each}}, {"verbs", left}});
    }
  };
  const json read = {"get", "list", "watch"};
  rule("", {"pods", "nodes", "services", "namespaces", "endpoints", "secrets"}, read);
  rule("", {"configmaps"}, {"create", "get", "list", "watch", "update"});
  rule("discovery.k8s.io", {"endpointslices"}, read);
  rule("apiextensions.k8s.io", {"customresourcedefinitions"}, read);
  rule("networking.k8s.io", {"ingresses", "ingressclasses"}, read);
  rule("admissionregistration.k8s.io", {"mutatingwebhookconfigurations"}, {"get", "list", "watch", "update", "patch"});
  rule("authentication.k8s.io", {"tokenreviews"}, {"create"});
  rule("authorization.k8s.io", {"subjectaccessreviews"}, {"create"});
  rule("coordination.k8s.io", {"leases"}, {"get", "update", "patch", "create"});
  for (const char* group : {"security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io"})
    rule(group, {"*"}, read);
  return rules;
}

class IstiodRights : public IstiodEnvironment {
 protected:
  // Before istiod: its role, but for that right, bound to `account`.
  void RoleWithout(const std::string& resource, const std::string& verb, const std::string& account = "istiod") {
    const auto apply = [this](const char* kind, json rest) {
      rest["apiVersion"] = "rbac.authorization.k8s.io/v1";
      rest["kind"] = kind;
      rest["metadata"] = {{"name", "istiod-clusterrole-istio-system"}};
      Do("apply", {{"cluster", "cluster1"}, {"object", std::move(rest)}});
    };
    apply("ClusterRole", {{"rules", RulesOfIstiodWithout(resource, verb)}});
    apply(
        "ClusterRoleBinding",
        {{"roleRef",
          {{"apiGroup", "rbac.authorization.k8s.io"},
           {"kind", "ClusterRole"},
           {"name", "istiod-clusterrole-istio-system"}}},
         {"subjects", json::array({{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", "istio-system"}}})}});
  }
  bool Ready() { return world_->IstiodOf("cluster1")->istiod().Ready(); }
};

TEST_F(IstiodRights, ThoseOfTheChartAreEnough) {
  Begin();
  RoleWithout("", "");
  Istiod(json::array({kOwnId}));
  Sleep();
  EXPECT_TRUE(Ready());
  EXPECT_THAT(world_->Complaints(), IsEmpty());
  EXPECT_THAT(world_->Unready(), IsEmpty());
}

TEST_F(IstiodRights, AnInformerThatMayNotListKeepsItFromGettingReady) {
  for (const char* resource : {"secrets", "endpointslices", "mutatingwebhookconfigurations"}) {
    Begin();
    RoleWithout(resource, "list");
    Istiod(json::array({kOwnId}));
    EXPECT_FALSE(Ready()) << resource;
    EXPECT_THAT(world_->Complaints(),
                Contains(AllOf(HasSubstr("is forbidden: User \"system:serviceaccount:istio-system:istiod\""),
                               HasSubstr(fmt::format("cannot list resource \"{}\"", resource)))))
        << resource;
  }
}

TEST_F(IstiodRights, WithoutDefinitionsItDoesNotStart) {
  Begin();
  RoleWithout("customresourcedefinitions", "list");
  Istiod(json::array({kOwnId}));
  EXPECT_THAT(world_->Complaints(),
              Contains(AllOf(HasSubstr("does not start: failed to create discovery service: error initializing config "
                                       "controller: customresourcedefinitions.apiextensions.k8s.io is forbidden"))));
}

TEST_F(IstiodRights, WithoutTokenReviewsNobodyIsBelieved) {
  Begin();
  RoleWithout("tokenreviews", "create");
  Istiod(json::array({kOwnId}));
  Sleep();
  EXPECT_TRUE(Ready());
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("rpc error: code = Unauthenticated")));
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("cannot create resource \"tokenreviews\"")));
}

TEST_F(IstiodRights, WhoMayNotLockLeadsNothing) {
  Begin();
  RoleWithout("configmaps", "create");
  Istiod(json::array({kOwnId}));
  EXPECT_TRUE(Ready());
  EXPECT_FALSE(world_->IstiodOf("cluster1")->istiod().Leads("istio-namespace-controller-election"));
  EXPECT_EQ(world_->cluster("cluster1").api().Get("ConfigMap", {"istio-system", "istio-ca-root-cert"}), nullptr);
}

TEST_F(IstiodRights, ARoleOfAnotherAccountIsNone) {
  Begin();
  RoleWithout("", "", "istiod-service-account");
  Istiod(json::array({kOwnId}));
  EXPECT_FALSE(Ready());
}

TEST_F(IstiodEnvironment, AnUnknownServerStandsForTheClusterOfThatNameOnlyIfMended) {
  TwoIstiods("istiod,clusterID,roots,rbac");
  SecretWith("https://cluster2.kubernetes.example:6443", "https://203.0.113.9:6443");
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("no API server answers at https://203.0.113.9:6443")));
}

TEST_F(IstiodEnvironment, AnotherCaIsNotTrusted) {
  TwoIstiods();
  const std::string other = absl::Base64Escape(world_->FindSite("cluster1")->ca_pem());
  const std::string right = absl::Base64Escape(world_->FindSite("cluster2")->ca_pem());
  SecretWith(right, other);
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("x509: certificate signed by unknown authority")));
}

TEST_F(IstiodEnvironment, TheHostOfDiscoveryAddressIsInItsCertificate) {
  Begin();
  MeshConfig("defaultConfig: {discoveryAddress: \"istiod-1-11-4.istio-system.svc:15012\"}\n");
  Istiod(json::array({kOwnId}));
  const auto* serving = world_->IstiodOf("cluster1")->istiod().serving_certificate();
  ASSERT_NE(serving, nullptr);
  EXPECT_EQ(serving->chain.front()->sans().dns_names.front(), "istiod-1-11-4.istio-system.svc");
}

TEST_F(IstiodEnvironment, CertificatesComeFromWhereCaAddrSays) {
  Begin();
  Istiod(json::array({kOwnId, {{"name", "ISTIOD_CUSTOM_HOST"}, {"value", "ca.istio-system.svc"}}}));
  CaAddress("ca.istio-system.svc:15012", "ca");
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
  EXPECT_EQ(PodOf("sleep")->bootstrap()->ca_address, "ca.istio-system.svc:15012");
  EXPECT_NE(PodOf("sleep")->agent()->certificate(), nullptr);
}

TEST_F(IstiodEnvironment, ACaAddrThatNobodyHasLeavesThePodWithoutACertificate) {
  Begin();
  Istiod(json::array({kOwnId}));
  CaAddress("ca.nowhere.svc:15012", "ca");
  Sleep();
  EXPECT_THAT(world_->Unready(), ElementsAre(AllOf(HasSubstr("create certificate: rpc error: code = Unavailable"),
                                                   HasSubstr("ca.nowhere.svc"))));
}

TEST_F(IstiodEnvironment, ACaUnderANameThatItsCertificateLacksIsNotBelieved) {
  Begin();
  Istiod(json::array({kOwnId}));
  CaAddress("ca.istio-system.svc:15012", "ca");
  Sleep();
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("not ca.istio-system.svc")));
}

TEST_F(IstiodEnvironment, AnAgentSaysInItsLogWhyItDoesNotBelieveACertificate) {
  Begin();
  Istiod(json::array({kOwnId}));
  CaAddress("ca.istio-system.svc:15012", "ca");
  Sleep();
  std::vector<std::string> lines;
  for (const auto& [at, line] : PodOf("sleep")->pod_agent()->log()) lines.push_back(line);
  EXPECT_THAT(lines,
              Contains(AllOf(HasSubstr("\twarn\tsds\tfailed to warm certificate: "),
                             HasSubstr("x509: certificate is valid for "), HasSubstr(", not ca.istio-system.svc"))));
}

TEST_F(IstiodEnvironment, OnThePlaintextPortNobodyGetsACertificate) {
  Begin();
  Istiod(json::array({kOwnId}));
  CaAddress("ca.istio-system.svc:15010", "ca");
  Sleep();
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("unknown service istio.v1.auth.IstioCertificateService")));
}

TEST_F(IstiodEnvironment, AnAgentThatWantsTlsOfThePlaintextPortIsToldWhatItGot) {
  Begin();
  MeshConfig(R"({"defaultConfig": {"discoveryAddress": "istiod.istio-system.svc:15010"}})");
  Istiod(json::array({kOwnId}));
  Sleep();
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("tls: first record does not look like a TLS handshake")));
}

TEST_F(IstiodEnvironment, EndpointsAreReadWhereSlicesAreSwitchedOff) {
  Begin();
  Istiod(json::array({kOwnId, {{"name", "PILOT_USE_ENDPOINT_SLICE"}, {"value", "false"}}}));
  for (const char* file : {"sample", "helloworld-service", "helloworld-v1", "sleep"}) Apply("cluster1", file);
  world_->RunUntilSettled(world_->Now() + 3min);
  // Slices alone change: whoever reads Endpoints does not see it.
  fakekube::ApiServer& api = world_->cluster("cluster1").api();
  const auto endpoints = [&] {
    const auto* shards = world_->IstiodOf("cluster1")
                             ->istiod()
                             .discovery()
                             .endpoints()
                             .Find("helloworld.sample.svc.cluster.local", "sample");
    size_t count = 0;
    if (shards != nullptr) {
      for (const auto& [shard, list] : shards->shards) count += list->size();
    }
    return count;
  };
  EXPECT_EQ(endpoints(), 1u);
  Do("patch", {{"cluster", "cluster1"},
               {"kind", "Deployment"},
               {"namespace", "sample"},
               {"name", "helloworld-v1"},
               {"patch", {{"spec", {{"replicas", 3}}}}}});
  world_->RunUntilSettled(world_->Now() + 3min);
  EXPECT_EQ(endpoints(), 3u);
  json mine = {
      {"apiVersion", "discovery.k8s.io/v1"},
      {"kind", "EndpointSlice"},
      {"metadata",
       {{"name", "by-hand"}, {"namespace", "sample"}, {"labels", {{"kubernetes.io/service-name", "helloworld"}}}}},
      {"addressType", "IPv4"},
      {"ports", {{{"name", "http"}, {"port", 5000}}}},
      {"endpoints", {{{"addresses", {"10.9.9.9"}}}}}};
  ASSERT_TRUE(api.Apply(mine).ok());
  world_->RunUntil(world_->Now() + 10s);
  EXPECT_EQ(endpoints(), 3u);
}

// A root that no certificate of this mesh comes from.
std::string StrangeRoot() { return x509::MakeRootCa(7, "elsewhere", Time{}, 24h * 3650).root->ToPem(); }

std::string MeshWithRoots(const std::vector<std::string>& roots, bool dynamic) {
  json mesh = {{"caCertificates", json::array()}};
  for (const std::string& root : roots) mesh["caCertificates"].push_back({{"pem", root}});
  if (dynamic) mesh["defaultConfig"] = {{"proxyMetadata", {{"PROXY_CONFIG_XDS_AGENT", "true"}}}};
  return mesh.dump();
}

TEST_F(IstiodEnvironment, RootsOfTheMeshReachAgentsAtOnceWithMultiRoot) {
  Begin();
  MeshConfig(MeshWithRoots({StrangeRoot()}, true));
  Istiod(json::array({kOwnId, {{"name", "ISTIO_MULTIROOT_MESH"}, {"value", "true"}}}));
  Sleep();
  ASSERT_NE(PodOf("sleep"), nullptr);
  const std::string first = PodOf("sleep")->agent()->roots_pem();
  EXPECT_THAT(first, HasSubstr(StrangeRoot()));
  // One that is taken away is forgotten without a new certificate.
  MeshConfig(MeshWithRoots({}, true));
  world_->RunUntilSettled(world_->Now() + 10s);
  EXPECT_THAT(PodOf("sleep")->agent()->roots_pem(), Not(HasSubstr(StrangeRoot())));
  EXPECT_EQ(PodOf("sleep")->agent()->csr_count(), 1);
}

TEST_F(IstiodEnvironment, WithoutEitherSwitchTheyReachNobody) {
  for (const bool agent : {true, false}) {
    Begin();
    MeshConfig(MeshWithRoots({StrangeRoot()}, agent));
    json env = json::array({kOwnId});
    if (!agent) env.push_back({{"name", "ISTIO_MULTIROOT_MESH"}, {"value", "true"}});
    Istiod(env);
    Sleep();
    ASSERT_NE(PodOf("sleep"), nullptr);
    EXPECT_THAT(world_->Unready(), IsEmpty());
    EXPECT_THAT(PodOf("sleep")->agent()->roots_pem(), Not(HasSubstr(StrangeRoot())));
  }
}

TEST_F(IstiodEnvironment, ARootThatIsNoneKeepsItDown) {
  Begin();
  MeshConfig("caCertificates: [{pem: nonsense}]\n");
  Istiod(json::array({kOwnId, {{"name", "ISTIO_MULTIROOT_MESH"}, {"value", "true"}}}));
  EXPECT_THAT(world_->Complaints(), Contains(HasSubstr("a root of the trust bundle")));
}

TEST_F(IstiodEnvironment, AProxyOfAnAliasIsOfTheClusterThatItStandsFor) {
  TwoIstiods("istiod,clusterID,roots,rbac");
  SecretWith("kind: Config", "kind: Config");
  json patch = world_->cluster("cluster1").api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
  json& container = patch["spec"]["template"]["spec"]["containers"][0];
  container["env"] = json::array({{{"name", "CLUSTER_ID"}, {"value", "west"}}});
  container["args"] = json::array({"discovery", "--clusterAliases=cluster1=west,old=west"});
  Do("apply", {{"cluster", "cluster1"}, {"object", patch}});
  world_->RunUntilSettled(world_->Now() + 3min);
  const std::map<pilot::ClusterId, pilot::ClusterId> expected = {
      {pilot::ClusterId("cluster1"), pilot::ClusterId("west")}, {pilot::ClusterId("old"), pilot::ClusterId("west")}};
  EXPECT_EQ(world_->IstiodOf("cluster1")->istiod().options().cluster_aliases, expected);
}

constexpr const char* kAutoRegister = "defaultConfig: {proxyMetadata: {ISTIO_META_AUTO_REGISTER_GROUP: machines}}\n";

json MachinesGroup() {
  return {{"apiVersion", "networking.istio.io/v1alpha3"},
          {"kind", "WorkloadGroup"},
          {"metadata", {{"name", "machines"}, {"namespace", "sample"}}},
          {"spec",
           {{"metadata", {{"labels", {{"tier", "back"}}}, {"annotations", {{"note", "yes"}}}}},
            {"template", {{"serviceAccount", "sleep"}, {"weight", 7}}}}}};
}

TEST_F(IstiodEnvironment, AProxyThatNamesAGroupRegistersItselfAndItsEntryGoesWithIt) {
  Begin();
  MeshConfig(kAutoRegister);
  Istiod(json::array({kOwnId}));
  Apply("cluster1", "sample");
  Do("apply", {{"cluster", "cluster1"}, {"object", MachinesGroup()}});
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
  const fakekube::ApiServer& api = world_->cluster("cluster1").api();
  const std::string address = Text(At(PodOf("sleep")->pod()->body, "status"), "podIP");
  const auto entries = api.List("WorkloadEntry", "sample");
  ASSERT_EQ(entries.size(), 1U);
  const kube::Object& entry = *entries.front();
  EXPECT_THAT(entry.meta.name, testing::StartsWith("machines-" + address));
  EXPECT_EQ(At(entry.body, "spec").at("address"), address);
  EXPECT_EQ(At(entry.body, "spec").at("weight"), 7);
  EXPECT_EQ(At(entry.body, {"spec", "labels"}).at("tier"), "back");
  EXPECT_EQ(At(entry.body, {"spec", "labels"}).at("app"), "sleep");
  EXPECT_EQ(entry.meta.annotations.at("note"), "yes");
  EXPECT_EQ(entry.meta.annotations.at("istio.io/autoRegistrationGroup"), "machines");
  EXPECT_TRUE(entry.meta.annotations.contains("istio.io/connectedAt"));
  EXPECT_EQ(At(entry.body, "metadata").at("ownerReferences")[0].at("kind"), "WorkloadGroup");
  // It leaves for good: after the grace period nothing is left of it.
  ASSERT_TRUE(
      world_->cluster("cluster1").api().Patch("Deployment", {"sample", "sleep"}, {{"spec", {{"replicas", 0}}}}).ok());
  world_->RunUntilSettled(world_->Now() + 1min);
  world_->RunUntil(world_->Now() + 15s);
  EXPECT_THAT(api.List("WorkloadEntry", "sample"), IsEmpty());
}

TEST_F(IstiodEnvironment, ConnectionsMayLiveUntilTheEndOfTime) {
  for (const char* age : {"2562047h47m16.854775807s", "2500000h"}) {
    Begin();
    Istiod(json::array({kOwnId}), json::array({"discovery", "--keepaliveMaxServerConnectionAge", age}));
    Sleep();
    EXPECT_THAT(world_->Unready(), IsEmpty()) << age;
  }
}

TEST_F(IstiodEnvironment, ItsEntryStaysAcrossARestartOfIstiod) {
  Begin();
  MeshConfig(kAutoRegister);
  Istiod(json::array({kOwnId, {{"name", "PILOT_WORKLOAD_ENTRY_GRACE_PERIOD"}, {"value", "60s"}}}));
  Apply("cluster1", "sample");
  Do("apply", {{"cluster", "cluster1"}, {"object", MachinesGroup()}});
  Sleep();
  const fakekube::ApiServer& api = world_->cluster("cluster1").api();
  ASSERT_EQ(api.List("WorkloadEntry", "sample").size(), 1U);
  const std::string first = api.List("WorkloadEntry", "sample").front()->meta.annotations.at("istio.io/connectedAt");
  Do("kill", {{"cluster", "cluster1"}, {"namespace", "istio-system"}, {"app", "istiod"}});
  world_->RunUntilSettled(world_->Now() + 3min);
  world_->RunUntil(world_->Now() + 3min);
  ASSERT_EQ(api.List("WorkloadEntry", "sample").size(), 1U);
  EXPECT_NE(api.List("WorkloadEntry", "sample").front()->meta.annotations.at("istio.io/connectedAt"), first);
}

TEST_F(IstiodEnvironment, WithoutItsGroupAProxyIsRefused) {
  Begin();
  MeshConfig(kAutoRegister);
  Istiod(json::array({kOwnId}));
  Sleep();
  EXPECT_THAT(world_->Unready(),
              ElementsAre(HasSubstr("code = FailedPrecondition desc = auto-registration WorkloadEntry of sleep-")));
}

TEST_F(IstiodEnvironment, AnEntryOfAnotherServiceAccountIsNotItsOwn) {
  Begin();
  MeshConfig(kAutoRegister);
  Istiod(json::array({kOwnId}));
  Apply("cluster1", "sample");
  json group = MachinesGroup();
  group["spec"]["template"]["serviceAccount"] = "somebody";
  Do("apply", {{"cluster", "cluster1"}, {"object", group}});
  Sleep();
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("service account mismatch: \"sleep\" vs \"somebody\"")));
}

TEST_F(IstiodEnvironment, SwitchedOffNobodyIsRegistered) {
  Begin();
  MeshConfig(kAutoRegister);
  Istiod(json::array({kOwnId, {{"name", "PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION"}, {"value", "false"}}}));
  Sleep();
  EXPECT_THAT(world_->Unready(), IsEmpty());
  EXPECT_THAT(world_->cluster("cluster1").api().List("WorkloadEntry", "sample"), IsEmpty());
}

TEST_F(IstiodEnvironment, ImageAutoIsPulledByNobody) {
  Begin();
  Istiod(json::array());
  Do("apply", {{"cluster", "cluster1"},
               {"object",
                {{"apiVersion", "v1"},
                 {"kind", "Pod"},
                 {"metadata", {{"name", "gateway"}, {"namespace", "edge"}}},
                 {"spec", {{"containers", json::array({{{"name", "istio-proxy"}, {"image", "auto"}}})}}}}}});
  world_->RunUntil(world_->Now() + 10s);
  EXPECT_THAT(world_->Unready(), Contains(HasSubstr("Failed to pull image \"auto\"")));
}

}  // namespace
}  // namespace wavetank::sim
