#include "sim/kernel/kernel.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace wavetank::sim {
namespace {

TEST(Kernel, RunsByTimeThenByOrderOfScheduling) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  std::string order;
  host.RunAfter(2ms, [&] { order += "c"; });
  host.RunAfter(1ms, [&] { order += "a"; });
  host.RunAfter(1ms, [&] { order += "b"; });
  kernel.RunUntil(Time(10ms));
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(kernel.Now(), Time(10ms));
}

TEST(Kernel, ACancelledTimerNeverRunsAndSaysSoOnce) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  bool ran = false;
  const TimerId timer = host.RunAfter(1ms, [&] { ran = true; });
  EXPECT_TRUE(host.Cancel(timer));
  EXPECT_FALSE(host.Cancel(timer));
  EXPECT_FALSE(host.Cancel(kNoTimer));
  kernel.RunUntil(Time(1s));
  EXPECT_FALSE(ran);
  EXPECT_EQ(kernel.pending(), 0u);
}

TEST(Kernel, AFiredTimersSlotMayBeUsedAgainWithoutBeingCancelledByTheOldHandle) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  const TimerId old = host.RunAfter(1ms, [] {});
  kernel.RunUntil(Time(2ms));
  bool ran = false;
  host.RunAfter(1ms, [&] { ran = true; });
  EXPECT_FALSE(host.Cancel(old));
  kernel.RunUntil(Time(4ms));
  EXPECT_TRUE(ran);
}

TEST(Kernel, CausesTravelOverTimers) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  const CauseId cause = kernel.causes().Of(7);
  CauseId seen = kNoCause;
  {
    ScopedCause scope(host, cause);
    host.RunAfter(1ms, [&] { host.RunAfter(1ms, [&] { seen = host.cause(); }); });
  }
  host.RunAfter(1ms, [&] { EXPECT_EQ(host.cause(), kNoCause); });
  kernel.RunUntil(Time(1s));
  EXPECT_EQ(seen, cause);
}

TEST(CauseTable, MergingIsASetUnion) {
  CauseTable table;
  const CauseId a = table.Of(1), b = table.Of(2);
  const CauseId ab = table.Merge(a, b);
  EXPECT_EQ(table.Merge(b, a), ab);
  EXPECT_EQ(table.Merge(ab, a), ab);
  EXPECT_EQ(table.Merge(ab, kNoCause), ab);
  EXPECT_EQ(table.Inputs(ab), (std::vector<uint64_t>{1, 2}));
}

class FixedCost : public CostModel {
 public:
  Duration Cost(const Work& work) const override { return work.units * 1ms; }
};

TEST(Kernel, WorkWaitsForAFreeProcessorInOrderOfArrival) {
  Kernel kernel(1);
  const FixedCost costs;
  Host& host = kernel.NewHost("h", 2, &costs);
  std::vector<int64_t> done;
  for (int i = 0; i < 4; ++i) {
    host.Spend({WorkKind::kRegistryEvent, 10}, [&] { done.push_back(host.Now().time_since_epoch() / 1ms); });
  }
  kernel.RunUntil(Time(1s));
  EXPECT_EQ(done, (std::vector<int64_t>{10, 10, 20, 20}));
}

TEST(Kernel, WhatAPieceOfWorkSpendsAtItsEndGoesOnBeforeOthersForATimeSlice) {
  Kernel kernel(1);
  const FixedCost costs;
  Host& host = kernel.NewHost("h", 1, &costs);
  std::vector<std::string> done;
  const auto job = [&](const std::string& name, int64_t ms) {
    host.Spend({WorkKind::kRegistryEvent, ms}, [&, name, ms] {
      done.push_back(name + "1");
      host.Spend({WorkKind::kRegistryEvent, ms}, [&, name] { done.push_back(name + "2"); });
    });
  };
  job("a", 4);
  job("b", 4);
  job("c", 10);  // its first half uses the slice up
  job("d", 1);
  kernel.RunUntil(Time(1s));
  EXPECT_EQ(done, (std::vector<std::string>{"a1", "a2", "b1", "b2", "c1", "d1", "d2", "c2"}));
  EXPECT_EQ(kernel.spent(), 38ms);
}

