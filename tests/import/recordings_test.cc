// Recordings of other simulators and what kubectl says of events: SimKube's traces, KWOK's snapshots, Events.
#include <gmock/gmock.h>

#include <cstdint>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"
#include "core/kube/credentials/kubeconfig.h"
#include "import/kube/msgpack.h"
#include "import/kube/recordings.h"
#include "import/skeleton/mesh_of_objects.h"
#include "replay/kept_secrets.h"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

std::string Packed(const json& value) {
  const std::vector<uint8_t> bytes = json::to_msgpack(value);
  return {bytes.begin(), bytes.end()};
}

json Service(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", name}, {"namespace", "shop"}}},
          {"spec", {{"ports", {{{"name", "http"}, {"port", 80}}}}}}};
}

std::string OnlyReason(const Evidence& evidence) {
  EXPECT_EQ(evidence.refusals.reasons().size(), 1u);
  return evidence.refusals.reasons().empty() ? "" : evidence.refusals.reasons().begin()->first;
}

TEST(MsgPack, ReadsWhatWasWritten) {
  const json value = {nullptr,           true, -1, -40000, 70000, 5'000'000'000, 1.5, "text", std::string(300, 'x'),
                      {{"a", {1, 2, 3}}}};
  EXPECT_EQ(ParseMsgPack(Packed(value)), value);
}

TEST(MsgPack, KeysThatAreNoTextBecomeText) {
  // {[1, "a"]: 2}
  EXPECT_EQ(ParseMsgPack("\x81\x92\x01\xa1"
                         "a\x02"),
            (json{{"[1,\"a\"]", 2}}));
}

TEST(MsgPack, WhatIsCutShortFollowedOrDeepIsNone) {
  const std::string whole = Packed(json{{"a", {1, 2, "three"}}});
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(ParseMsgPack(whole.substr(0, n))) << n;
  EXPECT_FALSE(ParseMsgPack(whole + "x"));
  EXPECT_FALSE(ParseMsgPack(std::string(1000, '\x91') + "\x01"));
  EXPECT_FALSE(ParseMsgPack("\xdd\xff\xff\xff\xff\x01"));
}

using Recordings = ImportTest;

TEST_F(Recordings, ATraceOfSimKubeIsHistory) {
  for (const bool as_map : {false, true}) {
    const json event1 = {1'700'000'000, {Service("web"), Service("api")}, json::array()};
    const json event2 = {1'700'000'060, json::array(), {Service("api")}};
    const json trace = as_map ? json{{"version", 2},
                                     {"config", nullptr},
                                     {"events", {event1, event2}},
                                     {"index", nullptr},
                                     {"pod_lifecycles", nullptr}}
                              : json{2, json::array(), {event1, event2}, json::object(), json::object()};
    std::string bytes = Packed(trace);
    // rmp_serde writes the fields in their order; nlohmann's map is sorted.
    if (as_map)
      bytes =
          "\x85\xa7version\x02" +
          Packed({{"config", nullptr}, {"events", {event1, event2}}, {"index", nullptr}, {"pod_lifecycles", nullptr}})
              .substr(1);
    const Imported imported = Read({Put(as_map ? "map.sktrace" : "list.sktrace", bytes)});
    ASSERT_THAT(imported.kube.history, SizeIs(3)) << as_map;
    EXPECT_EQ(FormatWall(imported.kube.history[0].at), "2023-11-14T22:13:20.000000Z");
    EXPECT_EQ(imported.kube.history[0].name, "web");
    EXPECT_TRUE(imported.kube.history[2].deleted);
    EXPECT_EQ(imported.kube.history[2].name, "api");
  }
}

TEST_F(Recordings, ACutTraceOfSimKubeIsCounted) {
  const std::string bytes = Packed(json{2, json::array(), {{1, {Service("web")}, json::array()}}, 1, 1});
  const Imported imported = Read({Put("cut.sktrace", bytes.substr(0, bytes.size() - 5))});
  EXPECT_THAT(OnlyReason(imported.evidence), HasSubstr("SimKube"));
}

constexpr char kKwok[] = R"(apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, creationTimestamp: "2024-05-06T07:00:00Z", labels: {a: b}}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: services}
target: {name: web, namespace: shop}
durationNanosecond: 1500000000
method: patch
template: {metadata: {labels: {a: c}}}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: services}
target: {name: web, namespace: shop}
durationNanosecond: 2000000000
method: patch
template: {spec: {ports: [{port: 81}]}}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: services}
target: {name: web, namespace: shop}
durationNanosecond: 3000000000
method: delete
)";

TEST_F(Recordings, ARecordingOfKwokIsStateAndHistory) {
  const Imported imported = Read({Put("cluster.yaml", kKwok)});
  ASSERT_THAT(imported.kube.state, SizeIs(1));
  ASSERT_THAT(imported.kube.history, SizeIs(2));
  EXPECT_EQ(FormatWall(imported.kube.history[0].at), "2024-05-06T07:00:01.500000Z");
  EXPECT_EQ(imported.kube.history[0].body["object"]["metadata"]["labels"], (json{{"a", "c"}}));
  EXPECT_TRUE(imported.kube.history[1].deleted);
  // Which port it is about only the type's key tells.
  EXPECT_THAT(OnlyReason(imported.evidence), HasSubstr("merges lists"));
}

