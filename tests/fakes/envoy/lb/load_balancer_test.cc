// Load balancing: docs/real-envoy.md 3, measured on real Envoy 1.40 with 1,000 requests. What Envoy computes is held
// exactly; where it draws random numbers, counts must lie within 4.5 standard deviations of the binomial distribution
// (probability of a false alarm below 1e-5 per check, and none at all for a fixed seed).
#include "fakes/envoy/lb/load_balancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fakes/envoy/lb/edf.h"

namespace wavetank::envoysim {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

struct Group {
  std::vector<uint32_t> weights;
  uint32_t locality_weight = 0;
  uint32_t priority = 0;
  std::vector<EdsHealth> health = {};
};

class Balanced {
 public:
  Balanced(LbConfig config, const std::vector<Group>& groups, uint64_t seed = 1)
      : lb_(config, RandomStream(seed, "test")) {
    auto table = std::make_shared<EndpointTable>();
    for (const Group& g : groups) {
      LbLocality l;
      l.weight = g.locality_weight;
      l.priority = g.priority;
      table->priorities = std::max(table->priorities, g.priority + 1);
      for (size_t i = 0; i < g.weights.size(); ++i) {
        LbEndpoint e;
        e.address = {IpAddress::V4(10, 0, 0, static_cast<uint8_t>(table->endpoints.size() + 1)), 80};
        e.weight = g.weights[i];
        e.locality = static_cast<uint32_t>(table->localities.size());
        e.priority = g.priority;
        if (i < g.health.size()) e.health = g.health[i];
        table->endpoints.push_back(e);
      }
      table->localities.push_back(l);
    }
    hosts_.resize(table->endpoints.size());
    table_ = table;
    Refresh();
  }

  void Refresh() {
    std::vector<const LbHost*> hosts;
    for (const LbHost& h : hosts_) hosts.push_back(&h);
    lb_.Update(table_, hosts);
  }

  // One request at a time.
  std::vector<int> Counts(int n) {
    std::vector<int> counts(hosts_.size(), 0);
    for (int i = 0; i < n; ++i) {
      const int32_t host = lb_.Pick({});
      if (host == LoadBalancer::kNone) {
        ++none;
      } else {
        ++counts[host];
      }
    }
    return counts;
  }
  std::string Pattern(int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += std::to_string(lb_.Pick({}));
    return out;
  }

  LoadBalancer lb_;
  std::vector<LbHost> hosts_;
  std::shared_ptr<const EndpointTable> table_;
  int none = 0;
};

LbConfig Config(LbPolicy policy, uint32_t panic = 50, bool locality_weighted = false) {
  LbConfig c;
  c.policy = policy;
  c.panic_threshold_percent = panic;
  c.locality_weighted = locality_weighted;
  return c;
}

void ExpectBinomial(int count, int n, double p) {
  const double sigma = std::sqrt(n * p * (1 - p));
  EXPECT_NEAR(count, n * p, 4.5 * sigma) << "n " << n << " p " << p;
}

constexpr auto kUp = EdsHealth::kHealthy;
constexpr auto kDown = EdsHealth::kUnhealthy;
constexpr auto kSlow = EdsHealth::kDegraded;

// `pattern` repeated, from any starting point.
bool IsRotation(const std::string& run, const std::string& pattern) {
  std::string endless;
  while (endless.size() < run.size() + pattern.size()) endless += pattern;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (endless.substr(i, run.size()) == run) return true;
  }
  return false;
}

TEST(EdfTest, WeightsGiveExactSharesInAFixedPattern) {
  EdfScheduler edf;
  const uint64_t weights[] = {1, 2, 3};
  for (uint32_t i = 0; i < 3; ++i) edf.Add({weights[i], 1}, i);
  std::string run;
  for (int i = 0; i < 12; ++i) {
    run += std::to_string(edf.PickAndAdd([&](uint32_t v) { return EdfScheduler::Weight{weights[v], 1}; }));
  }
  EXPECT_EQ(run, "212012212012");
}