TEST(Kernel, HostsDoNotShareProcessors) {
  Kernel kernel(1);
  const FixedCost costs;
  Host& a = kernel.NewHost("a", 1, &costs);
  Host& b = kernel.NewHost("b", 1, &costs);
  Time done{};
  a.Spend({WorkKind::kRegistryEvent, 100}, [] {});
  b.Spend({WorkKind::kRegistryEvent, 1}, [&] { done = b.Now(); });
  kernel.RunUntil(Time(1s));
  EXPECT_EQ(done, Time(1ms));
}

std::string DigestOf(int64_t value, std::string_view detail) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  host.Intern("unrelated");
  host.RunAfter(1ms, [&] { host.Emit({TraceKind::kStep, host.Intern("s"), host.Intern("o"), value, 0, detail}); });
  kernel.RunUntil(Time(1s));
  return kernel.digest().Hex();
}

TEST(Kernel, TheDigestSeesEveryFieldOfEveryRecord) {
  EXPECT_EQ(DigestOf(1, "x"), DigestOf(1, "x"));
  EXPECT_NE(DigestOf(1, "x"), DigestOf(2, "x"));
  EXPECT_NE(DigestOf(1, "x"), DigestOf(1, "y"));
}

// Against a sorted list of the same operations; the seed is fixed, so a failure repeats.
TEST(EventQueue, AgreesWithASortedListUnderRandomPushesPopsAndCancels) {
  RandomStream random(42, "event queue");
  EventQueue queue;
  std::map<std::pair<int64_t, uint64_t>, uint64_t> model;  // (time, sequence) -> handle
  uint64_t sequence = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t what = random.Below(10);
    if (what < 5 || model.empty()) {
      const int64_t time = static_cast<int64_t>(random.Below(1000));
      model[{time, sequence++}] = queue.Push(Time(Duration(time)), {[] {}, kNoCause});
    } else if (what < 8) {
      Time time;
      queue.Pop(&time);
      ASSERT_EQ(time.time_since_epoch().count(), model.begin()->first.first);
      ASSERT_FALSE(queue.Cancel(model.begin()->second));
      model.erase(model.begin());
    } else {
      auto it = model.lower_bound({static_cast<int64_t>(random.Below(1000)), 0});
      if (it == model.end()) it = model.begin();
      ASSERT_TRUE(queue.Cancel(it->second));
      model.erase(it);
    }
    ASSERT_EQ(queue.size(), model.size());
  }
}

TEST(Kernel, WhatLiesBeyondTheEndOfTimeIsAtItsEnd) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  kernel.RunUntil(Time(1s));
  host.RunAfter(Duration::max(), [] {});
  EXPECT_EQ(kernel.NextTime(), Time::max());
}

TEST(KernelDeathTest, NothingIsScheduledInThePast) {
  Kernel kernel(42);
  Host& host = kernel.NewHost("istiod-1", 0, nullptr);
  host.RunAfter(1500ms, [&] { host.RunAfter(-1ns, [] {}); });
  EXPECT_DEATH(kernel.RunUntil(Time(2s)),
               "kernel.cc:[0-9]+: delay >= Duration::zero\\(\\)\n  delay = -1 ns\n  name_ = 'istiod-1'\n"
               "  at 1.500000000 s of virtual time, seed 42\n");
}

TEST(KernelDeathTest, AnObserverThatEmitsIsFound) {
  Kernel kernel(1);
  Host& host = kernel.NewHost("h", 0, nullptr);
  kernel.AddObserver([&](const TraceEvent&) { host.Emit({.kind = TraceKind::kRequest}); });
  EXPECT_DEATH(host.Emit({.kind = TraceKind::kConnection}), "!emitting_");
}

}  // namespace
}  // namespace wavetank::sim
