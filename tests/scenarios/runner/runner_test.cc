#include "scenarios/runner/runner.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replay/event_log.h"
#include "replay/replayer.h"
#include "replay/secret_source.h"
#include "replay/world_target.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/xds_snapshot.h"
#include "scenarios/survey/mesh_survey.h"
#include "sim/world.h"
#include "tests/replay/temp_folder.h"

namespace wavetank::scenario {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kManifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";

// One cluster with helloworld v1 and sleep; `rest` goes on where the steps are.
std::string OneCluster(const std::string& rest) {
  return fmt::format(R"(
name: one
clusters:
  - name: cluster1
    network: network1
    manifests: [{0}one-network.yaml, {0}istiod.yaml, {0}sample.yaml, {0}helloworld-service.yaml, {0}helloworld-v1.yaml, {0}sleep.yaml]
flows:
  - {{name: hello, from: {{cluster: cluster1, namespace: sample, app: sleep}}, to: "helloworld.sample:5000", rate: 100/s}}
steps:
{1})",
                     kManifests, rest);
}

absl::StatusOr<RunResult> RunText(const std::string& text, const RunOptions& options = {}) {
  const absl::StatusOr<Scenario> scenario = ParseScenario("test.yaml", text);
  if (!scenario.ok()) return scenario.status();
  return Run(*scenario, options);
}

// An HTTP filter at the front of all outbound chains.
std::string WithFilter(const std::string& type) {
  return fmt::format(R"(      - apply:
          cluster: cluster1
          namespace: sample
          objects:
            - apiVersion: networking.istio.io/v1alpha3
              kind: EnvoyFilter
              metadata: {{name: front, namespace: sample}}
              spec:
                configPatches:
                  - applyTo: HTTP_FILTER
                    match: {{context: SIDECAR_OUTBOUND, listener: {{filterChain: {{filter: {{name: envoy.filters.network.http_connection_manager}}}}}}}}
                    patch:
                      operation: INSERT_FIRST
                      value:
                        name: front
                        typed_config: {{"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/{}, value: {{}}}}
)",
                     type);
}

TEST(Runner, WhatEnvoysRefuseFailsTheStepUnlessItIsExpected) {
  const std::string step = "  - name: refused\n    do:\n" + WithFilter("no.such.Filter");
  const absl::StatusOr<RunResult> result = RunText(OneCluster(step));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->Passed());
  ASSERT_EQ(result->steps[0].expectations.size(), 1u);
  EXPECT_THAT(result->steps[0].expectations[0].explanation,
              AllOf(HasSubstr("refused LDS"), HasSubstr("no.such.Filter")));
  ASSERT_FALSE(result->nacks.empty());
  bool sleep = false;
  for (const Nack& nack : result->nacks) sleep = sleep || nack.proxy == "sleep@cluster1";
  EXPECT_TRUE(sleep);

  const absl::StatusOr<RunResult> expected = RunText(OneCluster(step + "    expect: [{nacks: any}]\n"));
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(expected->Passed());
  EXPECT_EQ(expected->nacks.size(), result->nacks.size());
}

TEST(Runner, WhatEnvoysTakeWithoutEffectIsNamedWithItsProxies) {
  const absl::StatusOr<RunResult> result =
      RunText(OneCluster("  - name: tapped\n    do:\n" +
                         WithFilter("envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency")));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->Passed());
  ASSERT_EQ(result->without_effect.size(), 1u);
  EXPECT_EQ(result->without_effect[0].kind, "HTTP filter");
  EXPECT_THAT(result->without_effect[0].proxies, testing::Contains("sleep@cluster1"));
}

TEST(Runner, AScenarioWithoutStepsTellsWhatItsStartNoted) {
  const absl::StatusOr<RunResult> result = RunText(R"(clusters: [{name: east, manifests: [{objects: [{apiVersion: v1,
      kind: Namespace, metadata: {name: istio-system, labels: {topology.istio.io/network: vpc-7}}}]}]}])");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->notes, testing::Contains(HasSubstr("label istio-system with network vpc-7")));
}

