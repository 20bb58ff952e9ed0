#include "fakes/kube/store/api_server.h"

#include "core/base/status.h"
#include "fakes/kube/client/client.h"
#include "fakes/kube/merge/patch.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using ::testing::HasSubstr;

constexpr const char* kKnative = "Service.serving.knative.dev";

json Knative(const char* name) {
  return {{"apiVersion", "serving.knative.dev/v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"namespace", "sample"}}},
          {"spec", {{"traffic", 100}}}};
}

TEST_F(ClusterTest, KindsOfOneNameInTwoApiGroupsAreApart) {
  ApplyText(kWeb);
  const int64_t before = api().resource_version();
  std::string seen;
  std::unique_ptr<kube::Client> client = MakeClient(api(), host_, "watcher", 1, {});
  std::unique_ptr<kube::Watch> watch =
      client->StartWatch(kube::kinds::kService, {}, before,
                         {[&](const kube::WatchEvent& e) { seen += e.object->api_version + " "; }, nullptr});
  ASSERT_TRUE(api().Apply(Knative("web")).ok());
  EXPECT_EQ(api().Get("Service", {"sample", "web"})->api_version, "v1");
  EXPECT_EQ(api().Get(kKnative, {"sample", "web"})->body["spec"], (json{{"traffic", 100}}));
  EXPECT_EQ(api().List("Service", "sample").size(), 1u);
  ASSERT_TRUE(api().Delete("Service", {"sample", "web"}).ok());
  EXPECT_NE(api().Get(kKnative, {"sample", "web"}), nullptr);
  kernel_.RunUntil(kernel_.Now() + 1s);
  EXPECT_EQ(seen, "v1 ");  // the core Service's end, nothing of the other
}

// Versions that were written over are packed; a watch that starts before them sees what a live one saw.
TEST_F(ClusterTest, AWatchFromThePastSeesEveryVersionAsItWas) {
  using Seen = std::vector<std::pair<json, json>>;  // object, previous
  const auto watch = [this](int64_t after, Seen& seen) {
    return api().StartWatch("ConfigMap", after,
                            {[&seen](const Change& change) {
                               seen.emplace_back(change.object->body,
                                                 change.previous == nullptr ? json() : change.previous->body);
                             },
                             nullptr});
  };
  const int64_t start = api().resource_version();
  Seen live, late;
  ASSERT_TRUE(watch(start, live).ok());
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        api()
            .Apply({{"apiVersion", "v1"},
                    {"kind", "ConfigMap"},
                    {"metadata", {{"name", "m" + std::to_string(i % 3)}, {"namespace", "default"}}},
                    {"data", {{"n", std::to_string(i)}, {"bytes", "\xff\x01"}, {"k" + std::to_string(i % 7), ""}}},
                    {i % 2 == 0 ? "even" : "odd", {{"in", {{"list", json::array({i % 4, json::object()})}}}}},
                    {"null", i % 5 == 0 ? json() : json::object({{"null", nullptr}})},
                    {"numbers", {0, i % 3 == 0 ? json(1) : json(1.0), 1.5, uint64_t{1} << 63}}})
            .ok());
    if (i % 50 == 49) {
      ASSERT_TRUE(api().Delete("ConfigMap", {"default", "m0"}).ok());
    }
  }
  ASSERT_TRUE(watch(start, late).ok());
  EXPECT_EQ(late.size(), 306u);
  EXPECT_EQ(json(late).dump(-1, ' ', true, json::error_handler_t::replace),
            json(live).dump(-1, ' ', true, json::error_handler_t::replace));
}

TEST_F(ClusterTest, AKindThatTwoGroupsHoldMustBeNamedWithItsGroup) {
  for (const char* group : {"a.example", "b.example"}) {
    ASSERT_TRUE(api()
                    .Apply({{"apiVersion", std::string(group) + "/v1"},
                            {"kind", "Widget"},
                            {"metadata", {{"name", "w"}, {"namespace", "default"}}}})
                    .ok());
  }
  const absl::Status refused = api().Delete("Widget", {"default", "w"});
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(Message(refused)), HasSubstr("write Widget.a.example or Widget.b.example"));
  EXPECT_TRUE(api().Delete("Widget.b.example", {"default", "w"}).ok());
  EXPECT_TRUE(api().Delete("Widget", {"default", "w"}).ok());
}

