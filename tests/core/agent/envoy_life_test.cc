#include "core/agent/envoy_life.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Process final : public EnvoyControl {
 public:
  absl::Status Start() override { return start; }
  void Drain(absl::AnyInvocable<void(absl::Status)> done) override {
    ++drains;
    done(drain);
  }
  void ActiveConnections(absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override {
    ++asked;
    done(stats);
  }
  void Kill() override { ++kills; }

  absl::Status start, drain;
  absl::StatusOr<std::string> stats = std::string();
  int drains = 0, kills = 0, asked = 0;
};

class EnvoyLifeTest : public ::testing::Test {
 protected:
  EnvoyLife& Make(EnvoyLifeOptions options = {}) {
    options.log = [this](Level, std::string_view, std::string_view text) { said.emplace_back(text); };
    life = std::make_unique<EnvoyLife>(host, process, std::move(options), [this](absl::Status s) {
      ++ends;
      status = std::move(s);
    });
    life->Start();
    return *life;
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("pod", 0, nullptr);
  Process process;
  std::unique_ptr<EnvoyLife> life;
  std::vector<std::string> said;
  int ends = 0;
  absl::Status status;
};

TEST_F(EnvoyLifeTest, ToldToEndItDrainsForTheTerminationDrainAndKills) {
  EnvoyLife& envoy = Make({.termination_drain = 5s});
  envoy.Terminate();
  EXPECT_EQ(process.drains, 1);
  EXPECT_TRUE(envoy.terminating());
  Run(4s);
  EXPECT_EQ(process.kills, 0);
  Run(2s);
  EXPECT_EQ(process.kills, 1);
  envoy.OnExit({.signal = 9});
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(said, ElementsAre("Starting proxy agent", "starting", "Agent draining Proxy",
                                "Graceful termination period is 5s, starting...",
                                "Graceful termination period complete, terminating remaining proxies.",
                                "Aborting proxy", "Envoy aborted normally", "Agent has successfully terminated"));
}

TEST_F(EnvoyLifeTest, ASecondSignalChangesNothing) {
  EnvoyLife& envoy = Make();
  envoy.Terminate();
  envoy.Terminate();
  Run(10s);
  EXPECT_EQ(process.drains, 1);
  EXPECT_EQ(process.kills, 1);
}

TEST_F(EnvoyLifeTest, AKilledEnvoyEndsItsAgentWithAWordAboutMemory) {
  Make().OnExit({.signal = 9});
  EXPECT_EQ(ends, 1);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(said, Contains("Envoy may have been out of memory killed. Check memory usage and limits."));
  EXPECT_THAT(said, Contains("Envoy exited with error: signal: killed"));
}

TEST_F(EnvoyLifeTest, AnExitCodeIsTold) {
  Make().OnExit({.code = 1});
  EXPECT_THAT(said, Contains("Envoy exited with error: exit status 1"));
  EXPECT_THAT(said, Not(Contains(HasSubstr("memory"))));
}

TEST_F(EnvoyLifeTest, AnEnvoyThatEndsItselfIsNoError) {
  Make().OnExit({});
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(said, Contains("Envoy exited normally"));
}

TEST_F(EnvoyLifeTest, AProgramThatCannotBeRunIsTheEnd) {
  process.start = absl::NotFoundError("fork/exec /usr/local/bin/envoy: no such file or directory");
  Make();
  Run(1s);
  EXPECT_EQ(ends, 1);
  EXPECT_THAT(said, Contains(HasSubstr("Envoy exited with error: fork/exec")));
}

TEST_F(EnvoyLifeTest, WithExitOnZeroItWaitsForTheLastConnection) {
  EnvoyLife& envoy = Make({.minimum_drain = 5s, .exit_on_zero_active_connections = true});
  process.stats = "listener.0.0.0.0_15006.downstream_cx_active: 2\n";
  envoy.Terminate();
  Run(30s);
  EXPECT_EQ(process.kills, 0);
  EXPECT_THAT(said, Contains("There are still 2 active connections"));
  process.stats = "listener.0.0.0.0_15006.downstream_cx_active: 0\n";
  Run(2s);
  EXPECT_EQ(process.kills, 1);
}

TEST_F(EnvoyLifeTest, WithExitOnZeroNothingIsAskedBeforeTheMinimumDrain) {
  Make({.minimum_drain = 7s, .exit_on_zero_active_connections = true}).Terminate();
  Run(7900ms);
  EXPECT_EQ(process.asked, 0);
  Run(200ms);
  EXPECT_EQ(process.asked, 1);
}

TEST_F(EnvoyLifeTest, AnEnvoyThatDoesNotAnswerIsKilled) {
  EnvoyLife& envoy = Make({.exit_on_zero_active_connections = true});
  process.stats = absl::UnavailableError("connection refused");
  envoy.Terminate();
  Run(7s);
  EXPECT_EQ(process.kills, 1);
  EXPECT_THAT(said, Contains(HasSubstr("unable to get listener stats from Envoy")));
}

TEST(ActiveConnections, IstiosOwnListenersAndWorkersDoNotCount) {
  constexpr std::string_view kPage =
      "http.admin.downstream_cx_active: 1\nlistener.0.0.0.0_15006.downstream_cx_active: 3\n"
      "listener.0.0.0.0_15006.worker_0.downstream_cx_active: 3\nlistener.0.0.0.0_15021.downstream_cx_active: 7\n"
      "listener.0.0.0.0_15090.downstream_cx_active: 7\nlistener.admin.downstream_cx_active: 1\n"
      "listener.10.0.0.1_80.downstream_cx_active: 1\nlistener.bad.downstream_cx_active: x\nno separator\n";
  EXPECT_EQ(CountActiveConnections(kPage, 15021, 15090), 4);
  EXPECT_EQ(CountActiveConnections("", 15021, 15090), -1);
}

TEST(EnvoyArguments, LevelsOfComponentsAreTakenApart) {
  EnvoyArguments from;
  from.config = "etc/istio/proxy/envoy-rev.json";
  from.concurrency = 2;
  const std::vector<std::string> arguments = MakeEnvoyArguments(from);
  EXPECT_THAT(std::vector(arguments.end() - 6, arguments.end()),
              ElementsAre("-l", "warning", "--component-log-level", "misc:error", "--concurrency", "2"));
}

}  // namespace
}  // namespace wavetank::agent
