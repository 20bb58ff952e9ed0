// Events: what controllers tell, as clients see it.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/json_access.h"
#include "fakes/kube/store/event_store.h"
#include "tests/fakes/kube/http/rest_fixture.h"

namespace wavetank::fakekube::http {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kEvents = "/api/v1/namespaces/default/events";

class EventsTest : public RestTest {
 protected:
  EventsTest() { cluster_->api().events()->Listen(); }

  void Settle() {
    for (int i = 0; i < 2000 && !cluster_->Settled(); ++i) kernel_.RunUntil(kernel_.Now() + 100ms);
    ASSERT_TRUE(cluster_->Settled());
  }
  void Run(Duration time) { kernel_.RunUntil(kernel_.Now() + time); }

  static json Deployment(int replicas) {
    const json labels = {{"app", "web"}};
    const json probe = {{"tcpSocket", {{"port", 8080}}}};
    return {
        {"metadata", {{"name", "web"}}},
        {"spec",
         {{"replicas", replicas},
          {"selector", {{"matchLabels", labels}}},
          {"template",
           {{"metadata", {{"labels", labels}}},
            {"spec",
             {{"containers", json::array({{{"name", "web"}, {"image", "web:1"}, {"readinessProbe", probe}}})}}}}}}}};
  }
  void Deploy(int replicas) {
    ASSERT_EQ(Send("POST", "/apis/apps/v1/namespaces/default/deployments", Deployment(replicas)).code, 201);
    Settle();
  }
  // "Normal Scheduled pod/web: ..." of kind, in the order in which they were told.
  std::vector<std::string> Told(const std::string& kind, const std::string& query = "") {
    std::vector<std::pair<int64_t, std::string>> all;
    const Answer events = Get(kEvents + query);
    for (const json& event : events.body["items"]) {
      if (event["involvedObject"]["kind"] != kind) continue;
      all.emplace_back(std::stoll(event["metadata"]["resourceVersion"].get<std::string>()),
                       Text(event, "type") + " " + Text(event, "reason") + ": " + Text(event, "message"));
    }
    std::sort(all.begin(), all.end());
    std::vector<std::string> out;
    for (auto& [version, text] : all) out.push_back(std::move(text));
    return out;
  }
};

TEST_F(EventsTest, AScheduleThatNeverStrikesIsTold) {
  const json pod = {{"restartPolicy", "Never"}, {"containers", json::array({{{"name", "c"}, {"image", "x:1"}}})}};
  const json cron = {
      {"metadata", {{"name", "pi"}}},
      {"spec", {{"schedule", "59 23 31 2 *"}, {"jobTemplate", {{"spec", {{"template", {{"spec", pod}}}}}}}}}};
  ASSERT_EQ(Send("POST", "/apis/batch/v1/namespaces/default/cronjobs", cron).code, 201);
  Settle();
  EXPECT_THAT(Told("CronJob"), ElementsAre("Warning InvalidSchedule: invalid schedule: 59 23 31 2 * : time difference "
                                           "between two schedules is less than 1 second"));
}

TEST_F(EventsTest, APodsLifeIsTold) {
  const json pod = {{"metadata", {{"name", "p"}}},
                    {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "x:1"}}})}}}};
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/pods", pod).code, 201);
  Settle();
  EXPECT_THAT(
      Told("Pod"),
      ElementsAre("Normal Scheduled: Successfully assigned default/p to node1", "Normal Pulling: Pulling image \"x:1\"",
                  "Normal Pulled: Successfully pulled image \"x:1\" in 600ms (600ms including waiting)",
                  "Normal Created: Created container c", "Normal Started: Started container c"));
  const Answer started = Get(std::string(kEvents) + "?fieldSelector=involvedObject.name=p,reason=Started");
  ASSERT_EQ(started.body["items"].size(), 1U);
  const json& event = started.body["items"][0];
  EXPECT_EQ(event["source"], (json{{"component", "kubelet"}, {"host", "node1"}}));
  EXPECT_EQ(event["involvedObject"]["fieldPath"], "spec.containers{c}");
  EXPECT_EQ(event["count"], 1);
  EXPECT_THAT(event["metadata"]["name"].get<std::string>(), HasSubstr("p."));
  ASSERT_EQ(Send("DELETE", "/api/v1/namespaces/default/pods/p").code, 200);
  Settle();
  EXPECT_THAT(Told("Pod"), Contains("Normal Killing: Stopping container c"));
}

TEST_F(EventsTest, AnImageThatANodeHasIsNotPulledAgain) {
  Deploy(2);
  EXPECT_THAT(Told("Pod", "?fieldSelector=reason=Pulling"), ElementsAre("Normal Pulling: Pulling image \"web:1\""));
  EXPECT_THAT(Told("Pod"), Contains("Normal Pulled: Container image \"web:1\" already present on machine"));
}