TEST(LoadBalancerTest, RoundRobinIsExact) {
  EXPECT_THAT(Balanced(Config(LbPolicy::kRoundRobin), {{{1, 1}}}).Counts(1000), ElementsAre(500, 500));
  EXPECT_THAT(Balanced(Config(LbPolicy::kRoundRobin), {{{1, 3}}}).Counts(1000), ElementsAre(250, 750));
  const auto counts = Balanced(Config(LbPolicy::kRoundRobin), {{{1, 2, 3}}}).Counts(1000);
  EXPECT_NEAR(counts[0], 167, 1);
  EXPECT_NEAR(counts[1], 333, 1);
  EXPECT_NEAR(counts[2], 500, 1);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    EXPECT_TRUE(IsRotation(Balanced(Config(LbPolicy::kRoundRobin), {{{1, 3}}}, seed).Pattern(40), "1110")) << seed;
    EXPECT_TRUE(IsRotation(Balanced(Config(LbPolicy::kRoundRobin), {{{1, 2, 3}}}, seed).Pattern(42), "212012")) << seed;
  }
}

// How many of 1100 requests go to a host that is so old beside one that has been there for long.
int SharesOfANewHost(LbConfig config, Duration age) {
  config.slow_start_window = 60s;
  Balanced balanced(config, {{{1, 1}}});
  const Time joined = Time{} + 1h;
  balanced.hosts_[0].healthy_since = Time{};
  balanced.hosts_[1].healthy_since = joined;
  balanced.lb_.Update(balanced.table_, {&balanced.hosts_[0], &balanced.hosts_[1]}, joined);
  LoadBalancer::Context context;
  context.now = joined + age;
  for (int i = 0; i < 300; ++i) (void)balanced.lb_.Pick(context);  // its first turn is due by the weight it came with
  int count = 0;
  for (int i = 0; i < 1100; ++i) count += balanced.lb_.Pick(context) == 1;
  return count;
}

TEST(LoadBalancerTest, AHostThatIsNewGetsItsWeightByAndBy) {
  const LbConfig config = Config(LbPolicy::kRoundRobin);
  EXPECT_NEAR(SharesOfANewHost(config, 1s), 100, 2);  // a tenth of the weight at least
  EXPECT_NEAR(SharesOfANewHost(config, 30s), 1100 / 3, 2);
  EXPECT_NEAR(SharesOfANewHost(config, 45s), 1100 * 3 / 7, 2);
}

TEST(LoadBalancerTest, AggressionAndTheLeastWeightShapeTheWarmUp) {
  LbConfig config = Config(LbPolicy::kLeastRequest);
  config.slow_start_min_weight = 0.5;
  EXPECT_NEAR(SharesOfANewHost(config, 1s), 1100 / 3, 2);
  config.slow_start_min_weight = 0.01;
  config.slow_start_aggression = 2;
  EXPECT_NEAR(SharesOfANewHost(config, 15s), 1100 / 3, 2);  // the square root of a quarter
}

TEST(LoadBalancerTest, RoundRobinStartsAnywhere) {
  std::string firsts;
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const std::string run = Balanced(Config(LbPolicy::kRoundRobin), {{{1, 1}}}, seed).Pattern(6);
    EXPECT_TRUE(IsRotation(run, "01"));
    firsts += run[0];
  }
  EXPECT_NE(firsts.find('0'), std::string::npos);
  EXPECT_NE(firsts.find('1'), std::string::npos);
}

TEST(LoadBalancerTest, LeastRequestWithEqualWeightsIsAPowerOfTwoRandomChoices) {
  const auto counts = Balanced(Config(LbPolicy::kLeastRequest), {{{1, 1}}}).Counts(10000);
  ExpectBinomial(counts[0], 10000, 0.5);
}

