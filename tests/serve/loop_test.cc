#include "serve/loop/loop.h"
#include "tests/await.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace wavetank::serve {
namespace {

using RealClock = std::chrono::steady_clock;

std::unique_ptr<sim::World> EmptyWorld(Time start = {}) {
  sim::WorldOptions options;
  options.start = start;
  return *sim::World::Create(options);
}

TEST(Loop, VirtualTimeGoesAlongWithRealTime) {
  Loop loop(EmptyWorld());
  loop.Start();
  const auto real_before = RealClock::now();
  const Time before = *loop.Call([](sim::World& world) { return world.Now(); });
  LetTimePass(50ms);
  const Time after = *loop.Call([](sim::World& world) { return world.Now(); });
  const Duration real = RealClock::now() - real_before;
  EXPECT_GE(after - before, 50ms);
  EXPECT_LE(after - before, real + 5ms);
}

TEST(Loop, AnEventRunsWhenItIsDueWithoutAnybodyPosting) {
  Loop loop(EmptyWorld());
  loop.Start();
  std::atomic<int64_t> ran_at{0};
  const Time due = *loop.Call([&](sim::World& world) {
    world.commons().host->RunAfter(30ms, [&] { ran_at = world.Now().time_since_epoch().count(); });
    return world.Now() + 30ms;
  });
  EXPECT_TRUE(Await([&] { return ran_at != 0; }));
  EXPECT_EQ(ran_at, due.time_since_epoch().count());
}

TEST(Loop, TasksRunInTheOrderOfTheirPostingAndSeeNoTimeGoBack) {
  Loop loop(EmptyWorld());
  std::vector<int> order;
  Time last{};
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(loop.Post([&, i](sim::World& world) {
      EXPECT_GE(world.Now(), last);
      last = world.Now();
      order.push_back(i);
    }));
    if (i == 50) loop.Start();
  }
  loop.Call([](sim::World&) { return 0; });
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

// The first task takes longer than the timer has left; whatever else waits, the timer is next.
TEST(Loop, NoTimerWaitsForMoreThanOneTask) {
  Loop loop(EmptyWorld());
  std::string order;
  for (int i = 0; i < 3; ++i) {
    loop.Post([&, i](sim::World& world) {
      order += "own" + std::to_string(i) + " ";
      if (i > 0) return;
      world.commons().host->RunAfter(10ms, [&] { order += "timer "; });
      LetTimePass(20ms);
    });
  }
  loop.Start();
  loop.Call([](sim::World&) { return 0; });
  EXPECT_EQ(order, "own0 timer own1 own2 ");
}

TEST(Loop, ClientsTakeTurnsAndWaitForTheLoopsOwnTasks) {
  Loop loop(EmptyWorld());
  std::string order;
  const auto note = [&order](std::string what) {
    return [&order, what = std::move(what)](sim::World&) { order += what + " "; };
  };
  for (int i = 0; i < 3; ++i) loop.PostFor("greedy", note("greedy" + std::to_string(i)));
  loop.PostFor("modest", note("modest"));
  loop.Post(note("own"));
  std::promise<void> last;
  loop.PostFor("last", [&](sim::World&) { last.set_value(); });
  loop.Start();
  last.get_future().wait();
  loop.Call([](sim::World&) { return 0; });
  loop.Stop();
  // One turn of each before the second of the one who wants more.
  EXPECT_EQ(order.substr(0, 18), "own greedy0 modest");
  EXPECT_FALSE(loop.PostFor("greedy", [](sim::World&) { FAIL(); }));
}

TEST(Loop, StartingAheadRunsWhatIsDueUntilThenFirst) {
  Loop loop(EmptyWorld(Time{} + 1h));
  Time ran{};
  loop.world().commons().host->RunAfter(5min, [&] { ran = loop.world().Now(); });
  loop.Start(Time{} + 2h);
  EXPECT_GE(*loop.Call([](sim::World& world) { return world.Now(); }), Time{} + 2h);
  EXPECT_EQ(ran, Time{} + 1h + 5min);
}

// Two events 20 ms apart, of which both are due when the world is next asked for.
TEST(Loop, ALoopThatNeverHurriesKeepsEventsAsFarApartAsTheyAre) {
  for (const bool hurries : {true, false}) {
    const std::unique_ptr<sim::World> world = EmptyWorld();
    Loop loop(*world);
    if (!hurries) loop.NeverHurry();
    loop.Drive();
    std::vector<RealClock::time_point> ran;
    for (const Duration after : {Duration(10ms), Duration(30ms)}) {
      world->commons().host->RunAfter(after, [&] { ran.push_back(RealClock::now()); });
    }
    LetTimePass(100ms);
    world->RunUntil(Time{} + 40ms);
    ASSERT_EQ(ran.size(), 2u);
    if (!hurries) {
      EXPECT_GE(ran[1] - ran[0], 15ms);
    } else {
      EXPECT_LT(ran[1] - ran[0], 15ms);
    }
  }
}

TEST(Loop, AStoppedLoopRunsNothingMoreAndKeepsNobodyWaiting) {
  Loop loop(EmptyWorld());
  loop.Start();
  std::optional<int> answer;
  std::thread waiter;
  loop.Call([&](sim::World&) {
    waiter = std::thread([&] { answer = loop.Call([](sim::World&) { return 1; }); });
    LetTimePass(20ms);  // the waiter's task waits behind this one
    return 0;
  });
  loop.Stop();
  waiter.join();  // ran or not, it came back
  EXPECT_FALSE(loop.Post([](sim::World&) { FAIL(); }));
  EXPECT_FALSE(loop.Call([](sim::World&) { return 1; }).has_value());
}

TEST(Loop, ItsOwnThreadMayCallAndPost) {
  Loop loop(EmptyWorld());
  loop.Start();
  std::atomic<bool> posted{false};
  EXPECT_EQ(*loop.Call([&](sim::World&) {
    loop.Post([&](sim::World&) { posted = true; });
    return *loop.Call([](sim::World&) { return 7; });
  }),
            7);
  loop.Call([](sim::World&) { return 0; });
  EXPECT_TRUE(posted);
}

TEST(Loop, ADrivenLoopTakesRealTimeAndDoesWhatOthersPostMeanwhile) {
  const std::unique_ptr<sim::World> world = EmptyWorld();
  Loop loop(*world);
  loop.Drive();
  EXPECT_TRUE(loop.OnLoopThread());
  Time posted{};
  std::promise<void> at_20ms;
  world->commons().host->RunAfter(20ms, [&] { at_20ms.set_value(); });
  std::thread other([&] {
    at_20ms.get_future().wait();
    loop.Post([&](sim::World& w) { posted = w.Now(); });
  });
  const auto real_before = RealClock::now();
  Time end{};
  do {
    end += 60ms;
    world->RunUntil(end);  // as a scenario's runner asks it
    EXPECT_EQ(world->Now(), end);
  } while (posted == Time{} && end < Time{} + 60s);  // the other thread may have to wait for a processor
  EXPECT_GE(RealClock::now() - real_before, end - Time{} - 1ms);
  other.join();
  EXPECT_GE(posted, Time{} + 20ms);
  EXPECT_LE(posted, end);
  loop.Stop();
  EXPECT_FALSE(loop.Post([](sim::World&) {}));
  const auto after = RealClock::now();
  world->RunUntil(Time{} + 1h);  // nobody paces it any more
  EXPECT_LT(RealClock::now() - after, 10s);
  EXPECT_EQ(world->Now(), Time{} + 1h);
}

}  // namespace
}  // namespace wavetank::serve
