// What each fault of the API server does to an informer that follows it, as client-go does: lists, watches, back-off.
#include "core/kube/informer.h"
#include "fakes/kube/client/client.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::fakekube {
namespace {

class FaultsTest : public ClusterTest {
 protected:
  FaultsTest() {
    client_ = MakeClient(api(), host_, "client", 1, {});
    informer_ = std::make_unique<kube::Informer>(*client_, host_, kube::kinds::kConfigMap);
  }
  void Put(const char* name, int value) {
    ASSERT_TRUE(api()
                    .Apply({{"apiVersion", "v1"},
                            {"kind", "ConfigMap"},
                            {"metadata", {{"name", name}, {"namespace", "default"}}},
                            {"data", {{"value", std::to_string(value)}}}})
                    .ok());
  }
  // "" if the informer does not know it.
  std::string Seen(const char* name) {
    const ObjectRef object = informer_->Get("default", name);
    return object == nullptr ? "" : object->body["data"]["value"].get<std::string>();
  }
  void Run(Duration duration) { kernel_.RunUntil(kernel_.Now() + duration); }
  // How long it takes until the informer knows that; at most `most`.
  Duration Until(const char* name, const std::string& value, Duration most = 120s) {
    const Time start = kernel_.Now();
    while (Seen(name) != value && kernel_.Now() - start < most) Run(10ms);
    return kernel_.Now() - start;
  }

  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<kube::Informer> informer_;
};

TEST_F(FaultsTest, WhatIsWrittenWhileTheLineIsCutComesInItsOrderWhenItIsBack) {
  bool cut = false;
  ClientLatency latency;
  latency.transit = [&cut]() -> std::optional<Duration> { return cut ? std::nullopt : std::optional<Duration>(1ms); };
  const auto client = MakeClient(api(), host_, "beyond a line", 1, latency);
  std::vector<std::string> seen;
  kube::WatchCallbacks callbacks;
  callbacks.on_event = [&seen](const kube::WatchEvent& event) {
    if (event.type != kube::WatchEventType::kBookmark) seen.push_back(event.object->body["data"]["value"]);
  };
  callbacks.on_end = [](const absl::Status&) {};
  Put("a", 0);
  const auto watch = client->StartWatch(kube::kinds::kConfigMap, {}, api().VisibleVersion(), std::move(callbacks));
  cut = true;
  std::vector<std::string> written;
  for (int i = 1; i <= 9; ++i) {  // each is looked at again at another moment of a retry's interval
    Put("a", i);
    written.push_back(std::to_string(i));
    Run(70ms);
  }
  cut = false;
  Run(1s);
  EXPECT_EQ(seen, written);
}

TEST_F(FaultsTest, TooManyRequestsDelaysTheFirstListByRetryAfterAndIsNoError) {
  Put("a", 1);
  api().faults().retry_after = 5s;
  informer_->Start();
  Run(12s);
  EXPECT_FALSE(informer_->HasSynced());
  api().faults().retry_after = {};
  // The client itself asks again when it was told to; the informer's back-off has not begun.
  const Duration more = Until("a", "1");
  EXPECT_GT(more, 1s);
  EXPECT_LT(more, 5s);
}

TEST_F(FaultsTest, TooManyRequestsForLongTurnsIntoBackOff) {
  api().faults().retry_after = 1s;
  bool answered = false;
  client_->List(kube::kinds::kConfigMap, {}, [&](const absl::StatusOr<kube::ObjectList>& list) {
    answered = true;
    EXPECT_TRUE(absl::IsResourceExhausted(list.status()));
  });
  Run(9s);
  EXPECT_FALSE(answered);
  Run(3s);
  EXPECT_TRUE(answered);  // after ten retries
}

TEST_F(FaultsTest, ARunningWatchDoesNotCareAbout429ButANewOneWaits) {
  informer_->Start();
  Run(5s);
  api().faults().retry_after = 2s;
  Put("a", 1);
  EXPECT_LT(Until("a", "1"), 100ms);
  api().DropWatches(absl::UnavailableError("connection lost"));
  Put("a", 2);
  Run(1s);
  EXPECT_EQ(Seen("a"), "1");
  api().faults().retry_after = {};
  EXPECT_LT(Until("a", "2"), 3s);
}

TEST_F(FaultsTest, StaleReadsHoldEverythingBackUntilTheyEnd) {
  Put("a", 1);
  informer_->Start();
  Run(1s);
  api().SetStaleReads(true);
  Put("a", 2);
  Put("b", 1);
  ASSERT_TRUE(api().Delete("ConfigMap", {"default", "a"}).ok());
  Run(90s);  // over a bookmark
  EXPECT_EQ(Seen("a"), "1");
  EXPECT_EQ(Seen("b"), "");
  EXPECT_EQ(api().Get("ConfigMap", {"default", "a"}), nullptr);  // the truth, as controllers see it
  api().SetStaleReads(false);
  EXPECT_LT(Until("b", "1"), 100ms);
  EXPECT_EQ(Seen("a"), "");
}

TEST_F(FaultsTest, WhoListsAndWatchesWhileReadsAreStaleLosesNothing) {
  Put("a", 1);
  api().SetStaleReads(true);
  Put("a", 2);
  informer_->Start();
  Run(5s);
  EXPECT_EQ(Seen("a"), "1");
  api().DropWatches(absl::UnavailableError("connection lost"));
  Put("c", 1);
  Run(70s);
  EXPECT_EQ(Seen("c"), "");
  api().SetStaleReads(false);
  Run(1s);
  EXPECT_EQ(Seen("a"), "2");
  EXPECT_EQ(Seen("c"), "1");
}

TEST_F(FaultsTest, AWrongClockShowsInTimestampsOnly) {
  informer_->Start();
  Run(1s);
  const auto created = [&](const char* name) {
    return api().Get("ConfigMap", {"default", name})->body["metadata"]["creationTimestamp"].get<std::string>();
  };
  api().faults().clock_skew = 2h;
  Put("ahead", 1);
  EXPECT_EQ(created("ahead"), "2023-09-01T02:00:01Z");
  api().faults().clock_skew = -90s;
  Put("behind", 1);
  EXPECT_EQ(created("behind"), "2023-08-31T23:58:31Z");
  EXPECT_LT(Until("behind", "1"), 100ms);
}

TEST_F(FaultsTest, AHistoryThatIsGoneMakesAListWithNothingLost) {
  Put("a", 1);
  Put("b", 1);
  informer_->Start();
  Run(1s);
  api().DropWatches(absl::UnavailableError("connection lost"));
  ASSERT_TRUE(api().Delete("ConfigMap", {"default", "a"}).ok());
  Put("b", 2);
  api().ForgetHistory();
  EXPECT_LT(Until("b", "2"), 3s);  // 410, back-off, list
  EXPECT_EQ(Seen("a"), "");
}

TEST_F(FaultsTest, AVersionOfAnotherLifeOfTheServerIs410) {
  const auto watch = api().StartWatch("ConfigMap", api().resource_version() + 1, {nullptr, nullptr});
  EXPECT_TRUE(absl::IsOutOfRange(watch.status()));
}

TEST_F(FaultsTest, SlowAndUnreachableAndUnauthorizedEndWithTheFault) {
  informer_->Start();
  Run(1s);
  api().faults().extra_latency = 800ms;
  Put("a", 1);
  const Duration slow = Until("a", "1");
  EXPECT_GE(slow, 800ms);
  EXPECT_LT(slow, 1s);
  api().faults() = {};
  api().faults().unauthorized = true;
  api().DropWatches(absl::UnauthenticatedError("Unauthorized"));
  Put("a", 2);
  Run(30s);
  EXPECT_EQ(Seen("a"), "1");
  api().faults() = {};
  // Back-off has grown to at most twice 30 s.
  EXPECT_LT(Until("a", "2"), 60s);
  api().faults().unreachable = true;
  api().DropWatches(absl::UnavailableError("connection lost"));
  Put("a", 3);
  Run(2s);
  api().faults() = {};
  EXPECT_LT(Until("a", "3"), 60s);
}

}  // namespace
}  // namespace wavetank::fakekube