TEST(LoadBalancerTest, LeastRequestPrefersTheIdleHost) {
  Balanced b(Config(LbPolicy::kLeastRequest), {{{1, 1}}});
  b.hosts_[0].active_requests = 5;
  // Both draws hit the busy host in a quarter of the cases.
  ExpectBinomial(b.Counts(10000)[0], 10000, 0.25);
}

TEST(LoadBalancerTest, LeastRequestWithUnequalWeightsIsExactWhenIdle) {
  EXPECT_THAT(Balanced(Config(LbPolicy::kLeastRequest), {{{1, 3}}}).Counts(1000), ElementsAre(250, 750));
  const auto counts = Balanced(Config(LbPolicy::kLeastRequest), {{{1, 2, 3}}}).Counts(1200);
  EXPECT_THAT(counts, ElementsAre(200, 400, 600));
}

TEST(LoadBalancerTest, LeastRequestWithUnequalWeightsDividesByActiveRequests) {
  Balanced b(Config(LbPolicy::kLeastRequest), {{{1, 3}}});
  b.hosts_[1].active_requests = 2;  // 3 / (2 + 1) = 1
  b.Refresh();
  EXPECT_THAT(b.Counts(1000), ElementsAre(500, 500));
}

TEST(LoadBalancerTest, RandomIgnoresWeights) {
  ExpectBinomial(Balanced(Config(LbPolicy::kRandom), {{{1, 3}}}).Counts(10000)[0], 10000, 0.5);
}

TEST(LoadBalancerTest, LocalityWeightsCountOnlyWithLocalityWeightedLb) {
  for (LbPolicy policy : {LbPolicy::kRoundRobin, LbPolicy::kLeastRequest}) {
    const auto without = Balanced(Config(policy), {{{1}, 1}, {{1}, 3}}).Counts(1000);
    if (policy == LbPolicy::kRoundRobin) {
      EXPECT_THAT(without, ElementsAre(500, 500));
    } else {
      ExpectBinomial(without[0], 1000, 0.5);
    }
    EXPECT_THAT(Balanced(Config(policy, 50, true), {{{1}, 1}, {{1}, 3}}).Counts(1000), ElementsAre(250, 750));
  }
  EXPECT_THAT(Balanced(Config(LbPolicy::kRoundRobin), {{{1, 1, 1}, 1}, {{1}, 1}}).Counts(1000), Each(250));
  const auto with = Balanced(Config(LbPolicy::kRoundRobin, 50, true), {{{1, 1, 1}, 1}, {{1}, 1}}).Counts(1000);
  EXPECT_NEAR(with[0], 167, 1);
  EXPECT_NEAR(with[1], 167, 1);
  EXPECT_NEAR(with[2], 167, 1);
  EXPECT_EQ(with[3], 500);
}

TEST(LoadBalancerTest, IstiosEndpointWeightsOverLocalitiesAreExact) {
  // a(3 x weight 1), b(1 x weight 2), no locality-weighted lb.
  for (LbPolicy policy : {LbPolicy::kRoundRobin, LbPolicy::kLeastRequest}) {
    EXPECT_THAT(Balanced(Config(policy), {{{1, 1, 1}, 3}, {{2}, 2}}).Counts(1000), ElementsAre(200, 200, 200, 400));
  }
}

TEST(LoadBalancerTest, UnhealthyHostsShrinkTheirLocalityByOverprovisioning) {
  // 0.5 * 1.4 = 0.7 of weight 1 against 1: 7/17 of the load.
  const auto counts =
      Balanced(Config(LbPolicy::kRoundRobin, 50, true), {{{1, 1}, 1, 0, {kUp, kDown}}, {{1}, 1}}).Counts(1700);
  EXPECT_THAT(counts, ElementsAre(700, 0, 1000));
}

