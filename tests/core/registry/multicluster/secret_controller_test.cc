#include "core/registry/multicluster/secret_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kube/credentials/kubeconfig.h"
#include "core/profile/changes.h"
#include "sim/kernel/kernel.h"
#include "tests/core/kube/memory_client.h"
#include "tests/core/registry/multicluster/remote_clusters.h"
#include "tests/core/registry/objects.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What becomes of clusters, in words.
class Handler final : public ClusterHandler {
 public:
  void ClusterAdded(const ClusterId& id, kube::Client&) override { said.push_back("added " + id.str()); }
  void ClusterUpdated(const ClusterId& id, kube::Client&) override { said.push_back("updated " + id.str()); }
  void ClusterDeleted(const ClusterId& id) override { said.push_back("deleted " + id.str()); }
  void ClusterStopped(const ClusterId& id) override { said.push_back("stopped " + id.str()); }
  bool ClusterSynced(const ClusterId&) const override { return synced; }
  std::vector<std::string> Take() { return std::exchange(said, {}); }

  std::vector<std::string> said;
  bool synced = true;
};

class SecretControllerTest : public ::testing::TestWithParam<bool> {
 protected:
  void Start() {
    kernel.AddObserver([this](const sim::TraceEvent& event) {
      if (event.record.kind == TraceKind::kClusterRejected) rejected.emplace_back(event.record.detail);
    });
    controller.Start();
    Run();
  }
  void Run() { kernel.RunUntil(kernel.Now() + 50ms); }
  std::vector<std::string> After(json secret) {
    client.Put(std::move(secret));
    Run();
    return handler.Take();
  }
  std::vector<std::string> AfterRemoving(const std::string& secret) {
    client.Remove(kube::kinds::kSecret, "istio-system", secret);
    Run();
    return handler.Take();
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  kube::MemoryClient client{host};
  RemoteClusters remote{host};
  Handler handler;
  Profile profile;
  std::vector<std::string> rejected;
  SecretController controller{client, remote, host, handler, ClusterId("c1"), "istio-system", profile};
};

TEST_F(SecretControllerTest, WithoutSecretsItHasSyncedAtOnce) {
  EXPECT_FALSE(controller.HasSynced());
  Start();
  EXPECT_TRUE(controller.HasSynced());
  EXPECT_TRUE(controller.Idle());
}

TEST_F(SecretControllerTest, HasSyncedWhenTheClustersOfTheFirstSecretsHave) {
  handler.synced = false;
  client.Put(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2")));
  Start();
  EXPECT_THAT(handler.Take(), ElementsAre("added c2"));
  EXPECT_FALSE(controller.HasSynced());
  handler.synced = true;
  EXPECT_TRUE(controller.HasSynced());
}

TEST_F(SecretControllerTest, OnlyLabelledSecretsOfTheSystemNamespaceCount) {
  Start();
  json other = RemoteSecretOf("a", "c2", KubeconfigOf("c2"));
  other["metadata"]["namespace"] = "shop";
  EXPECT_THAT(After(other), IsEmpty());
  json unlabelled = RemoteSecretOf("b", "c2", KubeconfigOf("c2"));
  unlabelled["metadata"].erase("labels");
  EXPECT_THAT(After(unlabelled), IsEmpty());
  EXPECT_THAT(After(RemoteSecretOf("b", "c2", KubeconfigOf("c2"))), ElementsAre("added c2"));
  EXPECT_THAT(After(unlabelled), ElementsAre("stopped c2", "deleted c2")) << "without its label it is gone";
}

TEST_F(SecretControllerTest, ANewKubeconfigStopsTheClusterBeforeItIsUpdated) {
  Start();
  After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t0")));
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t1"))),
              ElementsAre("stopped c2", "updated c2"));
  EXPECT_EQ(remote.connected, 2);
}

TEST_F(SecretControllerTest, TheSameKubeconfigChangesNothing) {
  Start();
  json secret = RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2"));
  After(secret);
  secret["metadata"]["annotations"] = {{"touched", "yes"}};
  EXPECT_THAT(After(secret), IsEmpty());
  EXPECT_EQ(remote.connected, 1);
}

TEST_F(SecretControllerTest, WithTheSwitchOfIssue36365TheOldClusterRunsUntilItIsUpdated) {
  profile.Set(Change::kGracefulSecretUpdate);
  Start();
  After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t0")));
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t1"))), ElementsAre("updated c2"));
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", "broken")), IsEmpty());
  EXPECT_FALSE(controller.Clusters()[0].stopped);
}

TEST_F(SecretControllerTest, ABrokenKubeconfigFreezesTheClusterUntilItReallyChanges) {
  Start();
  After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t0")));
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", "broken")), ElementsAre("stopped c2"));
  EXPECT_THAT(rejected, ElementsAre(HasSubstr("watched no more")));
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t0"))), IsEmpty()) << "the hash is the same";
  EXPECT_TRUE(controller.Clusters()[0].stopped);
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t1"))), Contains("updated c2"));
  EXPECT_FALSE(controller.Clusters()[0].stopped);
}

TEST_F(SecretControllerTest, AStoppedClusterDoesNotHoldUpTheStart) {
  handler.synced = false;
  client.Put(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2", "t0")));
  Start();
  EXPECT_FALSE(controller.HasSynced());
  After(RemoteSecretOf("remote-c2", "c2", "broken"));
  EXPECT_TRUE(controller.HasSynced());
}

TEST_F(SecretControllerTest, ABrokenKubeconfigFromTheStartIsNoCluster) {
  client.Put(RemoteSecretOf("remote-c2", "c2", "broken"));
  Start();
  EXPECT_THAT(handler.Take(), IsEmpty());
  EXPECT_EQ(rejected.size(), 1u);
  EXPECT_THAT(controller.Clusters(), IsEmpty());
  EXPECT_TRUE(controller.HasSynced());
}

TEST_F(SecretControllerTest, AnAddressWhereNothingAnswersIsNoCluster) {
  remote.unreachable = true;
  Start();
  EXPECT_THAT(After(RemoteSecretOf("remote-c2", "c2", KubeconfigOf("c2"))), IsEmpty());
  EXPECT_THAT(rejected, ElementsAre(HasSubstr("nothing answers")));
}

TEST_F(SecretControllerTest, TheConfigClusterCannotBeReplaced) {
  Start();
  EXPECT_THAT(After(RemoteSecretOf("remote-c1", "c1", KubeconfigOf("c1"))), IsEmpty());
  EXPECT_THAT(rejected, ElementsAre(HasSubstr("config cluster")));
}

TEST_F(SecretControllerTest, OfTwoSecretsWithOneClusterTheSecondTakesOverOnlyWhenTouched) {
  Start();
  After(RemoteSecretOf("first", "c2", KubeconfigOf("c2", "t1")));
  json second = RemoteSecretOf("second", "c2", KubeconfigOf("c2", "t2"));
  EXPECT_THAT(After(second), IsEmpty());
  EXPECT_THAT(rejected, ElementsAre(HasSubstr("another Secret")));
  EXPECT_THAT(AfterRemoving("first"), ElementsAre("stopped c2", "deleted c2"));
  second["metadata"]["annotations"] = {{"touched", "yes"}};
  EXPECT_THAT(After(second), ElementsAre("added c2"));
  EXPECT_EQ(controller.Clusters()[0].secret, "istio-system/second");
}

TEST_F(SecretControllerTest, ASecretMayNameSeveralClustersAndLoseThemOneByOne) {
  Start();
  json secret = RemoteSecretOf("remote", "c2", KubeconfigOf("c2"));
  secret["stringData"]["c3"] = KubeconfigOf("c3");
  EXPECT_THAT(After(secret), ElementsAre("added c2", "added c3"));
  secret["stringData"].erase("c2");
  EXPECT_THAT(After(secret), ElementsAre("stopped c2", "deleted c2"));
  EXPECT_THAT(AfterRemoving("remote"), ElementsAre("stopped c3", "deleted c3"));
  EXPECT_THAT(controller.Clusters(), IsEmpty());
}

TEST_F(SecretControllerTest, NoRejectionQuotesTheKubeconfig) {
  Start();
  After(RemoteSecretOf("remote-c2", "c2", "token: very-secret-token\n  - broken"));
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_THAT(rejected[0], ::testing::Not(HasSubstr("very-secret")));
}

}  // namespace
}  // namespace wavetank::pilot
