// From evidence to a mesh that runs, and what it says of the claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/kube/credentials/kubeconfig.h"
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
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
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

// What `kubectl get -A -o json` prints of a cluster: its istiod, Service web of namespace shop with a pod in a slice,
// and a remote Secret whose kubeconfig somebody has cut out.
std::string DumpOf(const std::string& cluster, const std::string& remote) {
  nlohmann::json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", nlohmann::json::array()}};
  const auto add = [&](const std::string& version, const std::string& kind, const std::string& ns,
                       const std::string& name, nlohmann::json rest) {
    rest["apiVersion"] = version;
    rest["kind"] = kind;
    rest["metadata"]["name"] = name;
    if (!ns.empty()) rest["metadata"]["namespace"] = ns;
    rest["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z";
    list["items"].push_back(std::move(rest));
  };
  const std::string ip = cluster == "east" ? "10.1.0.21" : "10.2.0.21";
  add("v1", "Namespace", "", "istio-system", {{"metadata", {{"labels", {{"topology.istio.io/network", cluster}}}}}});
  add("v1", "Pod", "istio-system", "istiod-1",
      {{"metadata", {{"labels", {{"app", "istiod"}}}}},
       {"spec",
        {{"containers",
          {{{"name", "discovery"}, {"image", "x:1.18.2"}, {"env", {{{"name", "CLUSTER_ID"}, {"value", cluster}}}}}}}}},
       {"status", {{"phase", "Running"}, {"podIP", "10.1.0.10"}}}});
  add("v1", "Pod", "shop", "web-1",
      {{"metadata", {{"labels", {{"app", "web"}}}}},
       {"spec", {{"serviceAccountName", "web"}, {"containers", {{{"name", "web"}, {"image", "x"}}}}}},
       {"status", {{"phase", "Running"}, {"podIP", ip}}}});
  add("v1", "Service", "shop", "web",
      {{"spec",
        {{"clusterIP", "10.96.0.7"}, {"selector", {{"app", "web"}}}, {"ports", {{{"name", "http"}, {"port", 80}}}}}}});
  add("discovery.k8s.io/v1", "EndpointSlice", "shop", "web-x",
      {{"metadata", {{"labels", {{"kubernetes.io/service-name", "web"}}}}},
       {"addressType", "IPv4"},
       {"ports", {{{"name", "http"}, {"port", 80}}}},
       {"endpoints",
        {{{"addresses", {ip}},
          {"conditions", {{"ready", true}}},
          {"targetRef", {{"kind", "Pod"}, {"name", "web-1"}, {"namespace", "shop"}}}}}}});
  add("v1", "Secret", "istio-system", "remote-" + remote,
      {{"metadata", {{"labels", {{"istio/multiCluster", "true"}}}}}, {"data", {{remote, "redacted"}}}});
  return list.dump();
}

// Logs of two primaries that read each other, and dumps of one of them, of the other, of both.
TEST_F(ImportedMesh, ADumpOfSomeClustersTakesNothingFromWhatLogsTell) {
  std::vector<std::string> east = Reads("west"), west = Reads("east");
  for (std::vector<std::string>* log : {&east, &west}) {
    log->push_back(Pushed("10.100000", kWebOfShop, false));
    log->push_back(Pushed("15.100000", "DestinationRule/shop/web", true));
    log->push_back(
        "25.000000 ads\tIncremental push, service web.shop.svc.cluster.local at shard Kubernetes/west has no "
        "endpoints");
    log->push_back(Pushed("25.100000", kWebOfShop, false));
    log->push_back(Pushed("30.100000", kWebOfShop, false));
  }
  const std::string one = Put("istiod-east.log", LogOf("east", east)),
                    other = Put("istiod-west.log", LogOf("west", west)),
                    of_east = Put("east.json", DumpOf("east", "west")),
                    of_west = Put("west.json", DumpOf("west", "east"));
  for (const std::vector<std::string>& dumps :
       std::vector<std::vector<std::string>>{{of_east}, {of_west}, {of_east, of_west}}) {
    std::vector<std::string> sources = {one, other};
    sources.insert(sources.end(), dumps.begin(), dumps.end());
    const Imported imported = Read(sources);
    const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
    ASSERT_TRUE(mesh.ok()) << mesh.status();
    EXPECT_EQ(mesh->world.clusters.size(), 2u);
    const Judgement judgement = Run(*mesh);
    EXPECT_EQ(judgement.disagree, 0u) << testing::PrintToString(dumps) << Words(judgement);
    EXPECT_GE(judgement.agree, 14u) << testing::PrintToString(dumps) << Words(judgement);
    // In the end it is what the dumps hold.
    std::map<std::string, nlohmann::json> last;
    for (const replay::LogInput& input : WholeInputs(*mesh)) {
      if (input.kind == "apply" && input.body["object"]["metadata"]["name"] == "web-x") {
        last[input.body["cluster"]] = input.body["object"]["endpoints"];
      }
    }
    EXPECT_EQ(last.size(), dumps.size());
    for (const auto& [cluster, endpoints] : last) EXPECT_EQ(endpoints.size(), 1u) << cluster << endpoints;
  }
}

// istiod pushes for a remote Secret that changes no cluster: another one's names it already, or nobody can read it.
TEST_F(ImportedMesh, ARemoteSecretThatChangesNoClusterIsThere) {
  std::vector<std::string> lines = Reads("west");
  lines.emplace_back("10.000000 processing secret event for secret istio-system/again");
  lines.emplace_back("10.000100 Number of remote clusters: 1");
  lines.push_back(Pushed("10.100000", "Secret/istio-system/again", false));
  const Imported imported = Read({Put("istiod-east.log", LogOf("east", lines))});
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const bool comes = std::any_of(mesh->inputs.begin(), mesh->inputs.end(), [](const replay::LogInput& input) {
    return input.kind == "apply" && input.body["object"]["kind"] == "Secret" &&
           input.body["object"]["metadata"]["name"] == "again" && input.at > Time{} + 1s;
  });
  EXPECT_TRUE(comes);
  const Judgement judgement = Run(*mesh);
  for (const JudgedClaim& claim : judgement.claims) {
    if (claim.claim.dump().find("istio-system/again") == std::string::npos) continue;
    EXPECT_EQ(claim.verdict, Verdict::kAgrees) << Words(judgement);
  }
}

// It holds what lines say has gone since, and was not made anew.
TEST_F(ImportedMesh, ADumpOfBeforeTheLogsEndBringsNothingBack) {
  std::vector<std::string> lines = Reads("west");
  lines.emplace_back(
      "25.000000 ads\tIncremental push, service web.shop.svc.cluster.local at shard Kubernetes/east has no endpoints");
  lines.push_back(Pushed("25.100000", kWebOfShop, false));
  lines.emplace_back("40.000000 processing secret event for secret istio-system/remote-west");
  lines.emplace_back("40.000100 Deleting cluster_id=west configured by secret=istio-system/remote-west");
  lines.emplace_back("40.000200 Number of remote clusters: 0");
  const Imported imported = Read({Put("istiod.log", LogOf("east", lines)), Put("east.json", DumpOf("east", "west"))});
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  std::string last;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    if (input.kind == "claim") continue;
    last = input.kind + " " + input.body.value("name", "");
  }
  EXPECT_EQ(last, "delete remote-west");
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

// An east-west gateway's endpoints go in that cluster, and gateways are read anew for it.
std::vector<std::string> GatewayGoes(const std::string& at, const std::string& cluster) {
  return {at +
              ".000000 ads\tIncremental push, service istio-eastwestgateway.istio-system.svc.cluster.local at shard "
              "Kubernetes/" +
              cluster + " has no endpoints",
          at + ".000100 model\treloading network gateways", at + ".000200 model\tgateways changed, triggering push",
          at +
              ".100200 ads\tPush debounce stable[2] 4 for reason endpoint and 3 more reasons: 100ms since last change, "
              "100.2ms since last push, full=true"};
}

TEST_F(ImportedMesh, AGatewayHasNoAddressBeforeALineTellsOfOne) {
  const auto mesh = MakeSkeleton(Read({Put("istiod.log", LogOf("east", GatewayGoes("10", "east")))}).evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  std::vector<bool> addresses;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    const nlohmann::json object = input.body.value("object", nlohmann::json());
    if (input.kind != "apply" || object["kind"] != "Service") continue;
    if (object["metadata"]["name"] == "istio-eastwestgateway") addresses.push_back(object.contains("status"));
  }
  EXPECT_THAT(addresses, testing::ElementsAre(false, true));
}

// A gateway's host name comes to resolve to something else, to nothing, and to something again.
TEST_F(ImportedMesh, ANameOfAGatewayThatResolvesOtherwiseMakesThePushesThatLinesTell) {
  std::string log = LogOf("east", {});
  const auto change = [&](const std::string& minute, bool resolves) {
    const std::string at = "2024-05-06T07:" + minute + ":30";
    log += at + ".000000Z\tinfo\tmodel\treloading network gateways\n";
    if (!resolves) log += at + ".000100Z\twarn\tmodel\tcould not resolve hostname \"gw.example\" for 1 gateways\n";
    log += at + ".000200Z\tinfo\tmodel\tgateways changed, triggering push\n" + at +
           ".100200Z\tinfo\tads\tPush debounce stable[2] 1 for reason networks: 100ms since last change, 100ms since "
           "last push, full=true\n";
  };
  change("09", true);
  change("11", false);
  change("12", true);
  const auto mesh = MakeSkeleton(Read({Put("istiod.log", log)}).evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.agree, 6u) << Words(judgement);  // three pushes and reloads
}

// PILOT_DEBOUNCE_AFTER: a push eight seconds after its first event had others in every 100 ms.
TEST_F(ImportedMesh, ChangesThatNoLineNamesKeepTheDebouncerWaiting) {
  const auto mesh = MakeSkeleton(
      Read({Put("istiod.log",
                LogOf("east", {"18.000000 ads\tPush debounce stable[1] 200 for config ServiceEntry/shop/"
                               "web.shop.svc.cluster.local and 1 more configs: 100ms since last change, 8s since last "
                               "push, full=false"}))})
          .evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  const Judgement judgement = Run(*mesh);
  EXPECT_EQ(judgement.disagree, 0u) << Words(judgement);
  EXPECT_EQ(judgement.agree, 1u) << Words(judgement);
}

TEST_F(ImportedMesh, ALaterLineTellsTheNamespaceOfAServiceEntrysHost) {
  const Imported imported = Read(
      {Put("istiod.log",
           LogOf("east", {"10.000000 ads\tIncremental push, service db.example at shard External/east has no endpoints",
                          Pushed("10.100000", "ServiceEntry/shop/db.example", true)}))});
  for (const InferredInput& input : imported.evidence.inputs) {
    EXPECT_TRUE(input.host != "db.example" || input.ns == "shop") << input.ns;
  }
  const auto mesh = MakeSkeleton(imported.evidence);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_EQ(Run(*mesh).disagree, 0u);
}

TEST_F(ImportedMesh, AGatewaysServiceThatTheDumpLacksWasDeleted) {
  for (const char* cluster : {"east", "west"}) {
    const std::string gateway =
        R"(,{"apiVersion":"v1","kind":"Service","metadata":{"name":"istio-eastwestgateway","namespace":"istio-system","labels":{"topology.istio.io/network":"n1"}},"spec":{"type":"LoadBalancer","clusterIP":"10.96.0.9","ports":[{"name":"tls","port":15443}]},"status":{"loadBalancer":{"ingress":[{"ip":"172.30.1.1"}]}}})";
    Put(std::string(cluster) + ".json",
        R"({"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"istio-system","labels":{"topology.istio.io/network":")" +
            std::string(cluster) +
            R"("}}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"istiod-0","namespace":"istio-system","labels":{"app":"istiod"}},"spec":{"containers":[{"name":"discovery","image":"x","env":[{"name":"CLUSTER_ID","value":")" +
            std::string(cluster) + R"("}]}]},"status":{"phase":"Running","podIP":"10.1.0.1"}})" +
            (cluster == std::string_view("east") ? gateway : "") + "]}");
  }
  const std::string log = Put("istiod.log", LogOf("east", GatewayGoes("10", "west")));
  const Imported imported = Read({folder_ / "east.json", folder_ / "west.json", log});
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  nlohmann::json before;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    if (input.body.value("cluster", "") != "west") continue;
    if (input.kind == "delete") {
      EXPECT_EQ(input.body["name"], "istio-eastwestgateway");
      EXPECT_EQ(before["metadata"]["labels"]["topology.istio.io/network"], "west");
      return;
    }
    if (input.kind == "apply" && input.body["object"]["kind"] == "Service") before = input.body["object"];
  }
  ADD_FAILURE() << "nothing was deleted in west";
}

