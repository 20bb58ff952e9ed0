// Several istiods of a cluster: who leads, and who does when the leader is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "sim/istiod_process.h"
#include "sim/world.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ElectionWorld : public TwoClusterWorld {
 protected:
  void SetUp() override { Build(/*remote=*/false); }
  void Run(Duration duration) { world_->RunUntil(world_->Now() + duration); }
  void Scale(int replicas) {
    Do("patch", {{"cluster", "cluster1"},
                 {"kind", "Deployment"},
                 {"namespace", "istio-system"},
                 {"name", "istiod"},
                 {"patch", {{"spec", {{"replicas", replicas}}}}}});
  }
  // Pods of cluster1's istiods that lead that election.
  std::vector<std::string> Leaders(std::string_view election = "istio-namespace-controller-election") const {
    std::vector<std::string> out;
    for (const IstiodProcess* process : world_->Istiods()) {
      const pilot::IstiodOptions& options = process->istiod().options();
      if (options.name.ends_with(".cluster1") && process->istiod().Leads(election)) out.push_back(options.pod_name);
    }
    return out;
  }
  std::string Holder() const {
    const kube::ObjectRef map = world_->FindSite("cluster1") == nullptr
                                    ? nullptr
                                    : world_->cluster("cluster1")
                                          .api()
                                          .Get("ConfigMap", {"istio-system", "istio-namespace-controller-election"});
    if (map == nullptr) return "";
    const auto it = map->meta.annotations.find("control-plane.alpha.kubernetes.io/leader");
    return it == map->meta.annotations.end() ? "" : Text(ParseJson(it->second), "holderIdentity");
  }
  bool HasRoot(const std::string& ns) const {
    return world_->cluster("cluster1").api().Get("ConfigMap", {ns, "istio-ca-root-cert"}) != nullptr;
  }
  void MakeNamespace(const std::string& name) {
    Do("apply", {{"cluster", "cluster1"},
                 {"object", {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}}}});
  }
};

TEST_F(ElectionWorld, ALoneIstiodLeadsAndWritesNoElection) {
  EXPECT_THAT(Leaders(), SizeIs(1));
  EXPECT_EQ(Holder(), "");
}

TEST_F(ElectionWorld, OfTwoReplicasTheOneThatWasThereFirstLeadsAll) {
  const std::vector<std::string> first = Leaders();
  Scale(2);
  Run(1min);
  EXPECT_EQ(Leaders(), first);
  EXPECT_EQ(Leaders("istio-leader"), first);
  EXPECT_EQ(Leaders("istio-gateway-status-leader"), first);
  EXPECT_EQ(Leaders("istio-gateway-deployment-default"), first);
  EXPECT_EQ(Holder(), first.front());
}

TEST_F(ElectionWorld, AfterTheLeaderWasKilledNamespacesGetTheirRootOnceTheLeaseHasRunOut) {
  const std::vector<std::string> first = Leaders();
  Scale(2);
  Run(1min);
  ASSERT_TRUE(world_->cluster("cluster1").api().Finalize("Pod", {"istio-system", first.front()}).ok());
  Run(5s);
  MakeNamespace("late");
  Run(10s);
  EXPECT_FALSE(HasRoot("late"));
  Run(40s);
  EXPECT_TRUE(HasRoot("late"));
  EXPECT_THAT(Leaders(), SizeIs(1));
  EXPECT_NE(Leaders(), first);
}

TEST_F(ElectionWorld, ALeaderThatIsToldToEndHandsOverWithoutTheLease) {
  const std::vector<std::string> first = Leaders();
  Scale(2);
  Run(1min);
  Do("delete", {{"cluster", "cluster1"}, {"kind", "Pod"}, {"namespace", "istio-system"}, {"name", first.front()}});
  Run(20s);
  EXPECT_THAT(Leaders(), SizeIs(1));
  EXPECT_NE(Leaders(), first);
}

TEST_F(ElectionWorld, WhoComesAfterALoneIstiodThatWasKilledWaitsForItsLease) {
  const std::vector<std::string> first = Leaders();
  Do("kill", {{"cluster", "cluster1"}, {"namespace", "istio-system"}, {"app", "istiod"}});
  Run(10s);
  EXPECT_THAT(Leaders(), testing::IsEmpty());
  EXPECT_EQ(Holder(), first.front());
  Run(50s);
  EXPECT_THAT(Leaders(), SizeIs(1));
}

TEST_F(ElectionWorld, AnIstiodThatIsToldToEndHangsUpWithinAnInstant) {
  Scale(0);
  Run(200ms);
  EXPECT_THAT(Leaders(), testing::IsEmpty());
  for (const IstiodProcess* process : world_->Istiods())
    EXPECT_FALSE(process->istiod().options().name.ends_with(".cluster1"));
}

TEST_F(ElectionWorld, IstiodSaysInItsLogWhatBecomesOfItsElections) {
  std::vector<std::string> said;
  world_->on_istiod_log = [&](const std::string&, Time, const LogLine& line) { said.push_back(line.text); };
  Scale(2);
  Run(1min);
  EXPECT_THAT(said, Contains("attempting to acquire leader lease istio-system/istio-leader..."));
  EXPECT_THAT(said, testing::Not(Contains("leader election lock obtained: istio-leader")));
  Scale(0);
  Run(1s);
  EXPECT_THAT(said, Contains("leader election lock lost: istio-leader"));
}

}  // namespace
}  // namespace wavetank::sim