TEST(Runner, AnExpectationThatDoesNotHoldSaysWhatWasFound) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: at rest
    then: [{flow: hello, requests: 50}]
    expect:
      - split: {flow: hello, is: {v1: 50%, v2: 50%}}
      - requests: {failed: 0}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->Passed());
  const auto& expectations = result->steps[0].expectations;
  EXPECT_FALSE(expectations[0].held);
  EXPECT_THAT(expectations[0].explanation, HasSubstr("v1 100 % (50)"));
  EXPECT_GT(expectations[0].line, 0);
  EXPECT_TRUE(expectations[1].held) << expectations[1].explanation;
}

TEST(Runner, AChangeIsFollowedToTheLastProxyStageByStage) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: scaled
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}]
    expect: [{converged: {within: <= 5s}}]
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->Passed());
  const Convergence& c = result->steps[0].convergence;
  ASSERT_FALSE(c.proxies.empty());
  for (const ProxyConvergence& proxy : c.proxies) {
    Duration sum{};
    for (const Duration stage : proxy.stages) sum += stage;
    EXPECT_EQ(sum, proxy.total) << proxy.proxy;
  }
  // Debouncing waits for 100 ms of quiet.
  EXPECT_GE(c.proxies.front().stages[static_cast<size_t>(Stage::kDebounce)], 100ms);
}

// What faults of the API server do to convergence.
TEST(Runner, StaleReadsKeepAChangeFromProxiesUntilTheyEnd) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: stale
    do:
      - apiServer: {cluster: cluster1, fault: stale-reads}
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}
    linger: 5s
    expect:
      - endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 1}
  - name: over
    do: [{apiServer: {cluster: cluster1, fault: none}}]
    expect:
      - eventually: {within: 2s, endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 2}}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& step : result->steps) {
    for (const auto& e : step.expectations) EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
  }
}

TEST(Runner, TooManyRequestsAndAWrongClockLeaveRunningWatchesAlone) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: scaled in spite of both
    do:
      - apiServer: {cluster: cluster1, fault: too-many-requests, retryAfter: 10s}
      - apiServer: {cluster: cluster1, fault: clock-skew, skew: -10m}
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}
    linger: 5s
    expect:
      - endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 2}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& e : result->steps[0].expectations) EXPECT_TRUE(e.held) << e.text << ": " << e.explanation;
}

TEST(Runner, RequestsToNobodyFailWithTheClientsWords) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: gone
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}}]
    then: [{flow: hello, requests: 20}]
    expect:
      - flags: {flow: hello, only: [UH]}
      - requests: {failed: 100%}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& e : result->steps[0].expectations) EXPECT_TRUE(e.held) << e.text << ": " << e.explanation;
}

// The wave is between two phases of traffic: what goes wrong during it is not seen after it.
const char kWave[] = R"(
  - name: down and up
    do:
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 0}
    meanwhile: [{flow: hello}]
    linger: 3s
  - name: back
    do:
      - scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 1}
    meanwhile: [{flow: hello}]
    linger: 3s
    then: [{flow: hello, requests: 100}]
    expect:
)";

std::vector<ExpectationResult> ExpectedOfTheWave(const std::string& expectations) {
  const absl::StatusOr<RunResult> result = RunText(OneCluster(kWave + expectations));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->steps[1].expectations : std::vector<ExpectationResult>();
}

TEST(Runner, AlwaysIsAboutEverySecondOfAllTrafficOfAStep) {
  const auto expectations = ExpectedOfTheWave(R"(
      - requests: {failed: 0}
      - always: {requests: {failed: 0}}
      - always: {requests: {of: then, failed: 0}}
      - always: {requests: {of: meanwhile, failed: 0}}
      - always: {requests: {failed: "<= 100%"}}
)");
  ASSERT_EQ(expectations.size(), 5u);
  EXPECT_TRUE(expectations[0].held) << expectations[0].explanation;
  EXPECT_FALSE(expectations[1].held);
  EXPECT_THAT(expectations[1].explanation, HasSubstr("in the second that ended 0 s before: "));
  EXPECT_TRUE(expectations[2].held) << expectations[2].explanation;
  EXPECT_THAT(expectations[2].explanation, HasSubstr("in each of "));
  EXPECT_FALSE(expectations[3].held);
  EXPECT_TRUE(expectations[4].held) << expectations[4].explanation;
}