TEST_F(EventsTest, WorkloadsTellWhatTheyScaleAndMake) {
  Deploy(1);
  ASSERT_EQ(Send("PATCH", "/apis/apps/v1/namespaces/default/deployments/web", {{"spec", {{"replicas", 2}}}},
                 "application/merge-patch+json")
                .code,
            200);
  Settle();
  ASSERT_EQ(Send("PATCH", "/apis/apps/v1/namespaces/default/deployments/web", {{"spec", {{"replicas", 0}}}},
                 "application/merge-patch+json")
                .code,
            200);
  Settle();
  const std::string set = Names("/apis/apps/v1/namespaces/default/replicasets").at(0);
  EXPECT_THAT(Told("Deployment"),
              ElementsAre("Normal ScalingReplicaSet: Scaled up replica set " + set + " to 1",
                          "Normal ScalingReplicaSet: Scaled up replica set " + set + " to 2 from 1",
                          "Normal ScalingReplicaSet: Scaled down replica set " + set + " to 0 from 2"));
  EXPECT_THAT(Told("ReplicaSet", "?fieldSelector=reason=SuccessfulCreate").size(), 2U);
  EXPECT_THAT(Told("ReplicaSet", "?fieldSelector=reason=SuccessfulDelete").size(), 2U);
}

TEST_F(EventsTest, AStatefulSetsPodsAreToldInItsOwnWords) {
  json set = Deployment(1);
  set["spec"]["serviceName"] = "web";
  ASSERT_EQ(Send("POST", "/apis/apps/v1/namespaces/default/statefulsets", set).code, 201);
  Settle();
  EXPECT_THAT(Told("StatefulSet"),
              ElementsAre("Normal SuccessfulCreate: create Pod web-0 in StatefulSet web successful"));
}

