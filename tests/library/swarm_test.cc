#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/long.h"
#include "wavetank/value.h"

namespace wavetank {
namespace {

using testing::HasSubstr;
using testing::Not;

class Swarm : public ProgramTest {};

// What 1.18.2 itself gets wrong stands in docs/swarm.md, and is no failure of ours.
TEST_F(Swarm, ManySeedsHold) {
  const Ran ran = Call(LongTests() ? "swarm --seeds 1-3000 --time 30m --json" : "swarm --seeds 1-60 --json");
  Value result;
  ASSERT_TRUE(Value::Parse(ran.output, &result)) << ran.error;
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_GE(result["seeds"].Integer(), 60);
  EXPECT_GE(result["runTwice"].Integer(), 3);
  // A swarm that reaches nothing rare shows nothing.
  for (const char* row : {"many-events-one-push", "pushed-before-ack", "stream-broke", "line-cut", "gateways-changed",
                          "request-failed", "fault-before-sync", "superseded-while-warming"})
    EXPECT_GT(result["sometimes"][row].Integer(), 0) << row;
}

// A release without the bugs meets none; that others meet them is no failure of a seed.
TEST_F(Swarm, NamedInvariantsAreWatchedAndBugsOfTheReleaseAreExpected) {
  const auto expected = [&](const std::string& arguments) {
    const Ran ran = Call("swarm " + arguments + " --json");
    EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 4000);
    Value result;
    EXPECT_TRUE(Value::Parse(ran.output, &result)) << ran.error;
    return result["expected"];
  };
  EXPECT_GT(expected("--seeds 1-13 --invariants all")["A01"].Integer(), 0);
  EXPECT_EQ(expected("--seeds 23 --invariants replicas-agree")["kept-address"].Integer(), 1);
  EXPECT_EQ(expected("--seeds 271 --invariants replicas-agree --buggify seed")["early-pod"].Integer(), 1);
  EXPECT_EQ(expected("--seeds 58 --invariants reconnecting-loses-nothing")["A34"].Integer(), 1);
  EXPECT_EQ(expected("--seeds 1-13").Print(), "{}");
  EXPECT_EQ(expected("--seeds 1-13 --invariants no-address-twice --profile istio-1.18+gateway-once-per-cla").Print(),
            "{}");
}

// 1.30.3 loses what it knew of a cluster whose remote Secret changes, until it starts again; then everything must hold.
TEST_F(Swarm, AReleaseThatLosesEndpointsIsStartedAgainBeforeMoreIsDemanded) {
  for (const char* watched : {"", " --invariants all"}) {
    const Ran ran = Call(std::string("swarm --profile istio-1.30 --seeds 3400031 --twice 0") + watched);
    EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 2000);
    EXPECT_THAT(ran.output, HasSubstr("expected: swap-loses-endpoints in 1 seed ("));
  }
  const Ran mended =
      Call("swarm --profile istio-1.30-swap-loses-endpoints-swap-loses-gateways --seeds 3400031 --twice 0");
  EXPECT_EQ(mended.code, 0) << mended.output.substr(0, 2000);
  EXPECT_THAT(mended.output, Not(HasSubstr("expected:")));
}

// What these seeds once broke was demanded too early: behind an API server that had answered from the past, and whose
// clients waited to try again; across a line that was cut; of pods that had really gone and come again; of a pod that
// started while the remote Secret of another cluster was deleted, whose endpoints it was to lose.
TEST_F(Swarm, NothingIsDemandedOfWhomNobodyTells) {
  const Ran deleted = Call("swarm --invariants all --twice 0 --buggify seed --seeds 20219");
  EXPECT_EQ(deleted.code, 0) << deleted.output.substr(0, 2000);
  for (const char* seed : {"130", "232", "422", "439", "1174", "2492"}) {
    const Ran ran = Call(std::string("swarm --invariants all --twice 0 --seeds ") + seed);
    EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 2000);
  }
}