TEST(Runner, EventuallyIsAboutOneSecondThatBeganSoonEnough) {
  const auto expectations = ExpectedOfTheWave(R"(
      - eventually: {within: 30s, requests: {failed: 0}}
      - eventually: {within: 1s, requests: {failed: 0}}
      - eventually: {within: 30s, split: {is: {v1: 100%}}}
      - eventually: {within: 30s, split: {is: {v2: 100%}}}
      - eventually: {within: 30s, requests: {p50: "<= 1ns"}}
)");
  ASSERT_EQ(expectations.size(), 5u);
  EXPECT_TRUE(expectations[0].held) << expectations[0].explanation;
  // A pod takes longer than a second to come back.
  EXPECT_FALSE(expectations[1].held);
  EXPECT_THAT(expectations[1].explanation, HasSubstr("in none of 1 seconds"));
  EXPECT_TRUE(expectations[2].held) << expectations[2].explanation;
  EXPECT_FALSE(expectations[3].held);
  EXPECT_FALSE(expectations[4].held);
}

TEST(Runner, WhatMustAlwaysBeIsLookedAtAfterTheMeshHasSettledToo) {
  // The second step's traffic is what takes the time; nothing is done in it, so nothing settles.
  const absl::StatusOr<RunResult> result = RunText(OneCluster(R"(
  - name: rest
    then: [{flow: hello, requests: 50}]
    expect:
      - always: {endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 1}}
      - always: {endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 2}}
  - name: scaled
    do: [{scale: {cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}]
    expect:
      - always: {endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 1}}
      - eventually: {within: 10s, endpoints: {of_proxy: {cluster: cluster1, namespace: sample, app: sleep}, host: helloworld.sample.svc.cluster.local, port: 5000, count: 2}}
)"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->steps[0].expectations[0].held) << result->steps[0].expectations[0].explanation;
  EXPECT_FALSE(result->steps[0].expectations[1].held);
  EXPECT_FALSE(result->steps[1].expectations[0].held);
  EXPECT_THAT(result->steps[1].expectations[0].explanation, HasSubstr("after 1."));
  EXPECT_TRUE(result->steps[1].expectations[1].held) << result->steps[1].expectations[1].explanation;
}

TEST(Runner, StopsBeforeAStepAndShowsWhatAProxyHolds) {
  XdsSnapshot sleep;
  RunOptions options;
  options.until_step = 0;
  Subscription responses;
  options.on_world = [&](sim::World& world) {
    responses = world.commons().on_xds.Add([&](const std::string& proxy, const pilot::DiscoveryResponse& response) {
      if (proxy.rfind("sleep-", 0) == 0) sleep.Apply(response);
    });
  };
  const absl::StatusOr<RunResult> result = RunText(OneCluster("  - {name: never}\n"), options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->steps.empty());
  EXPECT_EQ(sleep.of(pilot::XdsType::kCds).count("outbound|5000||helloworld.sample.svc.cluster.local"), 1u);
  EXPECT_EQ(sleep.of(pilot::XdsType::kEds).count("outbound|5000||helloworld.sample.svc.cluster.local"), 1u);
}

TEST(Runner, RefusesAnUnknownProfileWithTheBases) {
  RunOptions options;
  options.profile = "istio-1.18+no-such-switch";
  const absl::StatusOr<RunResult> result = RunText(OneCluster("  - {name: never}\n"), options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("one of istio-1.18, istio-1.24"));
}