TEST_F(EventsTest, APodThatNoNodeTakesIsASeries) {
  const json spec = {{"containers", json::array({{{"name", "c"}, {"image", "x"}}})},
                     {"nodeSelector", {{"disk", "ssd"}}}};
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/default/pods", {{"metadata", {{"name", "p"}}}, {"spec", spec}}).code, 201);
  Settle();
  ASSERT_TRUE(cluster_->api().Patch("Node", {"", "node1"}, {{"metadata", {{"labels", {{"a", "b"}}}}}}).ok());
  Settle();
  const Answer events = Get(kEvents);
  ASSERT_EQ(events.body["items"].size(), 1U);
  const json& event = events.body["items"][0];
  EXPECT_EQ(event["reason"], "FailedScheduling");
  EXPECT_EQ(event["message"], "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.");
  EXPECT_EQ(event["series"]["count"], 2);
  const Answer view = Get("/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_EQ(view.body["items"][0]["regarding"]["name"], "p");
  EXPECT_EQ(view.body["items"][0]["reportingController"], "default-scheduler");
}

TEST_F(EventsTest, ALostNodeAndItsPodsAreToldOf) {
  Deploy(1);
  ASSERT_TRUE(cluster_->SetNodeLost("node1", true).ok());
  Run(60s);
  EXPECT_THAT(Told("Node"), ElementsAre("Normal NodeNotReady: Node node1 status is now: NodeNotReady"));
  EXPECT_THAT(Told("Pod"), Contains("Warning NodeNotReady: Node is not ready"));
  Run(400s);
  EXPECT_THAT(Told("Pod"), Contains(HasSubstr("Normal TaintManagerEviction: Marking for deletion Pod default/web-")));
}

class Refusing final : public PodAdmission {
 public:
  void Review(json, const kube::Labels&, absl::AnyInvocable<void(absl::StatusOr<json>)> done) override {
    done(absl::UnavailableError("failed calling webhook \"w\": failed to call webhook: no endpoints"));
  }
};

TEST_F(EventsTest, PodsThatAdmissionRefusesAreCountedAtTheirReplicaSet) {
  Refusing refusing;
  rest_ = nullptr;
  cluster_ = std::make_unique<Cluster>(host_, options_, &refusing, nullptr);
  cluster_->api().events()->Listen();
  rest_ = std::make_unique<RestApi>(cluster_->api(), rest_options_);
  ASSERT_EQ(Send("POST", "/apis/apps/v1/namespaces/default/deployments", Deployment(1)).code, 201);
  Run(1s);
  EXPECT_THAT(Told("ReplicaSet"),
              ElementsAre("Warning FailedCreate: Error creating: Internal error occurred: failed calling webhook "
                          "\"w\": failed to call webhook: no endpoints"));
  EXPECT_GT(Get(std::string(kEvents) + "?fieldSelector=reason=FailedCreate").body["items"][0]["count"], 3);
  rest_ = nullptr;
  cluster_ = nullptr;
}

TEST_F(EventsTest, TheSameAgainIsNotCountedBeyondTheLargestNumber) {
  const kube::Object& about = *cluster_->api().Get("Namespace", {"", "default"});
  EventStore& events = *cluster_->api().events();
  events.Tell(about, {.component = "test", .reason = "Told", .message = "the same"});
  const std::string name = Text(At(Get(kEvents).body["items"][0], "metadata"), "name");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  ASSERT_TRUE(events.objects().Patch("Event", {"default", name}, {{"count", kMost}}).ok());
  events.Tell(about, {.component = "test", .reason = "Told", .message = "the same"});
  EXPECT_EQ(Get(kEvents).body["items"][0]["count"], kMost);
}

TEST_F(EventsTest, TheSameAgainCountsAndAnHourLaterItIsGone) {
  const kube::Object& about = *cluster_->api().Get("Namespace", {"", "default"});
  EventStore& events = *cluster_->api().events();
  events.Tell(about, {.component = "test", .reason = "Told", .message = "the same"});
  Run(30min);
  auto watcher = Watch(std::string(kEvents) + "?watch=true");
  events.Tell(about, {.component = "test", .reason = "Told", .message = "the same"});
  events.Tell(about, {.component = "test", .reason = "Told", .message = "another"});
  EXPECT_EQ(Get(kEvents).body["items"].size(), 2U);
  EXPECT_EQ(Get(kEvents).body["items"][0]["count"], 2);
  EXPECT_NE(Get(kEvents).body["items"][0]["firstTimestamp"], Get(kEvents).body["items"][0]["lastTimestamp"]);
  Run(59min);
  EXPECT_EQ(Get(kEvents).body["items"].size(), 2U);  // an hour after the first of them, but it was told again
  Run(2min);
  EXPECT_THAT(Names(kEvents), IsEmpty());
  ASSERT_EQ(watcher->events.size(), 5U);
  EXPECT_EQ(watcher->events[1]["type"], "MODIFIED");
  EXPECT_EQ(watcher->events[4]["type"], "DELETED");
}

TEST_F(EventsTest, WhatDiffersInItsWordsAloneIsCombinedAndNoSourceFloods) {
  const kube::Object& about = *cluster_->api().Get("Namespace", {"", "default"});
  EventStore& events = *cluster_->api().events();
  for (int i = 0; i < 40; ++i)
    events.Tell(about, {.component = "test", .reason = "Told", .message = "number " + std::to_string(i)});
  const std::vector<std::string> told = Told("Namespace");
  ASSERT_EQ(told.size(), 10U);
  EXPECT_EQ(told.back(), "Normal Told: (combined from similar events): number 24");
  Run(5min);
  events.Tell(about, {.component = "test", .reason = "Other", .message = "again"});
  events.Tell(about, {.component = "test", .reason = "Other", .message = "too much"});
  EXPECT_THAT(Told("Namespace"), Contains("Normal Other: again"));
  EXPECT_THAT(Told("Namespace"), Not(Contains("Normal Other: too much")));
}

TEST_F(EventsTest, ClientsWriteEventsAndTheyGoWithTheirNamespace) {
  ASSERT_EQ(Send("POST", "/api/v1/namespaces", {{"metadata", {{"name", "mine"}}}}).code, 201);
  const json event = {{"metadata", {{"name", "e"}}},
                      {"involvedObject", {{"kind", "Pod"}, {"name", "p"}, {"namespace", "mine"}}},
                      {"reason", "Said"},
                      {"message", "hello"},
                      {"type", "Normal"}};
  EXPECT_EQ(Send("POST", "/api/v1/namespaces/none/events", event).code, 404);
  ASSERT_EQ(Send("POST", "/api/v1/namespaces/mine/events", event).code, 201);
  EXPECT_EQ(Send("POST", "/api/v1/namespaces/mine/events", event).code, 409);
  EXPECT_EQ(Get("/apis/events.k8s.io/v1/namespaces/mine/events/e").body["note"], "hello");
  EXPECT_THAT(Names("/api/v1/events"), ElementsAre("e"));
  ASSERT_EQ(Send("DELETE", "/api/v1/namespaces/mine").code, 200);
  EXPECT_THAT(Names("/api/v1/events"), IsEmpty());
}

TEST_F(EventsTest, AWorldIsTheSameWhetherSomebodyReadsThemOrNot) {
  struct World : EventsTest {
    void TestBody() override {}
    std::string Digest(bool listen) {
      Restart();
      if (listen) cluster_->api().events()->Listen();
      Deploy(3);
      EXPECT_EQ(Names(kEvents).empty(), !listen);
      return kernel_.digest().Hex();
    }
  };
  EXPECT_EQ(World().Digest(true), World().Digest(false));
}

TEST_F(EventsTest, NobodyListensNothingIsKept) {
  Restart();
  Deploy(2);
  EXPECT_THAT(Names(kEvents), IsEmpty());
}

}  // namespace
}  // namespace wavetank::fakekube::http
