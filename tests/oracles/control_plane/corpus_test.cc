// The corpus of control-plane-diff: that it can be read, and, where a real istiod can be had, that it holds what ours
// holds after every step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "oracles/control_plane/control_plane_diff.h"
#include "scenarios/reader/read_scenario.h"
#include "tests/left_out.h"
#include "tests/long.h"

namespace wavetank::serve {
namespace {

const std::vector<std::string>& Corpus() {
  static const auto* const names = new std::vector<std::string>{"mesh", "odd", "orchard", "policies", "registry"};
  return *names;
}

// What only later releases know: for istio-1.30 and a pilot-discovery of it.
const std::vector<std::string>& LaterCorpus() {
  static const auto* const names = new std::vector<std::string>{"allowed", "gateway-api", "hosts",  "newer", "observed",
                                                                "outside", "patched",     "scoped", "tls",   "traffic"};
  return *names;
}

absl::StatusOr<scenario::Scenario> Load(const std::string& name) {
  return scenario::LoadScenario(WAVETANK_SOURCE_DIR "/tests/oracles/control_plane/corpus/" + name);
}

TEST(ControlPlaneCorpus, EveryScenarioCanBeRead) {
  std::vector<std::string> all = Corpus();
  all.insert(all.end(), LaterCorpus().begin(), LaterCorpus().end());
  for (const std::string& name : all) {
    const auto scenario = Load(name);
    ASSERT_TRUE(scenario.ok()) << name << ": " << scenario.status();
    EXPECT_GE(scenario->steps.size(), 4u) << name;
  }
}

TEST(ControlPlaneCorpus, ARealIstiodHoldsWhatOursHoldsAfterEveryStep) {
  NEEDS_LONG(LongTests());
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY names a pilot-discovery of Istio 1.18.2");
  for (const std::string& name : Corpus()) {
    DiffOptions options;
    options.control_plane.program = program;
    const auto result = DiffControlPlanes(*Load(name), options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status();
    EXPECT_TRUE(result->Judged() && result->Equal()) << name << "\n" << DifferencesText(*result);
  }
}

// Fields of today, at the release that reads them all.
TEST(ControlPlaneCorpus, ARealIstiodOf130HoldsWhatOursHoldsOfNewerFields) {
  NEEDS_LONG(LongTests());
  const char* program = std::getenv("WAVETANK_PILOT_DISCOVERY_1_30");
  NEEDS_BROUGHT(program != nullptr, "istiod", "WAVETANK_PILOT_DISCOVERY_1_30 names a pilot-discovery of Istio 1.30.3");
  DiffOptions options;
  options.profile = "istio-1.30";
  options.control_plane.program = program;
  options.control_plane.environment["KUBE_FEATURE_WatchListClient"] = "false";
  for (const char* name : {"newer", "hosts"}) {
    const auto result = DiffControlPlanes(*Load(name), options);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status();
    EXPECT_TRUE(result->Judged() && result->Equal()) << name << "\n" << DifferencesText(*result);
  }
}

}  // namespace
}  // namespace wavetank::serve