TEST(LoadBalancerTest, LoadSpillsOverToTheNextPriorityByHealth) {
  const int measured[] = {100, 100, 70, 35, 0};
  for (int down = 0; down <= 4; ++down) {
    std::vector<EdsHealth> health(4, kUp);
    for (int i = 0; i < down; ++i) health[i] = kDown;
    Balanced b(Config(LbPolicy::kRoundRobin), {{{1, 1, 1, 1}, 0, 0, health}, {{1, 1, 1, 1}, 0, 1}});
    EXPECT_EQ(b.lb_.healthy_load()[0], static_cast<uint32_t>(measured[down]));
    const auto counts = b.Counts(10000);
    const int first = counts[0] + counts[1] + counts[2] + counts[3];
    if (measured[down] == 0 || measured[down] == 100) {
      EXPECT_EQ(first, measured[down] * 100);
    } else {
      ExpectBinomial(first, 10000, measured[down] / 100.0);
    }
    for (int i = 0; i < down; ++i) EXPECT_EQ(counts[i], 0);
  }
}

TEST(LoadBalancerTest, BothPrioritiesPanicWhenTogetherTooFewAreHealthy) {
  for (int second : {1, 0}) {
    std::vector<EdsHealth> a{kUp, kDown, kDown, kDown}, b{kUp, kDown, kDown, kDown};
    if (second == 0) b[0] = kDown;
    Balanced lb(Config(LbPolicy::kRoundRobin), {{{1, 1, 1, 1}, 0, 0, a}, {{1, 1, 1, 1}, 0, 1, b}});
    EXPECT_THAT(lb.lb_.panic(), ElementsAre(true, true));
    EXPECT_THAT(lb.lb_.healthy_load(), ElementsAre(50, 50)) << "by the number of hosts";
    const auto counts = lb.Counts(10000);
    for (int c : counts) EXPECT_GT(c, 1000);
  }
}

TEST(LoadBalancerTest, PanicBeginsStrictlyBelowTheThreshold) {
  for (int healthy : {6, 5, 4, 1, 0}) {
    std::vector<EdsHealth> health(10, kDown);
    for (int i = 0; i < healthy; ++i) health[i] = kUp;
    const auto counts =
        Balanced(Config(LbPolicy::kRoundRobin), {{std::vector<uint32_t>(10, 1), 0, 0, health}}).Counts(1000);
    if (healthy >= 5) {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(counts[i] > 0, i < healthy);
    } else {
      EXPECT_THAT(counts, Each(100));
    }
  }
}

TEST(LoadBalancerTest, ThresholdZeroNeverPanics) {
  Balanced one(Config(LbPolicy::kRoundRobin, 0), {{{1, 1, 1}, 0, 0, {kUp, kDown, kDown}}});
  EXPECT_THAT(one.Counts(100), ElementsAre(100, 0, 0));
  Balanced zero(Config(LbPolicy::kRoundRobin, 0), {{{1, 1}, 0, 0, {kDown, kDown}}});
  EXPECT_THAT(zero.Counts(100), Each(0));
  EXPECT_EQ(zero.none, 100);
}

TEST(LoadBalancerTest, DegradedHostsGetWhatHealthyOnesCannotCarry) {
  // Two of three healthy: 2/3 * 1.4 = 93 %.
  const auto counts = Balanced(Config(LbPolicy::kRoundRobin), {{{1, 1, 1}, 0, 0, {kSlow, kUp, kUp}}}).Counts(10000);
  ExpectBinomial(counts[0], 10000, 0.07);
  EXPECT_NEAR(counts[1], counts[2], 1);
}

TEST(LoadBalancerTest, EjectedHostsCountAsUnhealthy) {
  Balanced b(Config(LbPolicy::kRoundRobin), {{{1, 1, 1, 1}}});
  b.hosts_[2].ejected = true;
  b.Refresh();
  EXPECT_EQ(b.Counts(300)[2], 0);
}

TEST(LoadBalancerTest, NoEndpointsMeansNoHost) {
  Balanced b(Config(LbPolicy::kLeastRequest), {});
  b.Counts(3);
  EXPECT_EQ(b.none, 3);
}

