#include "core/election/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/election/cluster_elections.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"

namespace wavetank::election {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// istiods of one cluster, each with its own processors, as candidates of the ingress controller's election.
class ElectionTest : public ::testing::Test {
 protected:
  struct Candidate {
    std::unique_ptr<ClusterElections> elections;
    bool leads = false;
  };
  Candidate& Join(const std::string& pod, const std::string& revision = "default", bool remote = false,
                  std::string_view election = kIngressController) {
    ClusterElections::Options options;
    options.identity = pod;
    options.revision = revision;
    options.remote = remote;
    options.seed = 7;
    candidates.push_back(std::make_unique<Candidate>());
    Candidate& candidate = *candidates.back();
    candidate.elections = std::make_unique<ClusterElections>(
        kernel.NewHost(pod, 0, nullptr), client, std::move(options), [this] { return contested; },
        [this, pod](const LogLine& line) { said.push_back(pod + ": " + line.text); });
    candidate.elections->Join(
        election, [&candidate] { candidate.leads = true; }, [&candidate] { candidate.leads = false; });
    return candidate;
  }
  void Die(Candidate& candidate) {
    candidate.elections = nullptr;
    candidate.leads = false;
  }
  void Run(Duration d) { kernel.RunUntil(kernel.Now() + d); }
  // The annotation of the election's ConfigMap; null without.
  nlohmann::json Record(const std::string& name = std::string(kIngressController)) const {
    const kube::ObjectRef map = client.Find(kube::kinds::kConfigMap, "istio-system", name);
    if (map == nullptr) return nullptr;
    const auto it = map->meta.annotations.find(kLeaderAnnotation);
    return it == map->meta.annotations.end() ? nlohmann::json() : ParseJson(it->second);
  }
  void TagDefault(const std::string& revision) {
    client.Put({{"apiVersion", "admissionregistration.k8s.io/v1"},
                {"kind", "MutatingWebhookConfiguration"},
                {"metadata", {{"name", "istio-revision-tag-default"}, {"labels", {{"istio.io/rev", revision}}}}}});
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("test", 0, nullptr);
  kube::MemoryClient client{host};
  bool contested = true;
  std::vector<std::string> said;
  std::vector<std::unique_ptr<Candidate>> candidates;
};

TEST_F(ElectionTest, TheFirstThatAsksLeadsAndTheOthersWait) {
  Candidate& first = Join("istiod-1");
  Run(1s);
  Candidate& second = Join("istiod-2");
  Run(2min);
  EXPECT_TRUE(first.leads);
  EXPECT_FALSE(second.leads);
}

TEST_F(ElectionTest, TheConfigMapsAnnotationSaysWhoLeadsInIstiodsFields) {
  Join("istiod-1", "canary");
  Run(20s);
  const kube::ObjectRef map = client.Find(kube::kinds::kConfigMap, "istio-system", "istio-leader");
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->meta.annotations.at("control-plane.alpha.kubernetes.io/leader"),
            R"({"holderIdentity":"istiod-1","holderKey":"canary","leaseDurationSeconds":30,)"
            R"("acquireTime":"2023-09-01T00:00:00Z","renewTime":"2023-09-01T00:00:15Z","leaderTransitions":0})");
}

// Anybody may have written the annotation.
TEST_F(ElectionTest, DatesBeyondAllTimeHurtNobody) {
  for (const char* date : {"9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"}) {
    const nlohmann::json record = {{"holderIdentity", "istiod-1"}, {"acquireTime", date}, {"renewTime", date}};
    client.Put({{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata",
                 {{"name", std::string(kIngressController)},
                  {"namespace", "istio-system"},
                  {"annotations", {{std::string(kLeaderAnnotation), JsonText(record)}}}}}});
    Candidate& candidate = Join("istiod-1");
    Run(1min);
    EXPECT_TRUE(candidate.leads) << date;
    Die(candidate);
  }
}

TEST_F(ElectionTest, LeadersAreCountedOnFromAnyNumber) {
  constexpr int64_t kOfAnInt = 2'147'483'647;
  const nlohmann::json record = {{"holderIdentity", "istiod-0"}, {"leaderTransitions", kOfAnInt}};
  client.Put({{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata",
               {{"name", std::string(kIngressController)},
                {"namespace", "istio-system"},
                {"annotations", {{std::string(kLeaderAnnotation), JsonText(record)}}}}}});
  EXPECT_FALSE(Join("istiod-1").leads);
  Run(2min);
  EXPECT_TRUE(candidates.back()->leads);
  EXPECT_EQ(Number(Record(), "leaderTransitions"), kOfAnInt + 1);
}

TEST_F(ElectionTest, GatewaysAreDeployedByTheHolderOfALeaseOfTheRevision) {
  Run(1234567us);
  Join("istiod-1", "canary", false, kGatewayDeploymentController);
  Run(20s);
  const kube::ObjectRef lease = client.Find(kLease, "istio-system", "istio-gateway-deployment-canary");
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(Text(At(lease->body, "spec"), "holderIdentity"), "istiod-1");
  EXPECT_EQ(Number(At(lease->body, "spec"), "leaseDurationSeconds"), 30);
  EXPECT_EQ(Text(At(lease->body, "spec"), "acquireTime"), "2023-09-01T00:00:01.235567Z");  // asked, then written
}

TEST_F(ElectionTest, AfterTheLeadersDeathAnotherLeadsWhenTheLeaseHasRunOut) {
  Candidate& first = Join("istiod-1");
  Run(1s);
  Candidate& second = Join("istiod-2");
  Run(1min);
  Die(first);
  Run(20s);
  EXPECT_FALSE(second.leads);
  Run(30s);  // the lease, counted from the last renewal that was seen, and one pause between two questions
  EXPECT_TRUE(second.leads);
  EXPECT_EQ(Number(Record(), "leaderTransitions"), 1);
}

TEST_F(ElectionTest, WhoStopsInOrderHandsTheLockBack) {
  Candidate& first = Join("istiod-1");
  Run(1s);
  Candidate& second = Join("istiod-2");
  Run(1min);
  bool ended = false;
  first.elections->Stop([&] { ended = true; });
  Run(10ms);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(first.leads);
  EXPECT_EQ(Text(Record(), "holderIdentity"), "");
  Run(17s);  // the longest pause between two questions
  EXPECT_TRUE(second.leads);
}

TEST_F(ElectionTest, ALeaderThatCannotRenewForHalfALeaseStopsLeading) {
  Candidate& first = Join("istiod-1");
  Run(1s);
  client.refusing = true;
  Run(14s);
  EXPECT_TRUE(first.leads);
  Run(10s);
  EXPECT_FALSE(first.leads);
  EXPECT_THAT(said, Contains("istiod-1: leader election lock lost: istio-leader"));
  client.refusing = false;
  Run(1min);
  EXPECT_TRUE(first.leads);
}

TEST_F(ElectionTest, TheDefaultRevisionTakesTheLockFromAnother) {
  TagDefault("stable");
  Candidate& canary = Join("canary-1", "canary");
  Run(5s);
  Candidate& stable = Join("stable-1", "stable");
  Run(1min);
  EXPECT_TRUE(stable.leads);
  EXPECT_FALSE(canary.leads);
}

TEST_F(ElectionTest, ARevisionThatIsNotTheDefaultWaits) {
  TagDefault("canary");
  Candidate& canary = Join("canary-1", "canary");
  Run(5s);
  Candidate& stable = Join("stable-1", "stable");
  Run(2min);
  EXPECT_TRUE(canary.leads);
  EXPECT_FALSE(stable.leads);
}

TEST_F(ElectionTest, AnIstiodOfTheClusterTakesTheLockFromOneOfAnotherCluster) {
  Candidate& afar = Join("istiod-1", "default", true);
  Run(5s);
  EXPECT_EQ(Text(Record(), "holderKey"), "^default");
  Candidate& local = Join("istiod-2");
  Run(1min);
  EXPECT_TRUE(local.leads);
  EXPECT_FALSE(afar.leads);
}

TEST_F(ElectionTest, AnElectionThatNobodyContestsIsHeldAtOnceAndNotWritten) {
  contested = false;
  Candidate& only = Join("istiod-1");
  EXPECT_TRUE(only.leads);
  Run(10min);
  EXPECT_EQ(client.applies, 0);
  EXPECT_THAT(only.elections->Unwritten(), SizeIs(1));
}

TEST_F(ElectionTest, WhenAnotherComesTheFirstWritesThatItHasLedAllAlong) {
  contested = false;
  Candidate& first = Join("istiod-1");
  Run(1min);
  contested = true;
  first.elections->Reconsider();
  Candidate& second = Join("istiod-2");
  Run(1min);
  EXPECT_TRUE(first.leads);
  EXPECT_FALSE(second.leads);
  EXPECT_EQ(Text(Record(), "holderIdentity"), "istiod-1");
  EXPECT_EQ(Text(Record(), "acquireTime"), "2023-09-01T00:00:00Z");
}

TEST_F(ElectionTest, OfTwoThatCreateTheLockAtOnceOneLeads) {
  Candidate& first = Join("istiod-1");
  Candidate& second = Join("istiod-2");
  Run(2min);
  EXPECT_NE(first.leads, second.leads);
}

TEST_F(ElectionTest, WithoutElectionsEverybodyLeads) {
  ClusterElections::Options options;
  options.enabled = false;
  ClusterElections elections(
      host, client, options, [] { return true; }, [this](const LogLine& line) { said.push_back(line.text); });
  bool leads = false;
  elections.Join(
      kIngressController, [&] { leads = true; }, [&] { leads = false; });
  EXPECT_TRUE(leads);
  EXPECT_THAT(said, ElementsAre("bypassing leader election: istio-leader"));
  Run(1min);
  EXPECT_EQ(client.applies, 0);
}

TEST_F(ElectionTest, ARecordThatNobodyCanReadIsNobodysAndKeepsEverybodyWaiting) {
  client.Put({{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata",
               {{"name", "istio-leader"},
                {"namespace", "istio-system"},
                {"annotations", {{"control-plane.alpha.kubernetes.io/leader", "[1, 2"}}}}}});
  Candidate& only = Join("istiod-1");
  Run(2min);
  EXPECT_FALSE(only.leads);
  EXPECT_EQ(client.applies, 0);
}

}  // namespace
}  // namespace wavetank::election