TEST_F(ClusterTest, ANewObjectOfAnOldNameHasAnotherUidAndTheOldOnesWritersConflict) {
  ApplyText(kWeb);
  const ObjectRef old = api().Get("Service", {"sample", "web"});
  ASSERT_TRUE(api().Delete("Service", {"sample", "web"}).ok());
  EXPECT_TRUE(absl::IsAborted(api().Apply(old->body).status()));
  ApplyText(kWeb);
  EXPECT_NE(api().Get("Service", {"sample", "web"})->meta.uid, old->meta.uid);
  EXPECT_TRUE(absl::IsAborted(api().Apply(old->body).status()));
}

TEST_F(ClusterTest, GenerationCountsChangesOfTheSpecOfWhatHasOne) {
  ApplyText(kWeb);
  for (const auto& [kind, name, change] :
       {std::tuple("Deployment", "web", json{{"minReadySeconds", 1}}),
        std::tuple("VirtualService.networking.istio.io", "web", json{{"hosts", {"web"}}})}) {
    const auto generation = [this, kind = kind, name = name] {
      return api().Get(kind, {"sample", name})->meta.generation;
    };
    if (api().Get(kind, {"sample", name}) == nullptr) {
      ApplyText(
          "apiVersion: networking.istio.io/v1beta1\nkind: VirtualService\nmetadata: {name: web, namespace: sample}\n"
          "spec: {}\n");
    }
    const int64_t before = generation();
    EXPECT_GE(before, 1);
    ASSERT_TRUE(api().Patch(kind, {"sample", name}, {{"metadata", {{"labels", {{"x", "y"}}}}}}).ok());
    Settle();  // statuses are written
    EXPECT_EQ(generation(), before) << kind;
    ASSERT_TRUE(api().Patch(kind, {"sample", name}, {{"spec", change}}).ok());
    EXPECT_EQ(generation(), before + 1) << kind;
  }
  ASSERT_TRUE(api().Patch("Service", {"sample", "web"}, {{"spec", {{"sessionAffinity", "ClientIP"}}}}).ok());
  for (const char* kind : {"Service", "Pod", "Namespace", "Endpoints"}) {
    for (const ObjectRef& object : api().List(kind))
      EXPECT_FALSE(object->body["metadata"].contains("generation")) << object->Key();
  }
}

// Seen with controller-runtime: whose controller notes the generation in the status of an object that has no spec would
// never come to an end.
TEST_F(ClusterTest, GenerationOfWhatHasNoSpecCountsItsOtherFieldsAndNoStatus) {
  ASSERT_TRUE(api()
                  .Apply({{"apiVersion", "a.example/v1"},
                          {"kind", "Widget"},
                          {"metadata", {{"name", "w"}, {"namespace", "default"}}},
                          {"size", 1}})
                  .ok());
  const auto write = [&](const char* field, const json& value) {
    json body = api().Get("Widget", {"default", "w"})->body;
    body[field] = value;
    EXPECT_TRUE(api().Update(body).ok());
    return api().Get("Widget", {"default", "w"})->meta.generation;
  };
  EXPECT_EQ(write("status", {{"observedGeneration", 1}}), 1);
  EXPECT_EQ(write("size", 2), 2);
  EXPECT_EQ(write("apiVersion", "a.example/v2"), 2) << "the same in another version";
}

// Most writes are patches of a status, which go a shorter way.
TEST_F(ClusterTest, APatchOfTheStatusEndsWhereAnUpdateOfTheWholeDoes) {
  json deep = 1;
  for (int i = 0; i < 150; ++i) deep = json{{"d", std::move(deep)}};
  const json patches[] = {
      {{"status", {{"phase", "Running"}, {"podIP", "10.0.0.1"}}}},
      {{"status", {{"phase", nullptr}}}},
      {{"status", {{"phase", nullptr}, {"reason", "r"}}}},
      {{"status", json::object()}},
      {{"status", nullptr}},
      {{"status", "text"}},
      {{"status", {{"nested", deep}}}},
      {{"status", {{"replicas", 1}}}, {"spec", {{"nodeName", "n"}}}},
      {{"metadata", {{"resourceVersion", "7"}}}, {"status", {{"reason", "r"}}}},
  };
  const std::pair<const char*, const char*> kinds[] = {
      {"Pod", "v1"}, {"ReplicaSet", "apps/v1"}, {"DaemonSet", "apps/v1"}, {"Service", "v1"}, {"ConfigMap", "v1"}};
  const NamespacedName name{"sample", "it"};
  for (const auto& [kind, version] : kinds) {
    for (const json& patch : patches) {
      for (const bool going : {false, true}) {
        const auto change = [&, kind = kind, version = version](auto write) {
          ApiServer server(host_, {.name = "other", .create_namespaces = true});
          json body = {{"apiVersion", version}, {"kind", kind}, {"spec", json::object()}};
          body["metadata"] = {{"name", name.name}, {"namespace", name.ns}};
          EXPECT_TRUE(server.Apply(std::move(body)).ok());
          if (going) server.Delete(kind, name).IgnoreError();
          const ObjectRef before = server.Get(kind, name);
          if (before == nullptr) return std::string("gone");
          const absl::StatusOr<ObjectRef> after = write(server, *before);
          return after.ok() ? (*after)->body.dump() : std::string(Message(after.status()));
        };
        EXPECT_EQ(
            change([&, kind = kind](ApiServer& to, const kube::Object&) { return to.Patch(kind, name, patch); }),
            change([&](ApiServer& to, const kube::Object& from) { return to.Update(MergePatched(from.body, patch)); }))
            << kind << " " << patch.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
      }
    }
  }
}

