// Each invariant that is broken here is broken by what field incidents did; a world that is watched stays as it was.
#include "sim/invariants/watch.h"

#include <gmock/gmock.h>

#include "sim/invariants/catalogue.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class Invariants : public TwoClusterWorld {
 protected:
  void TearDown() override { watch_.reset(); }

  void Watch(const std::string& names, bool in_trace = true) {
    const absl::StatusOr<std::vector<std::string>> parsed = ParseInvariants(names);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    absl::StatusOr<std::unique_ptr<InvariantWatch>> watch =
        InvariantWatch::Attach(*world_, *parsed, {.in_trace = in_trace});
    ASSERT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
  }
  void Rest(Duration more = {}) {
    EXPECT_TRUE(world_->RunUntilSettled(world_->Now() + 5min));
    world_->RunUntil(world_->Now() + 3s + more);
  }
  void Scale(int replicas) {
    Do("patch", {{"cluster", "cluster2"},
                 {"kind", "Deployment"},
                 {"namespace", "sample"},
                 {"name", "helloworld-v2"},
                 {"patch", {{"spec", {{"replicas", replicas}}}}}});
  }
  void LoseGateway() {
    Do("delete", {{"cluster", "cluster2"},
                  {"kind", "Service"},
                  {"namespace", "istio-system"},
                  {"name", "istio-eastwestgateway"}});
  }
  std::set<std::string> Broken() const {
    std::set<std::string> out;
    for (const Violation& v : watch_->violations()) out.insert(v.invariant);
    return out;
  }
  const Violation* First(const std::string& name) const {
    for (const Violation& v : watch_->violations()) {
      if (v.invariant == name) return &v;
    }
    return nullptr;
  }

  std::unique_ptr<InvariantWatch> watch_;
};

TEST_F(Invariants, AMeshThatIsScaledBreaksNone) {
  Build(false);
  Watch("all");
  // New pods' proxies are watched from their first response on.
  Do("kill", {{"cluster", "cluster1"}, {"namespace", "sample"}, {"app", "sleep"}});
  Scale(3);
  Rest(60s);
  Scale(1);
  Rest(60s);
  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(Invariants, ANetworkWithoutGatewaySendsItsPodsToForeignProxies) {
  Build(false);
  Watch("all");
  const uint64_t input = world_->inputs();
  LoseGateway();
  Rest();
  const Violation* const v = First("no-foreign-pod-address");
  ASSERT_NE(v, nullptr);
  EXPECT_THAT(v->subject, HasSubstr("@cluster1"));
  EXPECT_THAT(v->what, HasSubstr("a pod of cluster2, which is in another network"));
  EXPECT_THAT(v->inputs, Contains(input));
  EXPECT_FALSE(v->until);
  EXPECT_EQ(v->known, "");
  Apply("cluster2", "eastwest-network2");
  Rest();
  EXPECT_TRUE(First("no-foreign-pod-address")->until) << "it ends when there is a gateway again";
}

TEST_F(Invariants, ABrokenKubeconfigIsAKnownBugOfTheRelease) {
  Build(false);
  Watch("rotation-ends,I3");
  Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "broken"}});
  Rest(40s);
  const Violation* const v = First("rotation-ends");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->known, "L5");
  EXPECT_THAT(v->what, HasSubstr("watches cluster2 no more"));
}

TEST_F(Invariants, RemovedClustersLeaveNothing) {
  Build(false);
  Watch("removal-is-complete");
  Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "deleted"}});
  Rest(10s);
  for (const Violation& v : watch_->violations()) EXPECT_EQ(v.known, "stale-gateway") << v.what;
}

TEST_F(Invariants, TheWatchIsNotInTheDigestUnlessSomethingBreaks) {
  Build(false);
  Rest();
  const std::string before = world_->kernel().digest().Hex();
  std::string digests[2];
  for (const bool watched : {false, true}) {
    watch_.reset();
    Build(false);
    if (watched) Watch("all");
    Rest();
    Scale(3);
    Rest();
    digests[watched ? 1 : 0] = world_->kernel().digest().Hex();
  }
  EXPECT_NE(digests[0], before);
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(Invariants, ABreachStandsInTheTraceWithItsCauses) {
  Build(false);
  Watch("I1");
  std::vector<uint64_t> causes;
  world_->kernel().AddObserver([&](const TraceEvent& event) {
    if (event.record.kind == kInvariantViolated && causes.empty())
      causes = world_->kernel().causes().Inputs(event.cause);
  });
  const uint64_t input = world_->inputs();
  LoseGateway();
  Rest();
  EXPECT_THAT(causes, Contains(input));
}

TEST(InvariantNames, AreReadByNameAndByNumber) {
  EXPECT_EQ(ParseInvariants("all")->size(), 20u);
  EXPECT_THAT(*ParseInvariants("I4, no-foreign-pod-address"),
              testing::ElementsAre("no-foreign-pod-address", "no-address-twice"));
  EXPECT_THAT(std::string(ParseInvariants("I21").status().message()), HasSubstr("wavetank invariants"));
}

TEST(HeldAssignments, AnAddressThatStandsTwiceIsSeen) {
  EXPECT_EQ(ReadSubsetName("outbound|5000|v1|h.sample.svc.cluster.local").host, "h.sample.svc.cluster.local");
  EXPECT_EQ(ReadSubsetName("BlackHoleCluster").host, "");
}

}  // namespace
}  // namespace wavetank::sim