TEST(Runner, ALogHoldsNoKeyAndIsReplayedWithTheManifestsThatHaveIt) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "wavetank-keys";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string manifest = (folder / "secret.yaml").string(), log = (folder / "run.wtlog").string();
  const std::string key = "TUlJRXBBSUJBQUtDQVFFQQ";
  std::ofstream(manifest)
      << "apiVersion: v1\nkind: Secret\nmetadata: {name: gateway-tls, namespace: sample}\nstringData:\n"
      << "  tls.key: |\n    -----BEGIN PRIVATE KEY-----\n    " << key << "\n    -----END PRIVATE KEY-----\n";
  RunOptions options;
  options.log = log;
  const absl::StatusOr<RunResult> ran = RunText(OneCluster(fmt::format(R"(
  - name: a Secret comes
    do: [{{apply: {{cluster: cluster1, manifest: {}}}}}]
)",
                                                                       manifest)),
                                                options);
  ASSERT_TRUE(ran.ok()) << ran.status();
  std::ifstream in(log, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(bytes.find(key), std::string::npos);

  const auto replay = [&](const std::vector<std::string>& secrets) {
    auto reader = replay::LogReader::Open(log);
    auto source = replay::SecretSource::Load(secrets);
    EXPECT_TRUE(reader.ok() && source.ok());
    replay::WorldTarget target(*std::move(source));
    return replay::Replay(**reader, target);
  };
  const absl::StatusOr<replay::ReplayResult> without = replay({});
  EXPECT_EQ(without.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(without.status().message()),
              AllOf(HasSubstr("Secret sample/gateway-tls"), HasSubstr("--secrets")));
  const absl::StatusOr<replay::ReplayResult> with = replay({folder.string()});
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_FALSE(with->divergence) << replay::Describe(*with->divergence);
  EXPECT_EQ(with->trace_digest, ran->digest);
  std::filesystem::remove_all(folder);
}

TEST(Runner, AnInputOfALogThatNamesNoClusterIsToldByItsFields) {
  const TempFolder folder;
  RunOptions options;
  options.log = folder / "run.wtlog";
  const absl::StatusOr<RunResult> ran =
      RunText(OneCluster("  - {name: slower, do: [{link: {between: [cluster1, cluster1], latency: 3ms}}]}\n"), options);
  ASSERT_TRUE(ran.ok()) << ran.status();
  RunOptions again;
  again.from = options.log;
  const absl::StatusOr<RunResult> changes = RunLog(again);
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_THAT(changes->steps.back().actions, ElementsAre("link (between cluster1 cluster1, latencyNs 3000000)"));
}