// More of the same: of a proxy whose line was cut as its stream opened, of a replica whose broken watch an API server
// kept from coming back, of one that started with a broken remote Secret, its proxies soon behind it or after a rest,
// of endpoints that are terminating (1.30).
TEST_F(Swarm, NothingIsDemandedOfWhomNobodyCanTell) {
  for (const char* arguments :
       {"--seeds 7000554 --buggify seed", "--seeds 7001598 --buggify seed", "--seeds 7002968 --buggify seed",
        "--seeds 9002115 --buggify seed", "--seeds 7000479 --profile istio-1.30",
        "--seeds 7001570 --buggify seed --profile istio-1.30"}) {
    const Ran ran = Call(std::string("swarm --invariants all --twice 0 ") + arguments);
    EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 2000);
  }
}

// istiod: pilot/pkg/model/push_context.go, networkMgr. Proxies that connect after a change of gateways, and before its
// push, are told of it.
TEST_F(Swarm, WhoConnectsBeforeThePushOfNewGatewaysGetsThem) {
  for (const char* arguments : {"--seeds 7000430", "--seeds 7000589 --buggify seed --profile istio-1.30"}) {
    const Ran ran = Call(std::string("swarm --invariants no-foreign-pod-address --twice 0 ") + arguments);
    EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 2000);
  }
}

// An API server's answer about the injector's ConfigMap was lost: until it is there again, pods would be injected
// without their network. istiod: pilot/pkg/bootstrap/sidecarinjector.go
TEST_F(Swarm, AnIstiodThatHasNotReadItsInjectorsConfigurationIsNotReady) {
  for (const char* profile : {"istio-1.18", "istio-1.30"}) {
    const Ran ran = Call(std::string("swarm --seeds 7003901 --buggify seed --twice 0 --profile ") + profile);
    EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 2000);
  }
}

TEST_F(Swarm, APodThatGoesWhileItAsksForACertificateAsksNoMore) {
  const Ran ran = Call("swarm --seeds 7003717 --buggify seed --twice 0");
  EXPECT_EQ(ran.code, 0) << ran.output.substr(0, 2000);
}

// What began as one thing and is another when patience ends is told as that; what a release forgets has its name.
TEST_F(Swarm, BugsOfAReleaseAreKnownByTheirNames) {
  const Ran early = Call("swarm --seeds 7001127 --buggify seed --invariants replicas-agree --twice 0");
  EXPECT_EQ(early.code, 0) << early.output.substr(0, 2000);
  EXPECT_THAT(early.output, HasSubstr("expected: early-pod in 1 seed ("));
  // Of a cluster that is read anew and whose API server was away until istiod waited no longer.
  const Ran anew = Call("swarm --seeds 11002003 --invariants cache-changes-nothing --twice 0");
  EXPECT_EQ(anew.code, 0) << anew.output.substr(0, 2000);
  EXPECT_THAT(anew.output, HasSubstr("expected: L7 in 1 seed ("));
  const Ran swap = Call("swarm --profile istio-1.30 --seeds 7000863 --invariants no-blackout-on-rotation --twice 0");
  EXPECT_EQ(swap.code, 0) << swap.output.substr(0, 2000);
  EXPECT_THAT(swap.output, HasSubstr("expected: swap-loses-endpoints in 1 seed ("));
  const Ran back = Call(
      "swarm --profile istio-1.30 --seeds 11005608 --buggify seed --invariants reconnecting-loses-nothing --twice 0");
  EXPECT_EQ(back.code, 0) << back.output.substr(0, 2000);
  EXPECT_THAT(back.output, HasSubstr("expected: swap-loses-endpoints in 1 seed ("));
  const Ran ports =
      Call("swarm --profile istio-1.30 --seeds 7000128 --buggify seed --invariants no-foreign-pod-address --twice 0");
  EXPECT_EQ(ports.code, 0) << ports.output.substr(0, 2000);
  EXPECT_THAT(ports.output, HasSubstr("expected: node-port-gateway-forgotten in 1 seed ("));
}

TEST_F(Swarm, ListsWhatItDemandsAndItsWorstMoments) {
  const Ran ran = Call("swarm --invariants");
  EXPECT_THAT(ran.output, HasSubstr("requests-are-answered"));
  EXPECT_THAT(ran.output, HasSubstr("push-dequeued"));
  EXPECT_THAT(ran.output, HasSubstr("watch-expired"));
}

TEST_F(Swarm, TheSameSeedsGiveTheSameAnswer) {
  const Ran one = Call("swarm --seeds 5-12 --jobs 1 --json"), two = Call("swarm --seeds 5-12 --jobs 3 --json");
  EXPECT_EQ(one.output, two.output);
}

