#include "core/base/observers.h"

#include <gtest/gtest.h>

#include <string>

namespace wavetank {
namespace {

TEST(Observers, AreToldInOrderUntilTheirHandleEnds) {
  Observers<int> observers;
  std::string told;
  Subscription first = observers.Add([&](int n) { told += "a" + std::to_string(n); });
  {
    const Subscription second = observers.Add([&](int n) { told += "b" + std::to_string(n); });
    observers.Tell(1);
  }
  observers.Tell(2);
  first.Cancel();
  observers.Tell(3);
  EXPECT_EQ(told, "a1b1a2");
}

TEST(Observers, MayEndThemselvesAndOthersFromWithin) {
  Observers<> observers;
  std::string told;
  Subscription second, first = observers.Add([&] {
    told += 'a';
    second.Cancel();
    first.Cancel();
  });
  second = observers.Add([&] { told += 'b'; });
  const Subscription third = observers.Add([&] { told += 'c'; });
  observers.Tell();
  observers.Tell();
  EXPECT_EQ(told, "acc");
}

TEST(Observers, OneThatIsAddedFromWithinIsToldOfTheSameEvent) {
  Observers<> observers;
  Subscriptions kept;
  int calls = 0;
  kept.Add(observers.Add([&] {
    if (calls++ == 0) kept.Add(observers.Add([&] { calls += 10; }));
  }));
  observers.Tell();
  EXPECT_EQ(calls, 11);
}

TEST(Observers, AHandleMayOutliveWhatItCameFrom) {
  Subscription late;
  {
    Observers<> observers;
    late = observers.Add([] {});
  }
  EXPECT_TRUE(late.active());
}

}  // namespace
}  // namespace wavetank
