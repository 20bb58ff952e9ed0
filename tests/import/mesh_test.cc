// From evidence to a mesh that runs, and what it says of the claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "import/skeleton/mesh_of_objects.h"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using testing::HasSubstr;
using testing::Not;

// Nobody's mesh, in the words of istiod 1.18.2.
constexpr std::string_view kLog =
    "2024-05-06T07:08:00.000000Z\tinfo\tinitializing mesh configuration\n"
    "2024-05-06T07:08:00.000100Z\tinfo\tStarting Istiod Server with primary cluster east\n"
    "2024-05-06T07:08:00.100000Z\tinfo\tads\tAll caches have been synced up in 100ms, marking server ready\n"
    "2024-05-06T07:08:01.000000Z\tinfo\tads\tADS: new connection for node:web-1.shop-1\n"
    // A DestinationRule.
    "2024-05-06T07:08:05.000000Z\tinfo\tads\tPush debounce stable[2] 1 for config DestinationRule/shop/web: 100.2ms "
    "since last "
    "change, 100.2ms since last push, full=true\n"
    // Endpoints that change, go, and come back.
    "2024-05-06T07:08:10.100000Z\tinfo\tads\tPush debounce stable[3] 1 for config "
    "ServiceEntry/shop/web.shop.svc.cluster.local: "
    "100ms since last change, 100ms since last push, full=false\n"
    "2024-05-06T07:08:15.000000Z\tinfo\tads\tIncremental push, service web.shop.svc.cluster.local at shard "
    "Kubernetes/east has no "
    "endpoints\n"
    "2024-05-06T07:08:15.100000Z\tinfo\tads\tPush debounce stable[4] 1 for config "
    "ServiceEntry/shop/web.shop.svc.cluster.local: "
    "100ms since last change, 100ms since last push, full=false\n"
    "2024-05-06T07:08:20.100000Z\tinfo\tads\tPush debounce stable[5] 1 for config "
    "ServiceEntry/shop/web.shop.svc.cluster.local: "
    "100ms since last change, 100ms since last push, full=false\n"
    // A remote cluster.
    "2024-05-06T07:08:25.000000Z\tinfo\tprocessing secret event for secret istio-system/remote-west\n"
    "2024-05-06T07:08:25.000100Z\tinfo\tAdding cluster\tcluster=west secret=istio-system/remote-west\n"
    "2024-05-06T07:08:25.000200Z\tinfo\tNumber of remote clusters: 1\n"
    "2024-05-06T07:08:25.010000Z\tinfo\tkube\tkube controller for west synced after 9ms\n"
    // It has a gateway; its service is told of only later.
    "2024-05-06T07:08:25.010500Z\tinfo\tmodel\treloading network gateways\n"
    "2024-05-06T07:08:25.010600Z\tinfo\tmodel\tgateways changed, triggering push\n"
    "2024-05-06T07:08:25.120000Z\tinfo\tads\tPush debounce stable[6] 3 for reason secret and 2 more reasons: 100ms "
    "since last "
    "change, 110ms since last push, full=true\n"
    "2024-05-06T07:08:30.000000Z\tinfo\tads\tIncremental push, service api.shop.svc.cluster.local at shard "
    "Kubernetes/west has no "
    "endpoints\n"
    "2024-05-06T07:08:30.100000Z\tinfo\tads\tPush debounce stable[7] 1 for config "
    "ServiceEntry/shop/api.shop.svc.cluster.local: "
    "100ms since last change, 100ms since last push, full=false\n"
    // What a proxy refused, nobody can tell from this.
    "2024-05-06T07:08:31.000000Z\twarn\tads\tADS:LDS: ACK ERROR web-1.shop-1 Internal:bad listener\n";

using ImportedMesh = ImportTest;

TEST_F(ImportedMesh, OfALogAlonePushesWhatTheLogTells) {
  const Imported imported = Read({Put("istiod.log", kLog)});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.cannot, 1u) << Words(judgement);
  EXPECT_GE(judgement.agree, 8u) << Words(judgement);
  EXPECT_EQ(judgement.Reproduced(), 1.0);
}

