// What each fault of an API server does to convergence: a Deployment is scaled while the fault lasts, and a sidecar's
// endpoints tell when the mesh has followed. Stale reads, 429 and a wrong clock: runner_test.cc.
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "scenarios/reader/read_scenario.h"
#include "scenarios/runner/runner.h"

namespace wavetank::scenario {
namespace {

const std::string kFaultManifests = WAVETANK_SOURCE_DIR "/scenarios/manifests/";

std::string Endpoints(int count) {
  return fmt::format(
      "endpoints: {{of_proxy: {{cluster: cluster1, namespace: sample, app: sleep}}, host: "
      "helloworld.sample.svc.cluster.local, port: 5000, count: {}}}",
      count);
}

// Scaled from 1 to 2 under `fault`; `during` and `after` are expectations of the time with the fault and without it.
void ExpectUnder(const std::string& fault, const std::string& during, const std::string& after) {
  const std::string text = fmt::format(R"(
name: fault
clusters:
  - name: cluster1
    network: network1
    manifests: [{0}one-network.yaml, {0}istiod.yaml, {0}sample.yaml, {0}helloworld-service.yaml, {0}helloworld-v1.yaml, {0}sleep.yaml]
steps:
  - name: scaled under it
    do:
      - apiServer: {{cluster: cluster1, {1}}}
      - scale: {{cluster: cluster1, deployment: sample/helloworld-v1, replicas: 2}}
    linger: 10s
    expect:
      - {2}
  - name: over
    do: [{{apiServer: {{cluster: cluster1, fault: none}}}}]
    linger: 60s
    expect:
      - {3}
)",
                                       kFaultManifests, fault, during, after);
  const absl::StatusOr<Scenario> scenario = ParseScenario("test.yaml", text);
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const absl::StatusOr<RunResult> result = Run(*scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& step : result->steps) {
    for (const auto& e : step.expectations) EXPECT_TRUE(e.held) << step.name << ": " << e.text << ": " << e.explanation;
  }
}

std::string Within(const std::string& time, int count) {
  return fmt::format("eventually: {{within: {}, {}}}", time, Endpoints(count));
}
std::string Always(int count) { return fmt::format("always: {{{}}}", Endpoints(count)); }

// For comparison: a pod takes 1 to 2 s to be ready.
TEST(ApiFaults, WithoutOneTheMeshFollowsAsSoonAsThePodIsReady) {
  ExpectUnder("fault: none", Within("3s", 2), Always(2));
}

TEST(ApiFaults, AServerThatIsUnreachableHoldsEverythingBackUntilItIsBackAndABackOffHasEnded) {
  ExpectUnder("fault: unreachable", Always(1), Within("60s", 2));
}

TEST(ApiFaults, AServerThatRefusesItsTokenHoldsEverythingBackUntilItTakesIt) {
  ExpectUnder("fault: unauthorized", Always(1), Within("60s", 2));
}

TEST(ApiFaults, ASlowServerMakesTheMeshLateByThatMuch) {
  ExpectUnder("fault: slow, latency: 2s", Within("8s", 2), Always(2));
}

TEST(ApiFaults, DroppedWatchesAreTakenUpWhereTheyWere) {
  ExpectUnder("fault: watches-dropped", Within("5s", 2), Always(2));
}

TEST(ApiFaults, AfterAHistoryThatIsGoneEverythingIsListedAgain) {
  ExpectUnder("fault: history-gone", Within("6s", 2), Always(2));
}

}  // namespace
}  // namespace wavetank::scenario
