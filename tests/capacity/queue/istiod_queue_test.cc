#include "capacity/queue/istiod_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capacity/queue/compare.h"
#include "core/base/random.h"
#include "core/xds/debouncer.h"
#include "sim/kernel/kernel.h"

namespace wavetank::capacity {
namespace {

// Nothing takes time but what a test says.
CostModel Costing(std::initializer_list<std::pair<const char*, double>> values) {
  Parameters parameters = Parameters::OfIstiod();
  for (const Term& term : Terms()) {
    if (term.place <= Place::kMiss) parameters.Set(term.name, 0, "test");
  }
  for (const auto& [name, value] : values) parameters.Set(name, value, "test");
  return CostModel(parameters);
}

QueueOptions Plain() {
  QueueOptions options;
  options.before_debounce = options.wire = Duration::zero();
  return options;
}

std::vector<ChangeEvent> Every(Duration interval, int times, Change change = Change::kEndpoints) {
  std::vector<ChangeEvent> events;
  for (int i = 0; i < times; ++i) events.push_back({interval * i, change});
  return events;
}

// When the pushes of these events begin, as core's debouncer says.
std::vector<Duration> DebouncedByCore(const std::vector<ChangeEvent>& events) {
  sim::Kernel kernel(1);
  Host& host = kernel.NewHost("istiod", 0, nullptr);
  std::vector<Duration> out;
  pilot::Debouncer debouncer(host, {}, [&](pilot::PushRequest request, Callback done) {
    for (int i = 0; i < request.events; ++i) out.push_back(host.Now().time_since_epoch());
    done();
  });
  for (const ChangeEvent& event : events) {
    host.RunAfter(event.at, [&] { debouncer.Add({}); });
  }
  kernel.RunUntil(Time(10min));
  return out;
}

TEST(IstiodQueue, DebouncesAsCoreDoes) {
  RandomStream random(7, "istiod queue");
  for (int round = 0; round < 200; ++round) {
    std::vector<ChangeEvent> events;
    Duration at{};
    const int64_t most = random.Between(1, 300);
    for (int64_t n = random.Between(1, 200); n > 0; --n) {
      at += Duration(random.Between(1, most * 1'000'000));
      events.push_back({at, Change::kEndpoints});
    }
    const QueueResult result = RunQueue(Costing({}), {.proxies = 0}, Plain(), events);
    std::vector<Duration> pushed;
    for (const Arrivals& a : result.arrivals) pushed.push_back(a.at + a.last);
    EXPECT_EQ(pushed, DebouncedByCore(events)) << "round " << round;
  }
}

TEST(IstiodQueue, AStreamOfChangesWaitsForTheLongestDebounce) {
  const QueueResult result =
      RunQueue(CostModel(), {.proxies = 1, .services = 11, .endpoints = 102}, QueueOptions(), Every(90ms, 167));
  EXPECT_EQ(result.pushes, 2);
  EXPECT_GT(result.arrivals.front().last, 10s);
  EXPECT_LT(result.arrivals.back().last, 110ms);
}

TEST(IstiodQueue, ProcessorsShareTheProxies) {
  const CostModel model = Costing({{"eds.proxy", 1}});
  const MeshSize mesh{.proxies = 100};
  QueueOptions options = Plain();
  const auto last = [&](double cpus) {
    options.cpus = cpus;
    return RunQueue(model, mesh, options, Every(1s, 1)).arrivals.front().last - 100ms;
  };
  EXPECT_EQ(last(1), 100ms);
  EXPECT_EQ(last(2), 50ms);
  EXPECT_EQ(last(0.5), 200ms);
  EXPECT_EQ(last(4), 25ms);
  EXPECT_NEAR(ToMillis(last(1.5)), 100 / 1.5, 1);
}

TEST(IstiodQueue, SpendsWhatTheFormulaSays) {
  const CostModel model;
  for (const Change change : {Change::kEndpoints, Change::kService, Change::kPolicy, Change::kEverything}) {
    const Situation s{{.proxies = 300, .services = 100, .endpoints = 1000}, change, 1, true};
    const QueueResult result = RunQueue(model, s.mesh, QueueOptions(), Every(1s, 1, change));
    EXPECT_NEAR(ToMillis(result.busy), model.Cpu(s), 0.01 * model.Cpu(s)) << NameOf(change);
    EXPECT_EQ(result.proxy_pushes, 300);
    EXPECT_NEAR(result.kilobytes, 300 * model.Kilobytes(s), 1);
  }
}

TEST(IstiodQueue, WhatComesWhileProxiesWaitIsMergedAndNothingIsLost) {
  // 2 s of work in a push, a change every 200 ms.
  const CostModel model = Costing({{"eds.proxy", 4}});
  const QueueResult result = RunQueue(model, {.proxies = 1000}, Plain(), Every(200ms, 50));
  EXPECT_EQ(result.arrivals.size(), 50u);
  EXPECT_GT(result.pushes, 10);
  EXPECT_GT(result.merged, 4'000);
  EXPECT_EQ(result.proxy_pushes + result.merged, result.pushes * 1000);
  for (const Arrivals& a : result.arrivals) {
    EXPECT_LE(a.half, a.most);
    EXPECT_LE(a.most, a.last);
    EXPECT_LT(a.last, 4500ms);  // its own push and at most what was under way, and how long it was gathered
  }
}

TEST(IstiodQueue, AThrottleOfOneServesProxiesInTurn) {
  const CostModel model = Costing({{"full.proxy", 1}});
  QueueOptions options = Plain();
  options.push_throttle = 1;
  const QueueResult result = RunQueue(model, {.proxies = 10}, options, Every(1s, 1, Change::kService));
  EXPECT_EQ(result.arrivals.front().last, 110ms);  // one processor works, though there are two
}

// The aim of the model: four figures in five within a fifth, and memory nearly always.
TEST(Compare, TheModelHoldsForWhatWasMeasured) {
  const auto measured = ReadMeasurements(WAVETANK_SOURCE_DIR "/capacity/data/measured.csv");
  ASSERT_TRUE(measured.ok()) << measured.status();
  const std::vector<Comparison> rows = Compare(CostModel(), *measured);
  const Error cpu = ErrorOf(rows, &Predicted::cpu_ms, &Measured::cpu_ms);
  EXPECT_EQ(cpu.rows, 133);
  EXPECT_GE(cpu.within, cpu.rows * 85 / 100);
  const Error rss = ErrorOf(rows, &Predicted::rss_mb, &Measured::rss_mb);
  EXPECT_GE(rss.within, rss.rows * 95 / 100);
  const Error half = ErrorOf(rows, &Predicted::half_ms, &Measured::half_ms);
  EXPECT_GE(half.within, half.rows * 90 / 100);
  const Error most = ErrorOf(rows, &Predicted::most_ms, &Measured::most_ms);
  EXPECT_GE(most.within, most.rows * 90 / 100);
}

TEST(Compare, SeesAModelThatIsWrong) {
  const auto measured = ReadMeasurements(WAVETANK_SOURCE_DIR "/capacity/data/measured.csv");
  ASSERT_TRUE(measured.ok()) << measured.status();
  Parameters parameters = Parameters::OfIstiod();
  parameters.Set("rss.process", 2 * parameters["rss.process"], "test");
  parameters.Set("full.proxy", 3 * parameters["full.proxy"], "test");
  const std::vector<Comparison> rows = Compare(CostModel(parameters), *measured);
  EXPECT_LT(ErrorOf(rows, &Predicted::rss_mb, &Measured::rss_mb).within, 60);
  EXPECT_LT(ErrorOf(rows, &Predicted::cpu_ms, &Measured::cpu_ms).within, 100);
}

TEST(IstiodQueue, BucketsHoldAllThatWasDone) {
  const CostModel model = Costing({{"push.fixed", 30}, {"eds.proxy", 4}});
  QueueOptions options = Plain();
  options.cpus = 1.5;
  options.push_throttle = 3;
  options.bucket = 7ms;
  const std::vector<ChangeEvent> events = Every(150ms, 20);
  const QueueResult with = RunQueue(model, {.proxies = 40, .services = 3, .endpoints = 9}, options, events);
  options.bucket = {};
  const QueueResult without = RunQueue(model, {.proxies = 40, .services = 3, .endpoints = 9}, options, events);
  EXPECT_TRUE(without.buckets.empty());
  EXPECT_EQ(with.end, without.end);  // to count changes nothing
  ASSERT_FALSE(with.buckets.empty());
  EXPECT_EQ(with.buckets.size(), static_cast<size_t>(with.end / 7ms) + (with.end % 7ms > Duration::zero() ? 1 : 0));
  QueueBucket sum;
  for (const QueueBucket& bucket : with.buckets) {
    EXPECT_LE(bucket.busy, 10'501us);  // as fast as the processors are
    sum.busy += bucket.busy;
    sum.pushes += bucket.pushes;
    sum.full_pushes += bucket.full_pushes;
    sum.kilobytes += bucket.kilobytes;
    sum.most_waiting = std::max(sum.most_waiting, bucket.most_waiting);
  }
  EXPECT_EQ(sum.busy, without.busy);
  EXPECT_EQ(sum.pushes, without.pushes);
  EXPECT_EQ(sum.full_pushes, without.full_pushes);
  EXPECT_NEAR(sum.kilobytes, without.kilobytes, 1e-6);
  EXPECT_EQ(sum.most_waiting, without.most_waiting);
}

// One proxy at a time, each for 20 ms: in a bucket in which nobody leaves the queue they wait all the same.
TEST(IstiodQueue, WhoWaitsThroughABucketIsCountedInIt) {
  QueueOptions options = Plain();
  options.push_throttle = 1;
  options.bucket = 2ms;
  const QueueResult result =
      RunQueue(Costing({{"eds.proxy", 20}}), {.proxies = 3, .services = 1, .endpoints = 1}, options, Every(1s, 1));
  ASSERT_GT(result.buckets.size(), 70u);
  EXPECT_EQ(result.buckets[49].most_waiting, 0);
  EXPECT_EQ(result.buckets[50].most_waiting, 3);  // after the debounce
  EXPECT_EQ(result.buckets[55].most_waiting, 2);
  EXPECT_EQ(result.buckets[65].most_waiting, 1);
  EXPECT_EQ(result.buckets[72].most_waiting, 0);
}

}  // namespace
}  // namespace wavetank::capacity