// Lines of an istiod that was there all the time, "SECONDS TEXT" each.
std::string LogOf(const std::string& cluster, const std::vector<std::string>& lines) {
  std::string out =
      "2024-05-06T07:08:00.000000Z\tinfo\tinitializing mesh configuration \n"
      "2024-05-06T07:08:00.100000Z\tinfo\tStarting Istiod Server with primary cluster " +
      cluster +
      "\n"
      "2024-05-06T07:08:00.200000Z\tinfo\tads\tAll caches have been synced up in 0.1s, marking server ready\n";
  for (const std::string& line : lines) {
    const size_t blank = line.find(' ');
    out += "2024-05-06T07:08:" + line.substr(0, blank) + "Z\tinfo\t" + line.substr(blank + 1) + "\n";
  }
  return out;
}
std::string Pushed(const std::string& at, const std::string& what, bool full) {
  return at + " ads\tPush debounce stable[1] 1 for config " + what +
         ": 100ms since last change, 100ms since last push, full=" + (full ? "true" : "false");
}
std::vector<std::string> Reads(const std::string& cluster) {
  return {"05.000000 processing secret event for secret istio-system/remote-" + cluster,
          "05.000100 Adding cluster\tcluster=" + cluster + " secret=istio-system/remote-" + cluster,
          "05.000200 Number of remote clusters: 1",
          "05.010000 kube\tkube controller for " + cluster + " synced after 9ms",
          "05.120000 ads\tPush debounce stable[1] 5 for config Secret/istio-system/remote-" + cluster +
              " and 3 more configs: "
              "100ms since last change, 110ms since last push, full=true"};
}
constexpr const char* kWebOfShop = "ServiceEntry/shop/web.shop.svc.cluster.local";

TEST_F(ImportedMesh, OfLogsOfSeveralPrimariesEachHasAnIstiod) {
  std::vector<std::string> east = Reads("west"), west = Reads("east");
  // One change that both see, one rule in each cluster at the same time, and one in the west alone.
  for (std::vector<std::string>* log : {&east, &west}) {
    log->push_back(Pushed("10.100000", kWebOfShop, false));
    log->push_back(Pushed("15.100000", "DestinationRule/shop/web", true));
  }
  west.push_back(Pushed("20.100000", "VirtualService/shop/web", true));
  west.push_back("21.000000 ads\tADS: new connection for node:web-1.shop-1");
  const Imported imported =
      Read({Put("istiod-east.log", LogOf("east", east)), Put("istiod-west.log", LogOf("west", west))});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  std::map<std::string, int> changes;  // after the beginning, by cluster
  for (const replay::LogInput& input : mesh->inputs) {
    if (input.kind == "apply" && input.at > Time{} + 1s) ++changes[input.body["cluster"].get<std::string>()];
  }
  // A Secret and a rule each; the endpoints once; the west's rule and proxy.
  EXPECT_EQ(changes["east"] + changes["west"], 7);
  EXPECT_EQ(changes["west"], changes["west"] > 4 ? 5 : 4);
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.cannot, 0u) << Words(judgement);
  EXPECT_EQ(judgement.agree, 11u) << Words(judgement);
}

TEST_F(ImportedMesh, ChangesThatOneOfTwoIstiodsSeesAreInAClusterThatItAloneReads) {
  std::vector<std::string> west = Reads("east");
  west.push_back(Pushed("10.100000", kWebOfShop, false));
  // The east reads no other cluster, so that it sees nothing of the west's endpoints.
  const Imported imported =
      Read({Put("istiod-east.log", LogOf("east", {Pushed("15.100000", "DestinationRule/shop/web", true)})),
            Put("istiod-west.log", LogOf("west", west))});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_GE(judgement.agree, 4u) << Words(judgement);
}

TEST_F(ImportedMesh, LogsThatBeginLateTellWhichClustersWereRead) {
  const std::string late =
      "2024-05-06T07:08:10.100000Z\tinfo\tads\tPush debounce stable[9] 1 for config " + std::string(kWebOfShop) +
      ": 100ms since last change, 100ms since last push, full=false\n"
      "2024-05-06T07:08:20.000000Z\tinfo\tads\tIncremental push, service web.shop.svc.cluster.local at shard "
      "Kubernetes/west has no endpoints\n"
      "2024-05-06T07:08:20.100000Z\tinfo\tads\tPush debounce stable[10] 1 for config " +
      std::string(kWebOfShop) + ": 100ms since last change, 100ms since last push, full=false\n";
  const Imported imported = Read({Put("istiod.log", late)});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.agree, 2u) << Words(judgement);
}