// What collectors make of a line, each in its own words.
std::string Collected(std::string_view collector, const std::string& line, size_t second) {
  const std::string time = fmt::format("2024-05-06T09:{:02}:{:02}.5+02:00", second / 60, second % 60);
  const nlohmann::json whose = {{"pod_name", "istiod-7d4f-x"}, {"container_name", "discovery"}};
  nlohmann::json out;
  if (collector == "fluent-bit") {
    out = {{"time", time}, {"stream", "stdout"}, {"_p", "F"}, {"log", line}, {"kubernetes", whose}};
  } else if (collector == "vector") {
    out = {{"timestamp", time}, {"message", line}, {"kubernetes", whose}};
  } else if (collector == "filebeat") {
    const nlohmann::json names = {{"pod", {{"name", "istiod-7d4f-x"}}}, {"container", {{"name", "discovery"}}}};
    out = {{"_source", {{"@timestamp", time}, {"message", line}, {"kubernetes", names}}}};
  } else {
    out = {{"timestamp", time}, {"textPayload", line}, {"resource", {{"labels", whose}}}};
  }
  return out.dump();
}

TEST_F(ImportedMesh, RecordsOfCollectorsAreLogsOfTheirPods) {
  const std::string log = LogOf("east", {Pushed("10.100000", "DestinationRule/shop/web", true)});
  const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  for (const char* collector : {"fluent-bit", "vector", "filebeat", "cloud-logging"}) {
    std::vector<std::string> records;
    for (size_t i = 0; i < lines.size(); ++i) records.push_back(Collected(collector, lines[i], i));
    // A line each; one list, newest first; Elasticsearch's answer.
    std::string reversed;
    for (const std::string& record : records) reversed = record + (reversed.empty() ? "" : ",") + reversed;
    for (const std::string& text : {absl::StrJoin(records, "\n") + "\n", "[" + reversed + "]",
                                    R"({"hits":{"hits":[)" + absl::StrJoin(records, ",") + "]}}"}) {
      const Imported imported = Read({Put(std::string(collector) + ".json", text)});
      ASSERT_EQ(imported.evidence.runs.size(), 1u) << text.substr(0, 200);
      EXPECT_EQ(imported.evidence.runs[0].cluster, "east");
      EXPECT_EQ(imported.evidence.inputs.back().kind, InputKind::kConfig) << text.substr(0, 200);
      EXPECT_TRUE(imported.evidence.refusals.empty()) << text.substr(0, 200);
    }
  }
}