TEST_F(ClusterTest, AQuietWatchIsToldByBookmarksHowFarTheServerIs) {
  int64_t mark = 0;
  std::unique_ptr<kube::Client> client = MakeClient(api(), host_, "watcher", 1, {});
  std::unique_ptr<kube::Watch> watch = client->StartWatch(kube::kinds::kSecret, {}, api().resource_version(),
                                                          {[&](const kube::WatchEvent& e) {
                                                             EXPECT_EQ(e.type, kube::WatchEventType::kBookmark);
                                                             mark = e.object->meta.resource_version;
                                                           },
                                                           nullptr});
  ApplyText(kWeb);
  kernel_.RunUntil(kernel_.Now() + 2min);
  EXPECT_EQ(mark, api().resource_version());
}

TEST_F(ClusterTest, AnUpdateOfAClusterScopedObjectThatNamesANamespaceIsOfTheSameObject) {
  ASSERT_TRUE(api().Apply({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "one"}}}}).ok());
  json body = api().Get("Namespace", {"", "one"})->body;
  body["metadata"]["namespace"] = "default";
  body["metadata"]["labels"]["told"] = "yes";
  ASSERT_TRUE(api().Update(std::move(body)).ok());
  EXPECT_EQ(api().Get("Namespace", {"", "one"})->meta.labels.at("told"), "yes");
  EXPECT_EQ(api().Get("Namespace", {"default", "one"}), nullptr);
}

TEST_F(ClusterTest, ANamespaceTakesItsContentWithItAndStaysGone) {
  ApplyText(kWeb);
  ASSERT_TRUE(api().Apply(Knative("w")).ok());
  kernel_.RunUntil(kernel_.Now() + 700ms);  // pods are on their way
  const size_t elsewhere = api().List("ServiceAccount", "default").size();
  ASSERT_TRUE(api().Delete("Namespace", {"", "sample"}).ok());
  Settle();
  for (const char* kind : {"Namespace.", "Service", kKnative, "Deployment", "ReplicaSet", "Pod", "EndpointSlice",
                           "Endpoints", "ServiceAccount"}) {
    EXPECT_TRUE(api().List(kind, "sample").empty()) << kind;
  }
  EXPECT_EQ(api().Get("Namespace", {"", "sample"}), nullptr);
  EXPECT_EQ(api().List("ServiceAccount", "default").size(), elsewhere);
}

TEST_F(ClusterTest, ANamespaceHasItsNameAsLabelAndADefaultServiceAccountThatComesBack) {
  ApplyText(kWeb);
  EXPECT_EQ(api().Get("Namespace", {"", "sample"})->meta.labels.at("kubernetes.io/metadata.name"), "sample");
  const ObjectRef account = api().Get("ServiceAccount", {"sample", "default"});
  ASSERT_NE(account, nullptr);
  ASSERT_TRUE(api().Delete("ServiceAccount", {"sample", "default"}).ok());
  ASSERT_NE(api().Get("ServiceAccount", {"sample", "default"}), nullptr);
  EXPECT_NE(api().Get("ServiceAccount", {"sample", "default"})->meta.uid, account->meta.uid);
}

TEST_F(ClusterTest, NodesTellWhereTheyAreAndHowTheyAreReached) {
  const ObjectRef node = api().Get("Node", {"", "node2"});
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->meta.labels.at("topology.kubernetes.io/region"), "r1");
  EXPECT_EQ(node->meta.labels.at("topology.kubernetes.io/zone"), "z2");
  std::set<std::string> addresses;
  for (const ObjectRef& n : api().List("Node")) {
    for (const json& a : n->body["status"]["addresses"]) {
      if (a["type"] == "InternalIP") addresses.insert(a["address"].get<std::string>());
    }
  }
  EXPECT_EQ(addresses.size(), 2u);
}

}  // namespace
}  // namespace wavetank::fakekube