TEST_F(ImportedMesh, StreamsOfALogStoreAreLogsOfTheirPods) {
  // Newest first, as Loki answers unless asked otherwise.
  nlohmann::json values = nlohmann::json::array();
  const std::string log = LogOf("east", {Pushed("10.100000", "DestinationRule/shop/web", true)});
  const std::vector<std::string> lines = absl::StrSplit(log, '\n');
  for (size_t i = lines.size(); i-- > 0;) {
    if (!lines[i].empty()) values.push_back({std::to_string(1'714'979'280'000'000'000 + i), lines[i]});
  }
  const std::string before =
      R"({"status":"success","data":{"resultType":"streams","result":[{"stream":{"container":"discovery","pod":"istiod-7d4f-x"},"values":)";
  const Imported imported = Read({Put("loki.json", before + values.dump() + "}]}}")});
  ASSERT_EQ(imported.evidence.runs.size(), 1u);
  EXPECT_EQ(imported.evidence.runs[0].cluster, "east");
  EXPECT_EQ(imported.evidence.inputs.back().kind, InputKind::kConfig);
  EXPECT_TRUE(imported.evidence.refusals.empty());
}

// loki: pkg/logcli/output/jsonl.go
std::string JsonLineOfLogcli(const std::string& pod, size_t second, const std::string& line) {
  nlohmann::json out = {{"labels", nlohmann::json::object()},
                        {"line", line},
                        {"timestamp", fmt::format("2024-05-06T09:{:02}:{:02}.5+02:00", second / 60, second % 60)}};
  if (!pod.empty()) out["labels"] = {{"container", "discovery"}, {"pod", pod}};
  return out.dump() + "\n";
}

TEST_F(ImportedMesh, JsonLinesOfLogcliAreLogsOfTheirPods) {
  // Newest first, as logcli prints unless asked otherwise; the last of several at one instant.
  std::string text;
  for (const char* cluster : {"east", "west"}) {
    const std::string log = LogOf(cluster, {Pushed("10.100000", "DestinationRule/shop/web", true)});
    const std::vector<std::string> lines = absl::StrSplit(log, '\n');
    for (size_t i = lines.size(); i-- > 0;) {
      if (!lines[i].empty()) text += JsonLineOfLogcli(fmt::format("istiod-{}-x", cluster), i / 2, lines[i]);
    }
  }
  const Imported imported = Read({Put("istiods.jsonl", text + "{\"labels\":{},\"line\":7}\n")});
  ASSERT_EQ(imported.evidence.runs.size(), 2u);
  EXPECT_EQ(imported.evidence.runs[0].cluster, "east");
  EXPECT_EQ(imported.evidence.runs[1].cluster, "west");
  EXPECT_EQ(imported.evidence.inputs.back().kind, InputKind::kConfig);
  EXPECT_EQ(imported.evidence.refusals.reasons().size(), 1u) << "a line without a time";
}

TEST_F(ImportedMesh, JsonLinesOfLogcliWithoutLabelsAreTheFilesOwn) {
  std::string text;
  const std::string log = LogOf("east", {Pushed("10.100000", "DestinationRule/shop/web", true)});
  const std::vector<std::string> lines = absl::StrSplit(log, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].empty()) text += JsonLineOfLogcli("", i, lines[i]);
  }
  const Imported imported = Read({Put("istiod.jsonl", text)});
  ASSERT_EQ(imported.evidence.runs.size(), 1u);
  EXPECT_EQ(imported.evidence.runs[0].cluster, "east");
  EXPECT_EQ(imported.evidence.inputs.back().kind, InputKind::kConfig);
  EXPECT_TRUE(imported.evidence.refusals.empty());
}

TEST_F(ImportedMesh, EachReplicaOfAnIstiodIsJudgedByItself) {
  const std::string log = LogOf("east", {Pushed("10.100000", "DestinationRule/shop/web", true)});
  const Imported imported = Read({Put("istiod-1.log", log), Put("istiod-2.log", log)});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.agree, 2u) << Words(judgement);
}

TEST_F(ImportedMesh, AClaimThatIsNotTrueDisagrees) {
  std::string text(kLog);
  // A push that nothing of the mesh explains: too many remote clusters, and one too few pushes.
  const size_t count = text.find("clusters: 1");
  text.replace(count, 11, "clusters: 7");
  const Imported imported = Read({Put("istiod.log", text)});
  auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok());
  std::erase_if(mesh->inputs, [](const replay::LogInput& input) {
    return input.kind == "apply" && input.body["object"]["kind"] == "DestinationRule";
  });
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 2u) << Words(judgement);
  ASSERT_NE(judgement.FirstDisagreement(), nullptr);
  EXPECT_EQ(judgement.FirstDisagreement()->claim["config"], "DestinationRule/shop/web");
  EXPECT_THAT(judgement.FirstDisagreement()->why, HasSubstr("did not push"));
  EXPECT_LT(judgement.Reproduced(), 1.0);
}