TEST_F(ImportedMesh, ALogThatIsNewestFirstOrInNoOrderIsReadInTheOrderOfItsTimes) {
  const std::vector<std::string> lines = absl::StrSplit(std::string(kLog), '\n', absl::SkipEmpty());
  std::vector<std::string> backward(lines.rbegin(), lines.rend()), mixed;
  for (size_t i = 0; i < lines.size(); ++i) mixed.push_back(lines[i * 7 % lines.size()]);
  const size_t inputs = Read({Put("istiod.log", kLog)}).evidence.inputs.size();
  for (const std::vector<std::string>& order : {backward, mixed}) {
    const Imported imported = Read({Put("istiod.log", absl::StrJoin(order, "\n") + "\n")});
    EXPECT_EQ(imported.evidence.inputs.size(), inputs);
    EXPECT_EQ(imported.evidence.runs.size(), 1u);
    EXPECT_TRUE(imported.evidence.refusals.empty());
    EXPECT_EQ(imported.evidence.notes.size(), 1u) << "it says so";
  }
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
  for (const replay::LogInput& input : WholeInputs(*mesh)) all += input.body.dump();
  EXPECT_THAT(all, Not(HasSubstr("aHVudGVyMmh1bnRlcjI")));
  EXPECT_EQ(mesh->inputs.back().kind, "delete");
  EXPECT_EQ(mesh->inputs.back().at - mesh->world.start, kComesUp + 2s);
  Run(*mesh);
}