// The mesh of a scenario that cannot hold: two networks of one name, so that requests go where nobody reaches.
TEST_F(Swarm, AFailureIsShrunkAndSaysHowToRunItAgain) {
  const std::string arguments =
      "swarm --seeds 1-4 --no-faults --events 4 --mesh " WAVETANK_SOURCE_DIR "/scenarios/shared-network-name";
  const Ran ran = Call(arguments + " -o " + (folder_ / "logs").string());
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("FAIL seed 1 at "));
  EXPECT_THAT(ran.output, HasSubstr("again: wavetank swarm --seeds 1 --mesh "));
  EXPECT_THAT(ran.output, HasSubstr("/shared-network-name --events 4 --no-faults"));
  const std::string log = (folder_ / "logs/seed-1.wtlog").string();
  EXPECT_THAT(ran.output, HasSubstr("log: wavetank replay " + log));
  EXPECT_EQ(Call("replay " + log).code, 0);
}

// Points of our own code fire by the seed; what they do is as much a part of the run as its inputs.
TEST_F(Swarm, PointsOfOurOwnCodeFireAndAReplayFiresThemAgain) {
  const std::string mesh = WAVETANK_SOURCE_DIR "/scenarios/shared-network-name";
  const Ran ran = Call("swarm --seeds 1 --buggify all --mesh " + mesh + " -o " + (folder_ / "logs").string());
  EXPECT_EQ(ran.code, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("  buggify: "));
  EXPECT_THAT(ran.output, HasSubstr(" --buggify all"));
  // They are no part of what is wrong with this mesh.
  EXPECT_THAT(ran.output, Not(HasSubstr("    buggify ")));
  const std::string log = (folder_ / "logs/seed-1.wtlog").string();
  const Ran replayed = Call("replay " + log);
  EXPECT_EQ(replayed.code, 0) << replayed.output << replayed.error;
  EXPECT_THAT(replayed.output, HasSubstr("identical"));
}

// The mesh of a run that was logged, as if the log were its scenario.
TEST_F(Swarm, AMeshMayBeThatOfALog) {
  const std::string log = (folder_ / "run.wtlog").string();
  ASSERT_EQ(Call("run " WAVETANK_SOURCE_DIR "/scenarios/multi-primary-multi-network -o " + log).code, 0);
  const Ran ran = Call("swarm --seeds 1-3 --like " + log);
  EXPECT_EQ(ran.code, 0) << ran.output << ran.error;
  EXPECT_THAT(ran.output, HasSubstr("3 seeds, 3 held"));
}

// Off unless they are asked for; then meshes and histories as the swarm makes them pass these everywhere.
TEST_F(Swarm, PointsFireWhereTheyAreAskedForAlone) {
  for (const bool all : {false, true}) {
    const Ran ran = Call(std::string("swarm --seeds 1-12 --twice 6 --json") + (all ? " --buggify all" : ""));
    Value result;
    ASSERT_TRUE(Value::Parse(ran.output, &result)) << ran.error;
    for (const char* point : {"watch-event-late", "request-late", "controller-late", "debounce-late", "push-order",
                              "message-late", "apply-late"})
      EXPECT_EQ(result["buggify"][point].Integer() > 0, all) << point;
  }
}

TEST_F(Swarm, BadCallsAreRefused) {
  ExpectRefused(Call("swarm --seeds 1 --buggify nothing-such"), {"nothing-such", "wavetank swarm --invariants"});
  ExpectRefused(Call("swarm --seeds 9-3"), {"--seeds '9-3'", "1-5000"});
  ExpectRefused(Call("swarm --seeds 1 --mesh /nowhere"), {"/nowhere"});
  ExpectRefused(Call("swarm --seeds 1 --like /nowhere"), {"/nowhere"});
  ExpectRefused(Call("swarm --seeds 1 --time soon"), {"--time 'soon'", "10m"});
  ExpectRefused(Call("swarm --seeds 1 --profile istio-0.1"), {"istio-0.1"});
  ExpectRefused(Call("swarm --seeds 1 --invariants I99"), {"I99"});
}

}  // namespace
}  // namespace wavetank
