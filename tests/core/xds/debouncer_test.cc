#include "core/xds/debouncer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/kernel/kernel.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class DebouncerTest : public ::testing::Test {
 protected:
  void Make(Debouncer::Options options = {}) {
    debouncer_ = std::make_unique<Debouncer>(host_, options, [this](PushRequest request, Callback done) {
      pushes_.emplace_back(host_.Now().time_since_epoch() / 1ms, request.events);
      last_ = std::move(request);
      host_.RunAfter(push_takes_, std::move(done));
    });
  }
  void At(Duration time, bool full = true) {
    host_.RunAfter(time, [this, full] {
      kernel_.set_cause(kernel_.causes().Of(static_cast<uint64_t>(host_.Now().time_since_epoch() / 1ms)));
      PushRequest request;
      request.full = full;
      request.cause = kernel_.cause();
      debouncer_->Add(std::move(request));
    });
  }
  void Run() { kernel_.RunUntil(Time(1min)); }

  sim::Kernel kernel_{1};
  Host& host_ = kernel_.NewHost("istiod", 0, nullptr);
  std::unique_ptr<Debouncer> debouncer_;
  std::vector<std::pair<int64_t, int>> pushes_;  // when (ms), how many events
  PushRequest last_;
  Duration push_takes_ = 0ms;
};

TEST_F(DebouncerTest, AnEventIsPushedWhenNothingFollowsFor100Milliseconds) {
  Make();
  At(1s);
  Run();
  EXPECT_THAT(pushes_, ElementsAre(Pair(1100, 1)));
  EXPECT_TRUE(debouncer_->idle());
}

TEST_F(DebouncerTest, EventsThatKeepComingMergeUntilTheyPause) {
  Make();
  for (int i = 0; i < 50; ++i) At(1s + i * 20ms);
  Run();
  EXPECT_THAT(pushes_, ElementsAre(Pair(2080, 50)));  // the last one came at 1,980
}

TEST_F(DebouncerTest, AStreamWithoutPauseIsPushedAfterTenSeconds) {
  Make();
  for (int i = 0; i <= 166; ++i) At(i * 90ms);
  Run();
  // Checks fall on 100, 190, ... since each re-arms for what the last event leaves to wait; 10,000 is one of them.
  EXPECT_THAT(pushes_, ElementsAre(Pair(10000, 112), Pair(15040, 55)));
}

TEST_F(DebouncerTest, WhatComesDuringAPushWaitsForItsEnd) {
  push_takes_ = 500ms;
  Make();
  At(0ms);
  At(150ms);
  At(200ms);
  Run();
  EXPECT_THAT(pushes_, ElementsAre(Pair(100, 1), Pair(600, 2)));
}

TEST_F(DebouncerTest, WhatComesAtTheEndOfAPushStillGetsItsQuietTime) {
  push_takes_ = 500ms;
  Make();
  At(0ms);
  At(580ms);
  Run();
  EXPECT_THAT(pushes_, ElementsAre(Pair(100, 1), Pair(680, 1)));
}

TEST_F(DebouncerTest, WithoutAQuietTimeEachInstantIsAPush) {
  for (const Duration after : {Duration::zero(), Duration(-1s)}) {
    pushes_.clear();
    Make({.after = after});
    const int64_t now = kernel_.Now().time_since_epoch() / 1ms;
    At(1s);
    At(1s);
    At(1050ms);
    kernel_.RunUntil(kernel_.Now() + 1min);
    EXPECT_THAT(pushes_, ElementsAre(Pair(now + 1000, 2), Pair(now + 1050, 1))) << after.count();
  }
}

TEST_F(DebouncerTest, EndpointsPassAtOnceWhenTheirDebounceIsOff) {
  Make({.debounce_eds = false});
  At(0ms, true);
  At(10ms, false);
  At(20ms, false);
  Run();
  EXPECT_THAT(pushes_, ElementsAre(Pair(10, 1), Pair(20, 1), Pair(100, 1)));
}

TEST_F(DebouncerTest, TheMergedRequestHasTheCausesOfAllAndAReason) {
  Make();
  At(10ms);
  At(40ms);
  Run();
  EXPECT_THAT(kernel_.causes().Inputs(last_.cause), ElementsAre(10u, 40u));
  EXPECT_THAT(ReasonNames(last_.reasons), ElementsAre("unknown"));
}

TEST_F(DebouncerTest, ThousandsOfCausesLeaveNoSetOfAllBeforeForEach) {
  Make();
  constexpr size_t kEvents = 4000;
  for (size_t i = 1; i <= kEvents; ++i) At(1ms * i);
  Run();
  ASSERT_EQ(kernel_.causes().Inputs(last_.cause).size(), kEvents);
  const auto sets = static_cast<uint32_t>(kernel_.causes().Of(99'999));
  size_t inputs = 0;
  for (uint32_t set = 1; set < sets; ++set) inputs += kernel_.causes().Inputs(CauseId(set)).size();
  EXPECT_LT(inputs, kEvents * 15);  // one by one it would be half of kEvents * kEvents
}

}  // namespace
}  // namespace wavetank::pilot
