// A dump and what logs tell of the time before it, and the archive that `istioctl bug-report` writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "import/skeleton/mesh_of_objects.h"
#include "tests/import/imported.h"

namespace wavetank::importing {
namespace {

using testing::HasSubstr;
using testing::Not;

// From 07:08:00 to 07:09:00.
constexpr std::string_view kLines =
    "2024-05-06T07:08:00.000000Z\tinfo\tads\tADS: new connection for node:sleep-1.shop-1\n"
    "2024-05-06T07:08:10.100000Z\tinfo\tads\tPush debounce stable[2] 1 for config DestinationRule/shop/web: 100ms "
    "since "
    "last change, 100ms since last push, full=true\n"
    "2024-05-06T07:08:20.100000Z\tinfo\tads\tPush debounce stable[3] 1 for config VirtualService/shop/gone: 100ms "
    "since "
    "last change, 100ms since last push, full=true\n"
    "2024-05-06T07:08:30.000000Z\tinfo\tads\tIncremental push, service api.shop.svc.cluster.local at shard "
    "Kubernetes/east has no endpoints\n"
    "2024-05-06T07:08:30.100000Z\tinfo\tads\tPush debounce stable[4] 1 for config "
    "ServiceEntry/shop/api.shop.svc.cluster.local: 100ms since last change, 100ms since last push, full=false\n"
    "2024-05-06T07:08:40.600000Z\tinfo\tads\tPush debounce stable[5] 1 for config "
    "ServiceEntry/shop/web.shop.svc.cluster.local: 100ms since last change, 100ms since last push, full=false\n"
    "2024-05-06T07:09:00.100000Z\tinfo\tads\tPush debounce stable[6] 1 for config PeerAuthentication/shop/p: 100ms "
    "since "
    "last change, 100ms since last push, full=true\n";

constexpr std::string_view kObjects = R"(apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: istio-system, creationTimestamp: "2024-01-01T00:00:00Z"}
- apiVersion: v1
  kind: Pod
  metadata: {name: istiod-1, namespace: istio-system, labels: {app: istiod}, creationTimestamp: "2024-05-06T07:08:30Z"}
  spec: {containers: [{name: discovery, image: example/pilot:1.18.2, env: [{name: CLUSTER_ID, value: east}]}]}
  status: {phase: Running, podIP: 10.1.0.10, conditions: [{type: Ready, status: "True"}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: web-2, namespace: shop, labels: {app: web}, creationTimestamp: "2024-05-06T07:08:35Z"}
  spec: {containers: [{name: web, image: example/web}]}
  status: {phase: Running, podIP: 10.1.0.22, conditions: [{type: Ready, status: "True"}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: web-1, namespace: shop, labels: {app: web}, creationTimestamp: "2024-01-01T00:00:00Z"}
  spec: {containers: [{name: web, image: example/web}]}
  status: {phase: Running, podIP: 10.1.0.21, conditions: [{type: Ready, status: "True"}]}
- apiVersion: v1
  kind: Service
  metadata: {name: api, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
  spec: {clusterIP: 10.96.0.8, ports: [{name: http, port: 80}]}
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
  spec: {clusterIP: 10.96.0.7, ports: [{name: http, port: 80}]}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {name: web-x, namespace: shop, labels: {kubernetes.io/service-name: web}, creationTimestamp: "2024-01-01T00:00:00Z"}
  addressType: IPv4
  ports: [{name: http, port: 80}]
  endpoints:
  - {addresses: [10.1.0.21], conditions: {ready: true}, targetRef: {kind: Pod, name: web-1, namespace: shop}}
  - {addresses: [10.1.0.22], conditions: {ready: true}, targetRef: {kind: Pod, name: web-2, namespace: shop}}
- apiVersion: discovery.k8s.io/v1
  kind: EndpointSlice
  metadata: {name: api-x, namespace: shop, labels: {kubernetes.io/service-name: api}, creationTimestamp: "2024-01-01T00:00:00Z"}
  addressType: IPv4
  ports: [{name: http, port: 80}]
  endpoints: []
- apiVersion: networking.istio.io/v1beta1
  kind: DestinationRule
  metadata: {name: web, namespace: shop, creationTimestamp: "2024-01-01T00:00:00Z"}
  spec: {host: web.shop.svc.cluster.local}
- apiVersion: security.istio.io/v1beta1
  kind: PeerAuthentication
  metadata: {name: p, namespace: shop, creationTimestamp: "2024-05-06T07:08:59Z"}
  spec: {mtls: {mode: STRICT}}
)";

class BeforeDumpTest : public ImportTest {
 protected:
  Skeleton Mesh() {
    const auto mesh = MakeMeshOfObjects(imported_.evidence, imported_.kube);
    EXPECT_TRUE(mesh.ok()) << mesh.status();
    return *mesh;
  }
  void ReadBoth() { imported_ = Read({Put("istiod.log", kLines), Put("east.yaml", kObjects)}); }
  // "DestinationRule/web" and the like: "at 10.0: SPEC", of each input that is about it.
  static std::string Of(const Skeleton& mesh, std::string_view kind, std::string_view name) {
    std::string out;
    for (const replay::LogInput& input : WholeInputs(mesh)) {
      const nlohmann::json& object = input.kind == "apply" ? input.body["object"] : input.body;
      if (!object.contains("kind")) continue;
      const std::string is = object["kind"];
      const std::string its = input.kind == "apply" ? object["metadata"]["name"] : object["name"];
      if (is.substr(0, is.find('.')) != kind || its != name) continue;
      const double seconds =
          static_cast<double>((input.at - mesh.world.start - (input.at == mesh.world.start ? 0s : kComesUp)).count()) /
          1e9;
      out += fmt::format("{} at {:.1f}", input.kind, seconds);
      if (object.contains("endpoints")) out += fmt::format(" with {} endpoints", object["endpoints"].size());
      out += input.at == mesh.world.start ? " (first picture)\n" : "\n";
    }
    return out;
  }

  Imported imported_;
};

TEST_F(BeforeDumpTest, YoungObjectsComeAtTheirCreation) {
  ReadBoth();
  EXPECT_EQ(Of(Mesh(), "Pod", "web-2"), "apply at 35.0\n");
  // A line of its own knows the time better than a creation time of whole seconds.
  EXPECT_EQ(Of(Mesh(), "PeerAuthentication", "p"), "apply at 60.0\n");
}

// Each primary reads the Secrets of its own cluster.
TEST_F(BeforeDumpTest, ASecretIsOfTheClusterWhoseIstiodTellsOfIt) {
  std::string west(kObjects);
  const size_t id = west.find("value: east");
  ASSERT_NE(id, std::string::npos);
  west.replace(id, 11, "value: west");
  imported_ = Read({Put("istiod.log", kLines), Put("east.yaml", kObjects), Put("west.yaml", west)});
  IstiodRun& run = imported_.evidence.runs.emplace_back();
  run.replica = "istiod-of-west";
  run.cluster = "west";
  InferredInput& told = imported_.evidence.inputs.emplace_back();
  told.kind = InputKind::kRemoteSecret;
  told.at = ParseWall("2024-05-06T07:08:50.000000Z");
  told.replica = run.replica;
  told.ns = "istio-system";
  told.name = "istio-remote-secret-east";
  told.clusters = {{"east", "added"}};
  std::vector<std::string> clusters;
  for (const replay::LogInput& input : WholeInputs(Mesh())) {
    if (input.kind != "apply" || input.body["object"]["metadata"]["name"] != told.name) continue;
    clusters.push_back(input.body["cluster"]);
  }
  EXPECT_THAT(clusters, testing::ElementsAre("west"));
}

TEST_F(BeforeDumpTest, ASliceGetsAPodWhenALineTellsOfIt) {
  ReadBoth();
  EXPECT_EQ(Of(Mesh(), "EndpointSlice", "web-x"),
            "apply at 0.0 with 1 endpoints (first picture)\napply at 40.5 with 2 endpoints\n");
}

TEST_F(BeforeDumpTest, TheLastChangeOfAnObjectLeadsToTheDump) {
  ReadBoth();
  const Skeleton mesh = Mesh();
  EXPECT_EQ(Of(mesh, "DestinationRule", "web"), "apply at 0.0 (first picture)\napply at 10.0\n");
  std::string last;
  for (const replay::LogInput& input : WholeInputs(mesh)) {
    if (input.kind == "apply" && input.body["object"]["kind"] == "DestinationRule") {
      last = input.body["object"]["spec"].dump();
    }
  }
  EXPECT_EQ(last, R"({"host":"web.shop.svc.cluster.local"})");
}

TEST_F(BeforeDumpTest, WhatTheDumpLacksWasThereBeforeItsLastLine) {
  ReadBoth();
  EXPECT_EQ(Of(Mesh(), "VirtualService", "gone"), "apply at 0.0 (first picture)\ndelete at 20.0\n");
}

TEST_F(BeforeDumpTest, ASliceThatWasEmptiedHadEndpoints) {
  ReadBoth();
  EXPECT_EQ(Of(Mesh(), "EndpointSlice", "api-x"),
            "apply at 0.0 with 1 endpoints (first picture)\napply at 30.0 with 0 endpoints\n");
}

TEST_F(BeforeDumpTest, TheIstiodStaysAndWhatIsInferredIsTold) {
  ReadBoth();
  const Skeleton mesh = Mesh();
  EXPECT_EQ(Of(mesh, "Pod", "istiod-1"), "apply at 0.0 (first picture)\n");
  EXPECT_EQ(mesh.inferred.size(), 8u) << testing::PrintToString(mesh.inferred);
  EXPECT_THAT(testing::PrintToString(mesh.inferred), HasSubstr("VirtualService shop/gone in east.yaml was deleted"));
  EXPECT_THAT(testing::PrintToString(mesh.inferred), HasSubstr("Pod shop/sleep-1 in east.yaml went"));
  EXPECT_THAT(testing::PrintToString(mesh.notes), HasSubstr("8 changes before the dump are inferred"));
}

TEST_F(BeforeDumpTest, TheMeshPushesWhatTheLogTells) {
  ReadBoth();
  const Judgement judgement = Run(Mesh());
  EXPECT_GE(judgement.agree, 5u) << Words(judgement);
}

// As tools/bug-report of istioctl 1.18.2 lays it out.
class BugReportTest : public BeforeDumpTest {
 protected:
  std::string Report() {
    const std::string top = "bug-report/bug-report/";
    Put(top + "cluster/k8s-resources", kObjects);
    Put(top + "cluster/secrets", "NAMESPACE  NAME  TYPE  DATA  AGE\n");
    Put(top + "versions", "CLI version:\n");
    Put(top + "bug-report.log", "2024-05-06T07:20:00.000000Z\tinfo\tSTARTING kubectl get secrets\n");
    Put(top + "istio/istio-system/istiod-1/discovery.log", kLines);
    Put(top + "istio/istio-system/istiod-1/debug/clusterz",
        R"([{"id":"west","secretName":"istio-system/istio-remote-secret-west","syncStatus":"synced"}])");
    Put(top + "istio/istio-system/istiod-1/debug/syncz", R"([{"cluster_id":"east","proxy":"sleep-1.shop"}])");
    Put(top + "istio/istio-system/istiod-1/debug/inject", "{}");
    Put(top + "istio/istio-system/istiod-1/metrics", "# TYPE pilot_xds gauge\n");
    Put(top + "proxies/shop/sleep-1/istio-proxy.log",
        "2024-05-06T07:08:00.000000Z\tinfo\txdsproxy\tconnected\n"
        "[2024-05-06T07:08:01.000Z] \"GET / HTTP/1.1\" 200 - via_upstream - \"-\" 0 0 1 1 \"-\" \"curl\" \"id\" "
        "\"web.shop\" "
        "\"10.1.0.21:80\" outbound|80||web.shop.svc.cluster.local 10.1.7.7:1 10.96.0.7:80 10.1.7.7:2 - default\n");
    Put(top + "proxies/shop/sleep-1/config_dump?include_eds",
        R"({"configs":[{"@type":"type.googleapis.com/envoy.admin.v3.BootstrapConfigDump","bootstrap":{"node":{"id":)"
        R"("sidecar~10.1.7.7~sleep-1.shop~shop.svc.cluster.local","metadata":{"CLUSTER_ID":"east"}}}},)"
        R"({"@type":"type.googleapis.com/envoy.admin.v3.EndpointsConfigDump","dynamic_endpoint_configs":[)"
        R"({"endpoint_config":{"cluster_name":"outbound|80||web.shop.svc.cluster.local","endpoints":[{"lb_endpoints":[)"
        R"({"endpoint":{"address":{"socket_address":{"address":"10.1.0.21","port_value":80}}}}]}]}}]}]})");
    Put(top + "proxies/shop/sleep-1/netstat", "Active Internet connections\n");
    Put(top + "proxies/shop/sleep-1/stats/prometheus", "# TYPE envoy_x gauge\n");
    return folder_ / "bug-report";
  }
};

TEST_F(BugReportTest, TellsObjectsLogsRequestsAndWhatProxiesHeld) {
  const Imported imported = Read({Report()});
  EXPECT_TRUE(imported.evidence.refusals.empty()) << Summary(imported.evidence);
  EXPECT_EQ(imported.evidence.runs.size(), 1u);
  EXPECT_EQ(imported.traffic.lines, 1u);
  EXPECT_EQ(imported.kube.state.size(), 10u);
  int held = 0, connected = 0;
  for (const Claim& claim : imported.evidence.claims) {
    held += claim.kind == ClaimKind::kHeld && claim.name == "sleep-1.shop" && claim.count == 1 ? 1 : 0;
    connected += claim.kind == ClaimKind::kProxyConnected ? 1 : 0;
  }
  EXPECT_EQ(held, 1);
  EXPECT_EQ(connected, 1);
}

TEST_F(BugReportTest, LacksSecretsSoThatIstiodsOwnPageTellsTheRemoteClusters) {
  imported_ = Read({Report()});
  EXPECT_EQ(Of(Mesh(), "Secret", "istio-remote-secret-west"), "apply at 0.0 (first picture)\n");
}

TEST_F(BugReportTest, IsHeldAgainstTheMeshWhenAllHasHappened) {
  imported_ = Read({Report()});
  const std::string path = folder_ / "log.wtlog";
  ASSERT_TRUE(WriteLog(Mesh(), path, "test").ok());
  for (const bool same : {true, false}) {
    auto log = replay::LogReader::Open(path);
    ASSERT_TRUE(log.ok()) << log.status();
    replay::WorldTarget world;
    Judge judge;
    judge.AskWorld([&](const std::string& proxy, const std::string&) -> std::optional<HeldEndpoints> {
      EXPECT_EQ(proxy, "sleep-1.shop");
      EXPECT_GE(world.world()->Now() - world.world()->options().start, kComesUp + 60s);
      return HeldEndpoints{{"outbound|80||web.shop.svc.cluster.local", {same ? "10.1.0.21:80" : "10.1.0.99:80"}}};
    });
    JudgedTarget target(world, judge);
    ASSERT_TRUE(replay::Replay(**log, target).ok());
    for (const JudgedClaim& claim : judge.Finish().claims) {
      if (claim.claim["kind"] != "held") continue;
      EXPECT_EQ(claim.verdict, same ? Verdict::kAgrees : Verdict::kDisagrees) << claim.why;
      EXPECT_EQ(claim.why.find("real 10.1.0.21:80, here 10.1.0.99:80") == std::string::npos, same) << claim.why;
    }
  }
}

TEST_F(BugReportTest, WithBrokenFilesIsReadAsFarAsItGoes) {
  const std::string top = Report();
  Put("bug-report/bug-report/proxies/shop/sleep-1/config_dump?include_eds",
      "{\"configs\":[{\"@type\":\"type.googleapis.com/envoy.admin.v3.BootstrapConfigDump\"");
  Put("bug-report/bug-report/istio/istio-system/istiod-1/debug/clusterz", "[{\"id\":");
  Put("bug-report/bug-report/istio/istio-system/istiod-1/debug/syncz", "[1,null,{\"proxy\":7}]");
  const Imported imported = Read({top});
  EXPECT_EQ(imported.kube.state.size(), 10u);
  EXPECT_TRUE(imported.evidence.refusals.reasons().contains("no JSON"));
  EXPECT_TRUE(imported.evidence.refusals.reasons().contains("page of istiod that is no list"));
}

TEST_F(BeforeDumpTest, TablesOfIstioctlTellWhatProxiesHeld) {
  const Imported imported =
      Read({Put("sleep-1.shop.txt",
                "ENDPOINT          STATUS    OUTLIER CHECK   CLUSTER\n"
                "10.1.0.21:80      HEALTHY   OK              outbound|80||web.shop.svc.cluster.local\n"),
            Put("ps.txt",
                "NAME           CLUSTER   CDS      LDS      EDS      RDS        ECDS       ISTIOD     "
                "VERSION\nsleep-1.shop   east      SYNCED   SYNCED   SYNCED   NOT SENT   NOT SENT   "
                "istiod-1   1.18.2\n")});
  ASSERT_EQ(imported.evidence.claims.size(), 2u);
  EXPECT_EQ(imported.evidence.claims[0].name, "sleep-1.shop");
  EXPECT_EQ(imported.evidence.claims[1].type, "east");
  EXPECT_TRUE(imported.evidence.refusals.empty());
}

}  // namespace
}  // namespace wavetank::importing
