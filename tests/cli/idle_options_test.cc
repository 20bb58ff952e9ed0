// What is asked for on the command line and would do nothing is an error that names it, and so nothing is passed over.
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace wavetank {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kOneCluster[] = "name: t\nclusters:\n  - {name: c1}\n";

class IdleOptions : public ProgramTest {
 protected:
  struct Call {
    std::string words;
    std::vector<std::string> told;
  };
  void ExpectAllRefused(const std::vector<Call>& calls) {
    for (const auto& [words, told] : calls) {
      SCOPED_TRACE(words);
      ExpectRefused(ProgramTest::Call(words), told);
    }
  }
  void SetUp() override {
    ProgramTest::SetUp();
    scenario_ = Write("s.yaml", kOneCluster);
  }
  std::string scenario_;
  std::string LogOfRun() {
    const std::string log = (folder_ / "a.wtlog").string();
    EXPECT_EQ(ProgramTest::Call(fmt::format("run {} -o {}", scenario_, log)).code, 0);
    return log;
  }
};

TEST_F(IdleOptions, WithoutWhatTheyAreAboutAreRefused) {
  ExpectAllRefused(
      {{"run " + scenario_ + " --metrics-interval 5s", {"--metrics-interval", "--metrics"}},
       {"run " + scenario_ + " --control-plane-dir d", {"--control-plane-dir", "--control-plane"}},
       {"check " + scenario_ + " --slo 99%", {"--slo", "--game-day"}},
       {"check " + scenario_ + " --sample 3", {"--sample", "--game-day"}},
       {"check " + scenario_ + " --failures 2", {"--failures", "--game-day"}},
       {"serve " + scenario_ + " --durability second", {"--durability", "--log"}},
       {"serve " + scenario_ + " --envoy e", {"--envoy", "--pod-folders"}},
       {"serve " + scenario_ + " --kube-token-file t", {"--kube-token-file", "--kube"}},
       {"serve " + scenario_ + " --delta", {"--delta", "--bootstrap"}},
       {"serve " + scenario_ + " --advertise h", {"--advertise", "--pod-folders"}},
       {"serve " + scenario_ + " --control-plane-env A=b", {"--control-plane-env", "--control-plane"}},
       {"apply " + folder_.string() + " --token-file t", {"--token-file", "--server"}},
       {"sweep -o d --report r --memory 64Mi", {"--memory", "sweep"}},
       {"envoy-diff cases --count 3", {"--count", "--generate"}},
       {"pc clusters " + scenario_ + " --proxy p@c1 --date 2024-01-01T00:00:00Z", {"--date", "--file"}},
       {"create-remote-secret --cluster c1 --auth-plugin-name p", {"--auth-plugin-name", "--auth-type plugin"}}});
}

TEST_F(IdleOptions, BesideWhatSaysItAlreadyAreRefused) {
  const std::string log = LogOfRun();
  ExpectAllRefused({{"run --from " + log + " --mend all", {"--mend", "--from"}},
                    {"run --from " + log + " --date 2024-01-01", {"--date", "--from"}},
                    {"run --from " + log + " --strict", {"--strict", "--from"}},
                    {"replay " + log + " --verify --inputs", {"--inputs", "--verify"}},
                    {"replay " + log + " --inputs --events", {"--events", "--inputs"}},
                    {"replay " + log + " --verify --until 3s", {"--until", "--verify"}},
                    {"replay " + log + " --claims", {"--claims", log, "import"}},
                    {"check " + log + " --seed 4", {"--seed", "event log"}},
                    {"check " + log + " --control-plane c1=c1", {"--control-plane c1=c1", log}},
                    {"check " + scenario_ + " --seed 4", {"--seed", "scenario"}},
                    {"check " + scenario_ + " --control-plane c1=c1", {"--control-plane c1=c1", "controlPlane:"}},
                    {"check " + scenario_ + " --game-day --fail-on info", {"--fail-on", "--game-day"}},
                    {"check " + scenario_ + " --rules", {"--rules", "mesh"}},
                    {"serve " + scenario_ + " --no-remote-secrets", {"--no-remote-secrets", "remoteSecrets"}},
                    {"serve " + scenario_ + " --namespace n", {"--namespace n", "namespace:"}},
                    {"apply c1=" + scenario_ + " --server 127.0.0.1:1 --strict", {"--strict", "--server"}},
                    {"synth fleet.yaml --schema", {"fleet", "--schema"}},
                    {"incidents A01 --page", {"--page", "id"}},
                    {"schema --tables --actions cpp", {"--tables", "--actions"}},
                    {"swarm --mesh " + scenario_ + " --clusters 2", {"--clusters", "--mesh"}},
                    {"why " + log + " --from p@c1 --to h:1 --port 3", {"--port", "--from"}},
                    {"why " + log + " --push 1 --proxy p@c1", {"--proxy", "--push"}}});
}

TEST_F(IdleOptions, OfAnotherTableAreRefused) {
  const std::string of = " " + scenario_ + " --proxy p@c1 ";
  ExpectAllRefused({{"pc clusters" + of + "--address 10.0.0.1", {"--address is of listeners and endpoints"}},
                    {"pc routes" + of + "--port 80", {"--port is of clusters and listeners and endpoints"}},
                    {"pc listeners" + of + "--fqdn hello", {"--fqdn is of clusters"}},
                    {"pc secret" + of + "--summary", {"--summary is of listeners and routes"}}});
}

TEST_F(IdleOptions, OfAScenarioBesideALogAreNoted) {
  const std::string log = LogOfRun();
  const std::string steps = Write("steps.yaml",
                                  "name: steps\nseed: 7\nca: own-roots\nclusters:\n  - {name: c1, network: n9}\n"
                                  "steps:\n  - {name: nothing}\n");
  const Ran ran = ProgramTest::Call(fmt::format("run --from {} {}", log, steps));
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.output, HasSubstr(fmt::format("{}: beside {}, which brings its own mesh, what it says of seed, ca, "
                                                "clusters' network has no effect here",
                                                steps, log)));
  const Ran alike = ProgramTest::Call(
      fmt::format("run --from {} {}", log, Write("alike.yaml", "name: a\nseed: 1\nsteps:\n  - {name: n}\n")));
  EXPECT_THAT(alike.output, Not(HasSubstr("no effect here"))) << "the same seed";
}

TEST_F(IdleOptions, RulesOfCheckArePrintedAsAskedFor) {
  const nlohmann::json rules = nlohmann::json::parse(ProgramTest::Call("check --rules --output json").output)["rules"];
  EXPECT_GT(rules.size(), 200u);
  for (const char* key : {"code", "name", "level", "cause", "remedy", "incident", "since", "until"})
    EXPECT_TRUE(rules.at(0).contains(key)) << key;
  ExpectRefused(ProgramTest::Call("check --rules --output sarif"), {"--rules", "table or json"});
}

}  // namespace
}  // namespace wavetank