TEST_F(ImportedMesh, AReplayIsTheSameTwice) {
  const Imported imported = Read({Put("istiod.log", kLog)});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok());
  std::string once, again;
  Run(*mesh, &once);
  Run(*mesh, &again);
  EXPECT_EQ(again, once);
  EXPECT_NE(once, "");
}

constexpr std::string_view kDump = R"(apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: istio-system, labels: {topology.istio.io/network: n1}}
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop}
  spec: {clusterIP: 10.96.0.7, ports: [{name: http, port: 80}]}
- apiVersion: v1
  kind: Secret
  metadata: {name: db, namespace: shop}
  data: {password: aHVudGVyMmh1bnRlcjI=}
---
apiVersion: networking.istio.io/v1beta1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
---
kind: [broken
)";

TEST_F(ImportedMesh, DumpsAndAuditLogsTellObjectsAndTheirHistory) {
  Put("east/objects.yaml", kDump);
  Put("east/audit.log",
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete","verb":"update","objectRef":{"resource":"services","namespace":"shop","name":"web"},"responseStatus":{"code":200},"responseObject":{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{"clusterIP":"10.96.0.7","ports":[{"name":"http","port":81}]}},"stageTimestamp":"2024-05-06T07:08:01.000000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"services","namespace":"shop","name":"web"},"responseStatus":{"code":200},"stageTimestamp":"2024-05-06T07:08:02.000000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete","verb":"update","objectRef":{"resource":"services","namespace":"shop","name":"web"},"responseStatus":{"code":409},"stageTimestamp":"2024-05-06T07:08:02.000000Z"}
{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"delete","objectRef":{"resource":"services","namespace":"shop","name":"web"},"responseStatus":{"code":200},"stageTimestamp":"2024-05-06T07:08:03.000000Z"}
{"kind":"Event","apiVer)");
  const Imported imported = Read({folder_ / "east"});
  EXPECT_EQ(imported.kube.state.size(), 3u);
  ASSERT_EQ(imported.kube.history.size(), 2u);
  EXPECT_TRUE(imported.kube.history[1].deleted);
  EXPECT_EQ(imported.kube.state[0].cluster, "east");
  const auto& reasons = imported.evidence.refusals.reasons();
  EXPECT_TRUE(reasons.contains("no YAML"));
  EXPECT_TRUE(reasons.contains("JSON that ends before its end"));
  EXPECT_TRUE(reasons.contains("audit event of level Metadata: its object is not told"));
  EXPECT_EQ(imported.kube.unseen.at("Deployment"), 1u);
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  std::string all;
  for (const replay::LogInput& input : mesh->inputs) all += input.body.dump();
  EXPECT_THAT(all, Not(HasSubstr("aHVudGVyMmh1bnRlcjI")));
  EXPECT_EQ(mesh->inputs.back().kind, "delete");
  EXPECT_EQ(mesh->inputs.back().at - mesh->world.start, kComesUp + 2s);
  Run(*mesh);
}

TEST_F(ImportedMesh, ARecordedWatchIsDatedByItsFieldsManagers) {
  const Imported imported = Read({Put("watch.json", R"({"type":"ADDED","object":{"apiVersion":"v1","kind":"Service",
"metadata":{"name":"web","namespace":"shop","creationTimestamp":"2024-05-06T07:00:00Z"},"spec":{}}}
{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop",
"creationTimestamp":"2024-05-06T07:00:00Z","managedFields":[{"manager":"kubectl","time":"2024-05-06T07:08:00Z"}]},"spec":{"type":"NodePort"}}}
{"type":"BOOKMARK","object":{}}
{"type":"DELETED","object":{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{}}}
)")});
  ASSERT_EQ(imported.kube.history.size(), 3u);
  EXPECT_TRUE(imported.kube.history[0].created);
  EXPECT_EQ(FormatWall(imported.kube.history[1].at), "2024-05-06T07:08:00.000000Z");
  EXPECT_TRUE(imported.kube.history[2].deleted);
  EXPECT_TRUE(imported.evidence.refusals.empty());
}

}  // namespace
}  // namespace wavetank::importing