TEST(Runner, ARequestThroughAGatewayIsDrawnThroughIt) {
  const absl::StatusOr<Scenario> scenario =
      LoadScenario(WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network/scenario.yaml");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  RunOptions options;
  options.until_step = 1;
  const absl::StatusOr<RunResult> result = scenario::Run(*scenario, options);
  ASSERT_TRUE(result.ok()) << result.status();
  std::map<std::pair<std::string, std::string>, int> calls;
  for (const TopologyEdge& edge : result->edges) {
    if (edge.label.find_first_not_of("0123456789") == std::string::npos)
      calls[{edge.from, edge.to}] = std::stoi(edge.label);
  }
  const std::string sleep = "cluster1/sample/sleep", gateway = "cluster2/istio-system/istio-eastwestgateway";
  const int home = calls[{sleep, "cluster1/sample/helloworld v1"}], away = calls[{sleep, gateway}];
  EXPECT_EQ(home + away, 1000);
  EXPECT_GT(away, 0);
  EXPECT_EQ((calls[{gateway, "cluster2/sample/helloworld v2"}]), away);
  EXPECT_FALSE((calls.contains({sleep, "cluster2/sample/helloworld v2"})));
}

TEST(Runner, AGatewayThatIsGoneIsDrawnWithTheTriesThatFailedAtIt) {
  const absl::StatusOr<RunResult> result = RunText("name: a gateway is lost\nextends: " WAVETANK_SOURCE_DIR
                                                   R"(/scenarios/multi-primary-multi-network/scenario.yaml
steps:
  - name: at rest
    then: [{flow: from-cluster1, requests: 200}]
  - name: gateway lost
    do: [{scale: {cluster: cluster2, deployment: istio-system/istio-eastwestgateway, replicas: 0}}]
    then: [{flow: from-cluster1, requests: 200}]
)");
  ASSERT_TRUE(result.ok()) << result.status();
  const std::string gateway = "cluster2/istio-system/istio-eastwestgateway";
  const auto node =
      std::find_if(result->nodes.begin(), result->nodes.end(), [&](const TopologyNode& n) { return n.id == gateway; });
  ASSERT_NE(node, result->nodes.end());
  EXPECT_EQ(node->kind, "gateway");
  EXPECT_THAT(node->label, HasSubstr("gone"));
  const auto edge = std::find_if(result->edges.begin(), result->edges.end(), [&](const TopologyEdge& e) {
    return e.from == "cluster1/sample/sleep" && e.to == gateway;
  });
  ASSERT_NE(edge, result->edges.end());
  EXPECT_GT(edge->failed, 0);
  EXPECT_GT(edge->tries, edge->failed);
}

TEST(Survey, TellsServicesEndpointsAndWhoReachesWhat) {
  SurveyOptions options;
  options.requests = 10;
  for (const char* number : {"1", "2"}) {
    const std::string n = number;
    options.clusters.push_back({"cluster" + n,
                                {kManifests + "eastwest-network" + n + ".yaml", kManifests + "expose-services.yaml",
                                 kManifests + "sample.yaml", kManifests + "helloworld-service.yaml",
                                 kManifests + "helloworld-v" + n + ".yaml", kManifests + "sleep.yaml"},
                                "",
                                ""});
  }
  const absl::StatusOr<Survey> survey = SurveyMesh(options);
  ASSERT_TRUE(survey.ok()) << survey.status();
  const auto row = std::find_if(survey->reachability.begin(), survey->reachability.end(), [](const auto& r) {
    return r.client_cluster == "cluster1" && r.client == "sleep.sample" && r.service == "helloworld.sample:5000";
  });
  ASSERT_NE(row, survey->reachability.end());
  EXPECT_TRUE(row->failed.empty());
  EXPECT_GT(row->answered_by.at("cluster1"), 0);
  EXPECT_GT(row->answered_by.at("cluster2"), 0);
  // cluster1 sees cluster2's pod behind its gateway.
  EXPECT_TRUE(std::any_of(survey->endpoints.begin(), survey->endpoints.end(), [](const ProxyEndpoints& held) {
    return held.cluster == "cluster1" && std::any_of(held.rows->begin(), held.rows->end(), [](const EndpointRow& e) {
             return e.upstream == "outbound|5000||helloworld.sample.svc.cluster.local" &&
                    e.endpoint == "172.30.2.1:15443";
           });
  }));
  EXPECT_THAT(survey->notes, ::testing::Not(::testing::Contains(::testing::HasSubstr("without a sidecar"))));
}

TEST(Survey, SaysWhichPortsNoContainerDeclares) {
  SurveyOptions options;
  options.requests = 1;
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "undeclared.yaml";
  std::ofstream(file) << R"(
apiVersion: v1
kind: Service
metadata: {name: web, namespace: sample}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: http-admin, port: 9000}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: sample}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: x, ports: [{containerPort: 8080}]}]}
)";
  options.clusters = {{"east", {kManifests + "sample.yaml", file}, "", ""}};
  const absl::StatusOr<Survey> survey = SurveyMesh(options);
  std::filesystem::remove(file);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT(survey->notes,
              ::testing::Contains(::testing::HasSubstr("east: connections to web.sample are refused: no container of "
                                                       "its pods declares port 9000 ")));
}