TEST(LoadBalancerTest, RetriesAvoidHostsButTakeTheLastChoice) {
  Balanced b(Config(LbPolicy::kRoundRobin), {{{1, 1, 1}}});
  for (int i = 0; i < 20; ++i) {
    LoadBalancer::Context context;
    const auto avoid = [](uint32_t host) { return host != 2; };
    context.avoid.emplace(avoid);
    context.reselections = 5;
    EXPECT_EQ(b.lb_.Pick(context), 2);
  }
  const auto avoid_all = [](uint32_t) { return true; };
  LoadBalancer::Context context;
  context.avoid.emplace(avoid_all);
  context.reselections = 5;
  EXPECT_NE(b.lb_.Pick(context), LoadBalancer::kNone);
}

TEST(LoadBalancerTest, RetriesLeavePrioritiesOutWhileOthersHaveHosts) {
  Balanced b(Config(LbPolicy::kRoundRobin), {{{1}, 0, 0}, {{1}, 0, 1}, {{1}, 0, 2, {kDown}}});
  const auto pick = [&](const std::vector<bool>& without) {
    LoadBalancer::Context context;
    context.without = &without;
    return b.lb_.Pick(context);
  };
  EXPECT_EQ(pick({}), 0);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pick({true}), 1);
  EXPECT_TRUE(b.lb_.AnyBut({true}));
  EXPECT_FALSE(b.lb_.AnyBut({true, true})) << "the host of the last one is down";
  EXPECT_EQ(pick({true, true}), 0) << "as without it";
}

TEST(LoadBalancerTest, RoundRobinGoesOnWhereItWasAfterAnUpdate) {
  Balanced b(Config(LbPolicy::kRoundRobin), {{{1, 1}}});
  const std::string before = b.Pattern(1);
  b.Refresh();
  EXPECT_NE(before, b.Pattern(1));
}

TEST(HashingTest, RingAndMaglevFollowTheHashAndSpreadByWeight) {
  for (LbPolicy policy : {LbPolicy::kRingHash, LbPolicy::kMaglev}) {
    Balanced b(Config(policy), {{{1, 1, 2}}});
    std::vector<int> counts(3, 0);
    for (uint64_t i = 0; i < 20000; ++i) {
      LoadBalancer::Context context;
      context.hash = Mix64(i);
      const int32_t host = b.lb_.Pick(context);
      ASSERT_EQ(host, b.lb_.Pick(context)) << "the same hash, the same host";
      ++counts[host];
    }
    // 1,024 points on the ring spread unevenly; Maglev's table is even.
    const double tolerance = policy == LbPolicy::kMaglev ? 0.02 : 0.08;
    EXPECT_NEAR(counts[0] / 20000.0, 0.25, tolerance);
    EXPECT_NEAR(counts[2] / 20000.0, 0.50, tolerance);
  }
}

TEST(HashingTest, ARemovedHostMovesOnlyItsOwnKeys) {
  for (LbPolicy policy : {LbPolicy::kRingHash, LbPolicy::kMaglev}) {
    Balanced all(Config(policy), {{{1, 1, 1, 1}}});
    Balanced fewer(Config(policy), {{{1, 1, 1, 1}, 0, 0, {kUp, kUp, kUp, kDown}}});
    int moved = 0, elsewhere = 0;
    for (uint64_t i = 0; i < 4000; ++i) {
      LoadBalancer::Context context;
      context.hash = Mix64(i);
      const int32_t before = all.lb_.Pick(context), after = fewer.lb_.Pick(context);
      EXPECT_NE(after, 3);
      if (before == 3) {
        ++moved;
      } else if (before != after) {
        ++elsewhere;
      }
    }
    EXPECT_GT(moved, 500);
    // Maglev moves a few per cent of the others. So does a ring: it keeps its size (minimum_ring_size), hence the hosts
    // that stay get points that they had not.
    EXPECT_LE(elsewhere, 3000 * 15 / 100);
  }
}

}  // namespace
}  // namespace wavetank::envoysim
