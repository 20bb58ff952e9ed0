#include "fakes/kube/workloads/stateful_sets.h"

#include "core/base/json_access.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

using testing::ElementsAre;

constexpr char kDatabase[] = R"(
apiVersion: v1
kind: Namespace
metadata: {name: sample}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: sample}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: tcp, port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: sample}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db, version: v1}}
    spec:
      containers: [{name: db, image: x, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}
)";

class StatefulSetsTest : public ClusterTest {
 protected:
  void Patch(const json& spec) { ASSERT_TRUE(api().Patch("StatefulSet", {"sample", "db"}, {{"spec", spec}}).ok()); }
  ObjectRef Pod(const std::string& name) { return api().Get("Pod", {"sample", name}); }
  std::vector<std::string> Pods() {
    std::vector<std::string> out;
    for (const ObjectRef& pod : api().List("Pod", "sample")) out.push_back(pod->meta.name);
    return out;
  }
  std::vector<std::string> Versions() {
    std::vector<std::string> out;
    for (const ObjectRef& pod : api().List("Pod", "sample")) out.push_back(pod->meta.labels.at("version"));
    return out;
  }
  json Status() { return api().Get("StatefulSet", {"sample", "db"})->body["status"]; }
  // From now on: "+db-0" where one is made, "ready db-0", "-db-0" where one is told to end.
  void Watch() {
    subscriptions_.Add(api().Observe("Pod", [this](const Change& change) {
      const std::string& name = change.object->meta.name;
      const auto ready = [](const ObjectRef& pod) {
        for (const json& condition : Items(At(pod->body, {"status", "conditions"}))) {
          if (condition["type"] == "Ready") return condition["status"] == "True";
        }
        return false;
      };
      if (change.type == kube::WatchEventType::kAdded) events_.push_back("+" + name);
      if (change.type != kube::WatchEventType::kModified) return;
      if (!ready(change.previous) && ready(change.object)) events_.push_back("ready " + name);
      if (!change.previous->meta.deleting && change.object->meta.deleting) events_.push_back("-" + name);
    }));
  }
  static json Version(const char* version) {
    return {{"template", {{"metadata", {{"labels", {{"version", version}}}}}}}};
  }

  std::vector<std::string> events_;
};

TEST_F(StatefulSetsTest, PodsAreMadeInOrderEachWhenTheOneBeforeIsReady) {
  Watch();
  ApplyText(kDatabase);
  Settle();
  EXPECT_THAT(events_, ElementsAre("+db-0", "ready db-0", "+db-1", "ready db-1", "+db-2", "ready db-2"));
  EXPECT_EQ(Status()["readyReplicas"], 3);
  EXPECT_EQ(Status()["currentRevision"], Status()["updateRevision"]);
}

TEST_F(StatefulSetsTest, ParallelWaitsForNobody) {
  Watch();
  ApplyText(kDatabase);
  Patch({{"podManagementPolicy", "Parallel"}});
  Settle();
  ASSERT_EQ(events_.size(), 6u);
  events_.resize(3);
  EXPECT_THAT(events_, ElementsAre("+db-0", "+db-1", "+db-2"));
}

TEST_F(StatefulSetsTest, APodHasItsNameItsHostNameAndItsClaimAndKeepsThemWhenItIsMadeAnew) {
  ApplyText(kDatabase);
  Settle();
  const ObjectRef before = Pod("db-1");
  EXPECT_EQ(before->body["spec"]["hostname"], "db-1");
  EXPECT_EQ(before->body["spec"]["subdomain"], "db");
  EXPECT_EQ(before->body["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-db-1");
  EXPECT_EQ(before->meta.labels.at("statefulset.kubernetes.io/pod-name"), "db-1");
  const ObjectRef claim = api().Get("PersistentVolumeClaim", {"sample", "data-db-1"});
  ASSERT_NE(claim, nullptr);
  ASSERT_TRUE(api().Delete("Pod", {"sample", "db-1"}).ok());
  Settle();
  EXPECT_THAT(Pods(), ElementsAre("db-0", "db-1", "db-2"));
  EXPECT_NE(Pod("db-1")->meta.uid, before->meta.uid);
  EXPECT_EQ(api().Get("PersistentVolumeClaim", {"sample", "data-db-1"})->meta.uid, claim->meta.uid);
}

TEST_F(StatefulSetsTest, ScalingDownTakesTheLastOnesOneByOneAndLeavesTheirClaims) {
  ApplyText(kDatabase);
  Settle();
  Watch();
  Patch({{"replicas", 1}});
  Settle();
  EXPECT_THAT(events_, ElementsAre("-db-2", "-db-1"));
  EXPECT_THAT(Pods(), ElementsAre("db-0"));
  EXPECT_NE(api().Get("PersistentVolumeClaim", {"sample", "data-db-2"}), nullptr);
  EXPECT_EQ(Status()["replicas"], 1);
}

TEST_F(StatefulSetsTest, AChangeRollsFromTheLastPodToTheFirst) {
  ApplyText(kDatabase);
  Settle();
  Watch();
  Patch(Version("v2"));
  Settle();
  EXPECT_THAT(events_, ElementsAre("-db-2", "+db-2", "ready db-2", "-db-1", "+db-1", "ready db-1", "-db-0", "+db-0",
                                   "ready db-0"));
  EXPECT_THAT(Versions(), ElementsAre("v2", "v2", "v2"));
  EXPECT_EQ(Status()["currentRevision"], Status()["updateRevision"]);
}

TEST_F(StatefulSetsTest, APartitionHoldsTheFirstPodsBackAlsoWhenTheyAreMadeAnew) {
  ApplyText(kDatabase);
  Settle();
  json change = Version("v2");
  change["updateStrategy"] = {{"rollingUpdate", {{"partition", 2}}}};
  Patch(change);
  Settle();
  EXPECT_THAT(Versions(), ElementsAre("v1", "v1", "v2"));
  ASSERT_TRUE(api().Delete("Pod", {"sample", "db-0"}).ok());
  Settle();
  EXPECT_THAT(Versions(), ElementsAre("v1", "v1", "v2"));
  EXPECT_NE(Status()["currentRevision"], Status()["updateRevision"]);
}

TEST_F(StatefulSetsTest, OnDeleteChangesOnlyPodsThatAreDeleted) {
  ApplyText(kDatabase);
  Settle();
  json change = Version("v2");
  change["updateStrategy"] = {{"type", "OnDelete"}, {"rollingUpdate", nullptr}};
  Patch(change);
  Settle();
  EXPECT_THAT(Versions(), ElementsAre("v1", "v1", "v1"));
  ASSERT_TRUE(api().Delete("Pod", {"sample", "db-1"}).ok());
  Settle();
  EXPECT_THAT(Versions(), ElementsAre("v1", "v2", "v1"));
}

TEST_F(StatefulSetsTest, OrdinalsMayStartElsewhere) {
  ApplyText(kDatabase);
  Settle();
  Patch({{"ordinals", {{"start", 2}}}, {"replicas", 2}});
  Settle();
  EXPECT_THAT(Pods(), ElementsAre("db-2", "db-3"));
}

TEST_F(StatefulSetsTest, ItsEndTakesItsPods) {
  ApplyText(kDatabase);
  Settle();
  ASSERT_TRUE(api().Delete("StatefulSet", {"sample", "db"}).ok());
  Settle();
  EXPECT_TRUE(Pods().empty());
}

}  // namespace
}  // namespace wavetank::fakekube