TEST_F(Recordings, EventsAreClaimsWithTheirTimes) {
  const std::string file = Put("events.json", R"({"apiVersion":"v1","kind":"List","items":[
    {"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"shop"},"reason":"Killing","count":2,
     "involvedObject":{"kind":"Pod","namespace":"shop","name":"web-1"},"message":"Stopping container web",
     "source":{"component":"kubelet"},"firstTimestamp":"2024-05-06T07:08:05Z","lastTimestamp":"2024-05-06T07:08:09Z"}]})");
  const Imported imported = Read({file});
  ASSERT_THAT(imported.evidence.claims, SizeIs(1));
  const Claim& claim = imported.evidence.claims[0];
  EXPECT_EQ(claim.kind, ClaimKind::kEvent);
  EXPECT_EQ(claim.name, "Pod/shop/web-1");
  EXPECT_EQ(FormatWall(claim.at), "2024-05-06T07:08:05.000000Z");
  EXPECT_EQ(ParseJson(claim.extra)["reason"], "Killing");
}

TEST_F(Recordings, ATableOfEventsSaysWhatToTakeInstead) {
  const Imported imported = Read(
      {Put("events.txt",
           "LAST SEEN   TYPE     REASON    OBJECT       MESSAGE\n5m          Normal   Killing   pod/web-1    x\n")});
  EXPECT_THAT(OnlyReason(imported.evidence), HasSubstr("-o json"));
}

TEST_F(Recordings, DumpsThatContradictEachOtherAreNamed) {
  json other = Service("web");
  other["spec"]["ports"][0]["port"] = 81;
  ImportOptions options;
  options.sources = {Put("a.json", Service("web").dump()), Put("b.json", other.dump())};
  options.clusters = {{"c", options.sources[0]}, {"c", options.sources[1]}};
  const auto imported = Import(options);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(OnlyReason(imported->evidence), HasSubstr("another dump tells otherwise"));
  const auto& first = imported->evidence.refusals.reasons().begin()->second.first.front();
  EXPECT_EQ(Text(first.first), "a.json:1");
  EXPECT_THAT(first.second, HasSubstr("b.json:1"));
}

TEST_F(Recordings, AnObjectThatNoApiServerHasIsCounted) {
  json service = Service("web");
  service["spec"] = 7;
  const Imported imported = Read({Put("a.json", service.dump())});
  EXPECT_THAT(OnlyReason(imported.evidence), HasSubstr("no API server"));
  EXPECT_TRUE(imported.kube.state.empty());
}

TEST_F(Recordings, CredentialsOfADumpAreKeptForWhoAsksForItAndTheLogSaysSo) {
  const std::string token = "opaque-token-of-cluster2";
  const std::string kubeconfig = kube::RenderKubeConfig({"cluster2", "https://203.0.113.7:6443", "", token});
  json secret = {{"apiVersion", "v1"}, {"kind", "Secret"}, {"type", "Opaque"}};
  secret["metadata"] = {{"name", "istio-remote-secret-cluster2"},
                        {"namespace", "istio-system"},
                        {"labels", {{"istio/multiCluster", "true"}}}};
  secret["data"] = {{"cluster2", absl::Base64Escape(kubeconfig)}};
  ImportOptions options;
  options.sources = {Put("a.json", secret.dump())};
  for (const bool keep : {false, true}) {
    options.keep_secrets = keep;
    const auto imported = Import(options);
    ASSERT_TRUE(imported.ok()) << imported.status();
    ASSERT_THAT(imported->kube.state, SizeIs(1));
    std::string text;
    absl::Base64Unescape(imported->kube.state[0].body["object"]["data"]["cluster2"].get<std::string>(), &text);
    EXPECT_EQ(text.find(token) != std::string::npos, keep);
    const auto mesh = MakeMeshOfObjects(imported->evidence, imported->kube);
    ASSERT_TRUE(mesh.ok()) << mesh.status();
    const std::string path = folder_ / (keep ? "kept.wtlog" : "sealed.wtlog");
    ASSERT_TRUE(WriteLog(*mesh, path, "test", keep).ok());
    const auto log = replay::LogReader::Open(path);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ(replay::KeepsSecrets((*log)->header()), keep);
  }
}

TEST_F(Recordings, WhatWouldTellMoreIsSaid) {
  const std::vector<std::string> missing = WhatIsMissing(Read({Put("a.json", Service("web").dump())}));
  EXPECT_THAT(missing, testing::Not(testing::Contains(HasSubstr("kubectl get -A"))));
  EXPECT_THAT(missing, testing::Contains(HasSubstr("access logs")));
}

replay::LogInput EventClaim(Time at, const std::string& reason) {
  return {
      at, 7, "claim", {{"claim", {{"kind", "event"}, {"name", "Pod/shop/web-1"}, {"type", "c1"}, {"reason", reason}}}}};
}

Verdict JudgedEvent(const std::string& reason, Time deleted) {
  Judge judge;
  judge.OnInput(EventClaim(Time{} + 100s, reason));
  replay::LoggedEvent event;
  event.kind = TraceKind::kObjectApplied;
  event.subject = "c1";
  event.object = "Pod/shop/web-1";
  event.time = Time{} + 90s;
  judge.OnEvent(event);
  event.kind = TraceKind::kObjectDeleted;
  event.time = deleted;
  judge.OnEvent(event);
  const Judgement judgement = judge.Finish();
  EXPECT_THAT(judgement.claims, SizeIs(1));
  return judgement.claims[0].verdict;
}

TEST(EventClaims, APodIsCreatedAndGoneWhenItsEventsSaySo) {
  EXPECT_EQ(JudgedEvent("Scheduled", Time{} + 110s), Verdict::kAgrees);
  EXPECT_EQ(JudgedEvent("Killing", Time{} + 130s), Verdict::kAgrees);
  EXPECT_EQ(JudgedEvent("Killing", Time{} + 300s), Verdict::kDisagrees);
  EXPECT_EQ(JudgedEvent("Pulled", Time{} + 110s), Verdict::kCannotBeJudged);
}

}  // namespace
}  // namespace wavetank::importing