// Of level Metadata, and of patches, the object is the dump's.
TEST_F(ImportedMesh, AnEventWithoutItsObjectIsOfWhatTheDumpHolds) {
  const auto event = [](std::string_view verb, std::string_view resource, std::string_view name, int second) {
    return fmt::format(
        R"({{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"{}","objectRef":{{"resource":"{}","namespace":"shop","name":"{}"}},"responseStatus":{{"code":200}},"stageTimestamp":"2024-05-06T07:08:0{}.000000Z"}})"
        "\n",
        verb, resource, name, second);
  };
  Put("east/objects.json", DumpOf("east", "west"));
  Put("east/audit.log", event("create", "services", "web", 1) + event("patch", "services", "web", 2) +
                            event("update", "services", "gone", 3) + event("create", "leases", "x", 4));
  const Imported imported = Read({folder_ / "east"});
  ASSERT_EQ(imported.kube.history.size(), 2u);
  EXPECT_TRUE(imported.kube.history[0].created);
  EXPECT_EQ(imported.kube.history[0].body["object"]["spec"]["clusterIP"], "10.96.0.7");
  EXPECT_EQ(imported.evidence.refusals.reasons().at("audit event of level Metadata: its object is not told").count, 1u);
  EXPECT_EQ(imported.kube.unseen.at("leases"), 1u);
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  std::vector<Duration> applied;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    nlohmann::json object = input.body.value("object", nlohmann::json());
    if (input.kind == "apply" && object["kind"] == "Service" && object["metadata"]["name"] == "web")
      applied.push_back(input.at - mesh->world.start);
  }
  EXPECT_THAT(applied, testing::ElementsAre(kComesUp, kComesUp + 1s)) << "it is not there before it was made";
}