TEST(Survey, WhereAllRequestsWouldBeTooManyFewerAreSentAndThatIsSaid) {
  SurveyOptions options;
  options.clusters = {{"east", {kManifests + "helloworld-service.yaml", kManifests + "helloworld-v1.yaml"}, "", ""}};
  options.too_many = 7;
  const absl::StatusOr<Survey> fewer = SurveyMesh(options);
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  ASSERT_EQ(fewer->reachability.size(), 1u);
  EXPECT_EQ(fewer->reachability[0].answered_by, (std::map<std::string, int64_t>{{"east", 7}}));
  EXPECT_THAT(fewer->notes, ::testing::Contains("1 clients call 1 Services' ports, 7 requests each; --requests 20 "
                                                "sends as many as in smaller meshes"));
  options.requests = 9;
  const absl::StatusOr<Survey> told = SurveyMesh(options);
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->reachability[0].answered_by, (std::map<std::string, int64_t>{{"east", 9}}));
  EXPECT_THAT(told->notes, ::testing::Not(::testing::Contains(::testing::HasSubstr("requests each"))));
}

TEST(Survey, ProxiesThatHoldTheSameShareOneListOfEndpoints) {
  SurveyOptions options;
  options.requests = 0;
  options.clusters = {{"east", {kManifests + "sample.yaml", kManifests + "sleep.yaml"}, "", ""},
                      {"west", {kManifests + "sample.yaml", kManifests + "sleep.yaml"}, "", ""}};
  const absl::StatusOr<Survey> survey = SurveyMesh(options);
  ASSERT_TRUE(survey.ok()) << survey.status();
  for (const ProxyEndpoints& one : survey->endpoints) {
    for (const ProxyEndpoints& other : survey->endpoints) {
      EXPECT_EQ(*one.rows == *other.rows, one.rows == other.rows) << one.proxy << " and " << other.proxy;
    }
  }
}

TEST(Survey, SaysWhoIsOutsideTheMesh) {
  SurveyOptions options;
  options.requests = 1;
  // Without sample.yaml the namespace has no label for injection.
  options.clusters = {{"east", {kManifests + "helloworld-service.yaml", kManifests + "helloworld-v1.yaml"}, "", ""}};
  const absl::StatusOr<Survey> survey = SurveyMesh(options);
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT(survey->notes,
              ::testing::Contains(::testing::HasSubstr("east: helloworld in namespace sample is without a "
                                                       "sidecar")));
}

TEST(Survey, WhatAnApiServerWouldRefuseIsSaidWhereItStands) {
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "refused.yaml";
  std::ofstream(file) << "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"
                         "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: a}\n"
                         "spec: {ports: [{port: 70000, targetPort: 80}]}\n";
  SurveyOptions options;
  options.clusters = {{"east", {file.string()}, "", ""}};
  const absl::StatusOr<Survey> survey = SurveyMesh(options);
  EXPECT_EQ(std::string(survey.status().message()),
            file.string() +
                ":5: Service \"web\" is invalid: spec.ports[0].port: Invalid value: 70000: must be between 1 "
                "and 65535, inclusive");
}

TEST(Runner, KnowsTheCommandThatDoesItAgain) {
  absl::StatusOr<Scenario> scenario = ParseScenario("test.yaml", OneCluster("  - {name: nothing}\n"));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  scenario->file = "my stories/it's.yaml";
  scenario->settings = {"flows.hello.rate=1/s"};
  std::string told;
  RunOptions options;
  options.seed = 7;
  options.profile = "istio-1.30";
  options.until_step = 0;
  options.on_world = [&](sim::World& world) { told = world.kernel().run().reproduce(); };
  const absl::StatusOr<RunResult> result = scenario::Run(*scenario, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(told, "wavetank run 'my stories/it'\\''s.yaml' --seed 7 --profile istio-1.30 --set flows.hello.rate=1/s");
  EXPECT_THAT(result->notes, testing::Contains("set: flows.hello.rate=1/s, in place of what the scenario says"));
}

}  // namespace
}  // namespace wavetank::scenario