TEST_F(ImportedMesh, WhatNoApiServerHasIsCountedAndTheRestIsRead) {
  const Imported imported = Read({Put("east.yaml", R"(apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 99999}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata: {name: api, namespace: shop}
spec: {hosts: [api], http: [{route: [{destination: {host: api}, weight: -5}]}]}
)")});
  const auto& reasons = imported.evidence.refusals.reasons();
  EXPECT_EQ(reasons.at("object that an API server refuses").count, 1u);
  EXPECT_EQ(reasons.at("object that istiod's webhook refuses; it is taken as it is").count, 1u);
  EXPECT_EQ(imported.kube.state.size(), 2u);
}

// kubectl prints a list's kind behind its items, `kubectl get --raw` before them, and then items have none.
TEST_F(ImportedMesh, AListIsReadItemByItemAsFarAsItGoes) {
  const Imported imported = Read({Put("east.json", R"({"apiVersion": "v1", "items": [
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "shop"},
   "spec": {"ports": [{"name": "items", "port": 80}]}},
  "none", 17,
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b", "namespace": "shop"}, "spec": [}},
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c", "namespace": "shop"},
   "spec": {"ports": [{"name": "http", "port": 80}]}}
], "kind": "List"}
{"kind": "ServiceList", "apiVersion": "v1", "metadata": {"items": 1}, "items": [
  {"metadata": {"name": "d", "namespace": "shop"}, "spec": {"ports": [{"name": "http", "port": 80}]}},
  {"metadata": {"name": "e", "namespace": "shop"}, "spec": {"ports": [{"name": "ht)")});
  std::vector<std::string> read;
  for (const KubeChange& change : imported.kube.state) {
    read.push_back(fmt::format("{}{}:{}", change.kind, change.name, change.place.line));
  }
  EXPECT_THAT(read, testing::ElementsAre("Service.a:2", "Service.c:6", "Service.d:10"));
  const auto& reasons = imported.evidence.refusals.reasons();
  EXPECT_EQ(reasons.at("no object of Kubernetes").count, 2u);
  EXPECT_EQ(reasons.at("no JSON").first.at(0).first.line, 5u);
  EXPECT_EQ(reasons.at("JSON that ends before its end").first.at(0).first.line, 11u);
}

TEST_F(ImportedMesh, AListInYamlIsReadItemByItem) {
  const Imported imported = Read({Put("east.yaml", R"(apiVersion: v1
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: istio, namespace: istio-system}
  data:
    mesh: |-
      items:
      - none

      rootNamespace: istio-system
# a remark
- apiVersion: v1
  kind: Service
  metadata: {name: [b, namespace: shop}
- kind: Service
  apiVersion: v1
  metadata:
    name: c
    namespace: shop
  spec:
    ports:
    - name: http
      port: 80
kind: List
---
kind: ServiceList
apiVersion: v1
items:
  - metadata: {name: d, namespace: shop}
    spec: {ports: [{name: http, port: 80}]}
)")});
  std::vector<std::string> read;
  for (const KubeChange& change : imported.kube.state) {
    read.push_back(fmt::format("{}{}:{}", change.kind, change.name, change.place.line));
  }
  EXPECT_THAT(read, testing::ElementsAre("ConfigMap.istio:3", "Service.c:16", "Service.d:30"));
  EXPECT_EQ(imported.kube.state[0].body["object"]["data"]["mesh"], "items:\n- none\n\nrootNamespace: istio-system");
  EXPECT_EQ(imported.evidence.refusals.reasons().at("no YAML").first.at(0).first.line, 13u);
}

TEST_F(ImportedMesh, APodOfADumpIsInTheLogAsItWas) {
  const Imported imported = Read({Put("east.json", DumpOf("east", "west"))});
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  nlohmann::json pod;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    const nlohmann::json object = input.body.value("object", nlohmann::json());
    if (object.is_object() && object["metadata"]["name"] == "web-1") pod = input.body;
  }
  EXPECT_EQ(pod["cluster"], "east");
  EXPECT_EQ(pod["object"]["spec"]["containers"][0]["image"], "x");
  EXPECT_EQ(pod["object"]["status"]["phase"], "Running");
}

TEST_F(ImportedMesh, ALineThatIsNotInUtf8IsCounted) {
  const Imported imported = Read({Put("istiod.log", LogOf("east", {"10.000000 ads\tgar\xe9"
                                                                   "bage"}))});
  EXPECT_EQ(imported.evidence.refusals.reasons().at("line that is not in UTF-8, read as far as it is").count, 1u);
}

TEST_F(ImportedMesh, ARemoteSecretWhoseKubeconfigWasCutOutIsReadable) {
  const Imported imported = Read({Put("east.json", DumpOf("east", "west")), Put("west.json", DumpOf("west", "east"))});
  const auto mesh = MakeMeshOfObjects(imported.evidence, imported.kube);
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  int readable = 0;
  for (const replay::LogInput& input : WholeInputs(*mesh)) {
    if (input.kind != "apply" || input.body["object"]["kind"] != "Secret") continue;
    for (const auto& [cluster, value] : input.body["object"]["data"].items()) {
      std::string plain;
      EXPECT_TRUE(absl::Base64Unescape(value.get<std::string>(), &plain));
      readable += kube::ParseKubeConfig(plain, cluster).ok() ? 1 : 0;
    }
  }
  EXPECT_EQ(readable, 2);
}

// `write`: verb, what the object's metadata has besides its name, and who did it, of a pod of namespace shop.
std::string AuditOf(std::string_view verb, std::string_view metadata, std::string_view user) {
  return fmt::format(
      R"({{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete","verb":"{}","user":{{"username":"{}"}},"objectRef":{{"resource":"pods","namespace":"shop","name":"web-1"}},"responseStatus":{{"code":200}},"responseObject":{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-1","namespace":"shop"{}}},"spec":{{"nodeName":"n"}}}},"stageTimestamp":"2024-05-06T07:08:03.000000Z"}})",
      verb, user, metadata);
}

TEST_F(ImportedMesh, ADeletionThatOnlyMarksIsNone) {
  const auto deleted = [&](const std::string& event) {
    const Imported imported = Read({Put("audit.log", event + "\n")});
    EXPECT_EQ(imported.kube.history.size(), 1u) << event;
    return imported.kube.history.size() == 1 && imported.kube.history[0].deleted;
  };
  constexpr const char* kMark = R"(,"deletionTimestamp":"2024-05-06T07:08:33Z")";
  const std::string grace = std::string(kMark) + R"(,"deletionGracePeriodSeconds":30)";
  const std::string no_grace = std::string(kMark) + R"(,"deletionGracePeriodSeconds":0)";
  const std::string finalizer = std::string(kMark) + R"(,"finalizers":["example.com/keep"])";
  EXPECT_FALSE(deleted(AuditOf("delete", grace, "alice"))) << "its grace begins";
  EXPECT_TRUE(deleted(AuditOf("delete", no_grace, "system:node:n"))) << "its kubelet ends it";
  EXPECT_TRUE(deleted(AuditOf("delete", "", "alice"))) << "what has no grace goes unmarked";
  EXPECT_FALSE(deleted(AuditOf("delete", finalizer, "alice")));
  EXPECT_FALSE(deleted(AuditOf("patch", finalizer, "controller")));
  EXPECT_TRUE(deleted(AuditOf("patch", kMark, "controller"))) << "the last finalizer goes, and the object with it";
}

TEST_F(ImportedMesh, AnAuditLogThatACollectorKeptIsRead) {
  const nlohmann::json record = {{"log", AuditOf("delete", "", "alice") + "\n"},
                                 {"kubernetes", {{"pod_name", "kube-apiserver-m1"}, {"container_name", "api"}}}};
  const Imported imported = Read({Put("audit.json", record.dump() + "\n" + record.dump() + "\n")});
  EXPECT_EQ(imported.kube.history.size(), 2u);
  EXPECT_TRUE(imported.evidence.refusals.empty());
}

TEST_F(ImportedMesh, ADeletedCollectionIsItsObjects) {
  constexpr const char* kEvent =
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"deletecollection","objectRef":{"resource":"services","namespace":"shop"},"responseStatus":{"code":200},"stageTimestamp":"2024-05-06T07:08:03.000000Z")";
  const Imported told =
      Read({Put("audit.log", std::string(kEvent) + R"(,"responseObject":{"apiVersion":"v1","kind":"ServiceList",)"
                                                   R"("items":[{"metadata":{"name":"web","namespace":"shop"}},)"
                                                   R"({"metadata":{"name":"api","namespace":"shop"}}]}})"
                                                   "\n")});
  ASSERT_EQ(told.kube.history.size(), 2u);
  EXPECT_TRUE(told.kube.history[1].deleted);
  EXPECT_EQ(told.kube.history[1].name, "api");
  const Imported untold = Read({Put("audit.log", std::string(kEvent) + "}\n")});
  EXPECT_TRUE(untold.kube.history.empty());
  EXPECT_TRUE(
      untold.evidence.refusals.reasons().contains("audit event of a deleted collection: its objects are not told"));
}

TEST_F(ImportedMesh, ObjectsOfTwoClustersAreNotTakenForOnes) {
  const auto dump = [](std::string_view uid) {
    return fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"kube-system","uid":"{}"}}}})",
                       uid);
  };
  Put("dumps/east/all.json", dump("a-1"));
  Put("dumps/west/all.json", dump("b-2"));
  ImportOptions options;
  options.sources = {folder_ / "dumps"};
  const auto mixed = Import(options);
  ASSERT_FALSE(mixed.ok());
  EXPECT_THAT(std::string(mixed.status().message()),
              testing::AllOf(HasSubstr("east/all.json:1"), HasSubstr("west/all.json:1"),
                             HasSubstr("Namespace kube-system"), HasSubstr("--cluster NAME=PATH")));
  options.clusters = {{"east", folder_ / "dumps/east"}, {"west", folder_ / "dumps/west"}};
  EXPECT_TRUE(Import(options).ok());
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
