#include "fakes/envoy/lb/load_balancer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/lb/consistent_hash.h"

namespace wavetank::envoysim {
namespace {

// Hands out `total` percent to the priorities in order, each as much as its availability allows.
// Returns the first available priority (-1: none) and what is left over.
std::pair<int, uint32_t> DistributeLoad(const std::vector<uint32_t>& availability, uint32_t normalized, uint32_t total,
                                        std::vector<uint32_t>* load) {
  WAVETANK_ASSERT(normalized > 0, total);
  WAVETANK_ASSERT(load->size() == availability.size(), load->size(), availability.size());
  int first = -1;
  for (size_t i = 0; i < availability.size(); ++i) {
    if (first < 0 && availability[i] > 0) first = static_cast<int>(i);
    (*load)[i] = std::min(total, availability[i] * 100 / normalized);
    total -= (*load)[i];
  }
  return {first, total};
}

}  // namespace

LoadBalancer::LoadBalancer(const LbConfig& config, RandomStream random, bool excludes_draining)
    : config_(config), random_(random), seed_(random_.Next() >> 1), excludes_draining_(excludes_draining) {}

EdsHealth HealthOf(const LbEndpoint& endpoint, const LbHost& host) {
  if (host.ejected || host.failed_check) return EdsHealth::kUnhealthy;
  if (host.degraded_check && endpoint.health == EdsHealth::kHealthy) return EdsHealth::kDegraded;
  return endpoint.health;
}

EdsHealth LoadBalancer::Health(uint32_t host) const { return HealthOf(table_->endpoints[host], *hosts_[host]); }

EdfScheduler::Weight LoadBalancer::WeightOf(uint32_t host) const {
  // LEAST_REQUEST with unequal weights: weight / (active + 1), the active request bias being 1.
  const uint64_t denominator =
      config_.policy == LbPolicy::kLeastRequest ? uint64_t{hosts_[host]->active_requests} + 1 : 1;
  const uint64_t weight = std::max<uint32_t>(table_->endpoints[host].weight, 1);
  if (!SlowStarting()) return {weight, denominator};
  return {weight * SlowStartShare(host), denominator * kWholeWeight};
}

bool LoadBalancer::SlowStarting() const {
  return config_.slow_start_window > Duration::zero() && latest_host_.has_value() &&
         (now_ - *latest_host_) / 1ms <= config_.slow_start_window / 1ms;
}

uint64_t LoadBalancer::SlowStartShare(uint32_t host) const {
  const std::optional<Time> since = hosts_[host]->healthy_since;
  const int64_t window = config_.slow_start_window / 1ms;
  if (!since.has_value() || Health(host) != EdsHealth::kHealthy) return kWholeWeight;
  const int64_t age = (now_ - *since) / 1ms;
  if (age >= window) return kWholeWeight;
  const int64_t whole = static_cast<int64_t>(kWholeWeight);
  int64_t share = std::max<int64_t>(age, 1) * whole / window;
  if (config_.slow_start_aggression != 1) {
    const double factor = static_cast<double>(std::max<int64_t>(age, 1)) / static_cast<double>(window);
    share = std::llround(std::pow(factor, 1 / config_.slow_start_aggression) * static_cast<double>(whole));
  }
  const int64_t least = std::llround(config_.slow_start_min_weight * static_cast<double>(whole));
  return static_cast<uint64_t>(std::clamp<int64_t>(std::max(share, least), 1, whole));
}

void LoadBalancer::Prepare(Source* source) const {
  source->edf.Clear();
  source->weighted = false;
  if (source->hosts.size() < 2) return;
  if (config_.policy != LbPolicy::kRoundRobin && config_.policy != LbPolicy::kLeastRequest) return;
  const uint32_t first = table_->endpoints[source->hosts.front()].weight;
  source->weighted = SlowStarting() || std::any_of(source->hosts.begin(), source->hosts.end(),
                                                   [&](uint32_t h) { return table_->endpoints[h].weight != first; });
  if (!source->weighted) return;
  for (uint32_t host : source->hosts) source->edf.Add(WeightOf(host), host);
  for (uint64_t i = seed_ % source->hosts.size(); i > 0; --i) {
    source->edf.PickAndAdd([this](uint32_t host) { return WeightOf(host); });
  }
}

void LoadBalancer::PrepareLocalities(const Priority& priority, EdsHealth health, const Priority* old,
                                     LocalitySources* out) {
  out->chooser.Clear();
  out->sources.assign(table_->localities.size(), Source{});
  std::vector<uint32_t> total(table_->localities.size(), 0);
  for (uint32_t host : priority.all.hosts) {
    const uint32_t locality = table_->endpoints[host].locality;
    if (!Excluded(host)) ++total[locality];
    if (Health(host) == health) out->sources[locality].hosts.push_back(host);
  }
  for (uint32_t i = 0; i < out->sources.size(); ++i) {
    Source& source = out->sources[i];
    const LocalitySources* previous =
        old == nullptr ? nullptr
                       : (health == EdsHealth::kHealthy ? &old->healthy_localities : &old->degraded_localities);
    source.next = previous != nullptr && i < previous->sources.size() ? previous->sources[i].next : seed_;
    Prepare(&source);
    if (source.hosts.empty() || table_->localities[i].weight == 0) continue;
    // Weight times min(1, overprovisioning * available share), as a fraction of 100 * total.
    const uint64_t full = uint64_t{100} * total[i];
    const uint64_t available =
        std::min<uint64_t>(full, uint64_t{table_->overprovisioning_factor} * source.hosts.size());
    out->chooser.Add({available * table_->localities[i].weight, full}, i);
  }
}

void LoadBalancer::Update(std::shared_ptr<const EndpointTable> table, const std::vector<const LbHost*>& hosts,
                          Time now) {
  std::vector<Priority> old = std::move(priorities_);
  table_ = std::move(table);
  hosts_ = hosts;
  now_ = now;
  if (!latest_host_.has_value()) latest_host_ = now;
  for (const LbHost* host : hosts_) {
    if (host->healthy_since.has_value() && *host->healthy_since > *latest_host_) latest_host_ = host->healthy_since;
  }
  WAVETANK_ASSERT(hosts_.size() == table_->endpoints.size(), hosts_.size(), table_->endpoints.size());
  priorities_.assign(std::max<uint32_t>(table_->priorities, 1), Priority{});
  for (uint32_t i = 0; i < table_->endpoints.size(); ++i) {
    const uint32_t priority = table_->endpoints[i].priority;
    WAVETANK_ASSERT(priority < priorities_.size(), priority, priorities_.size());
    Priority& p = priorities_[priority];
    p.all.hosts.push_back(i);
    if (Excluded(i)) ++p.excluded;
    switch (Health(i)) {
      case EdsHealth::kHealthy:
        p.healthy.hosts.push_back(i);
        break;
      case EdsHealth::kDegraded:
        p.degraded.hosts.push_back(i);
        break;
      case EdsHealth::kUnhealthy:
        break;
    }
  }
  const bool hashing = config_.policy == LbPolicy::kRingHash || config_.policy == LbPolicy::kMaglev;
  for (size_t i = 0; i < priorities_.size(); ++i) {
    Priority& p = priorities_[i];
    const Priority* before = i < old.size() ? &old[i] : nullptr;
    p.total = static_cast<uint32_t>(p.all.hosts.size());
    p.all.next = before != nullptr ? before->all.next : seed_;
    p.healthy.next = before != nullptr ? before->healthy.next : seed_;
    p.degraded.next = before != nullptr ? before->degraded.next : seed_;
    Prepare(&p.all);
    Prepare(&p.healthy);
    Prepare(&p.degraded);
    if (config_.locality_weighted) {
      PrepareLocalities(p, EdsHealth::kHealthy, before, &p.healthy_localities);
      PrepareLocalities(p, EdsHealth::kDegraded, before, &p.degraded_localities);
    }
    if (hashing) {
      PrepareHash(p.all.hosts, &p.all_table);
      PrepareHash(p.healthy.hosts, &p.healthy_table);
    }
  }
  ComputeLoads();
}

void LoadBalancer::ComputeLoads() {
  const size_t n = priorities_.size();
  std::vector<uint32_t>&healthy = healthy_share_, &degraded = degraded_share_;
  healthy.assign(n, 0);
  degraded.assign(n, 0);
  healthy_load_.assign(n, 0);
  degraded_load_.assign(n, 0);
  panic_.assign(n, false);
  uint32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const Priority& p = priorities_[i];
    uint64_t total = p.total - p.excluded, good = p.healthy.hosts.size(), fair = p.degraded.hosts.size();
    if (table_->weighted_priority_health) {
      const auto weight = [this](uint64_t acc, uint32_t h) { return acc + table_->endpoints[h].weight; };
      total = 0;
      for (const uint32_t host : p.all.hosts) total += Excluded(host) ? 0 : table_->endpoints[host].weight;
      good = std::accumulate(p.healthy.hosts.begin(), p.healthy.hosts.end(), uint64_t{0}, weight);
      fair = std::accumulate(p.degraded.hosts.begin(), p.degraded.hosts.end(), uint64_t{0}, weight);
    }
    if (total == 0) continue;
    healthy[i] = static_cast<uint32_t>(std::min<uint64_t>(100, table_->overprovisioning_factor * good / total));
    degraded[i] = static_cast<uint32_t>(std::min<uint64_t>(100, table_->overprovisioning_factor * fair / total));
    sum += healthy[i] + degraded[i];
  }
  const uint32_t normalized = std::min<uint32_t>(100, sum);
  if (normalized > 0) {
    const auto [first_healthy, left] = DistributeLoad(healthy, normalized, 100, &healthy_load_);
    const auto [first_degraded, rest] = DistributeLoad(degraded, normalized, left, &degraded_load_);
    if (rest > 0) {
      WAVETANK_ASSERT(std::max(first_healthy, first_degraded) >= 0, normalized);  // something is available
      if (first_healthy >= 0) {
        healthy_load_[first_healthy] += rest;
      } else {
        degraded_load_[first_degraded] += rest;
      }
    }
    const uint32_t loads = std::accumulate(healthy_load_.begin(), healthy_load_.end(), uint32_t{0}) +
                           std::accumulate(degraded_load_.begin(), degraded_load_.end(), uint32_t{0});
    WAVETANK_ASSERT(loads == 100, loads, normalized);  // each request finds a priority
  }
  const uint32_t threshold = std::min<uint32_t>(100, config_.panic_threshold_percent);
  if (normalized == 0 && threshold == 0) {
    healthy_load_[0] = 100;  // panic is off and nobody is available: the choice finds no host
    return;
  }
  bool total_panic = true;
  for (size_t i = 0; i < n; ++i) {
    const Priority& p = priorities_[i];
    // Strictly below the threshold; never while enough is available over all priorities.
    panic_[i] = normalized < 100 && 100 * uint64_t{p.healthy.hosts.size() + p.degraded.hosts.size()} <
                                        uint64_t{threshold} * std::max<uint32_t>(p.total - p.excluded, 1);
    total_panic = total_panic && panic_[i];
  }
  if (!total_panic) return;
  // Everything panics: load goes by the number of hosts, whatever their health.
  const uint64_t hosts = table_->endpoints.size();
  std::fill(healthy_load_.begin(), healthy_load_.end(), 0);
  std::fill(degraded_load_.begin(), degraded_load_.end(), 0);
  if (hosts == 0) {
    healthy_load_[0] = 100;
    return;
  }
  uint32_t left = 100;
  int first = -1;
  for (size_t i = 0; i < n; ++i) {
    if (first < 0 && priorities_[i].total > 0) first = static_cast<int>(i);
    healthy_load_[i] = static_cast<uint32_t>(uint64_t{100} * priorities_[i].total / hosts);
    left -= healthy_load_[i];
  }
  WAVETANK_ASSERT(first >= 0, hosts);
  WAVETANK_ASSERT(left <= 100, left);
  healthy_load_[first] += left;
}

// Envoy: previous_priorities.cc, adjustForAttemptedPriorities: what rounding leaves over is handed out again
LoadBalancer::Loads LoadBalancer::LoadsWithout(const std::vector<bool>& priorities) const {
  const size_t n = priorities_.size();
  std::vector<uint32_t> healthy = healthy_share_, degraded = degraded_share_;
  uint32_t sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (i < priorities.size() && priorities[i]) healthy[i] = degraded[i] = 0;
    sum += healthy[i] + degraded[i];
  }
  if (sum == 0) return {};
  const uint32_t normalized = std::min<uint32_t>(100, sum);
  Loads out{std::vector<uint32_t>(n, 0), std::vector<uint32_t>(n, 0)};
  uint32_t total = 100;
  while (total > 0) {
    const auto hand_out = [&](const std::vector<uint32_t>& available, std::vector<uint32_t>* load) {
      for (size_t i = 0; i < n; ++i) {
        const uint32_t share = std::min(total, available[i] * 100 / normalized);
        (*load)[i] += share;
        total -= share;
      }
    };
    hand_out(healthy, &out.first);
    hand_out(degraded, &out.second);
  }
  return out;
}

bool LoadBalancer::AnyBut(const std::vector<bool>& priorities) const { return !LoadsWithout(priorities).first.empty(); }

int32_t LoadBalancer::Pick(const Context& context) {
  if (table_ == nullptr || table_->empty()) return kNone;
  now_ = context.now;
  int32_t host = kNone;
  for (uint32_t attempt = 0; attempt <= context.reselections; ++attempt) {
    host = PickOnce(context, attempt);
    WAVETANK_ASSERT(host >= kNone, host);
    WAVETANK_ASSERT(host < static_cast<int64_t>(hosts_.size()), host, hosts_.size());
    if (host == kNone || !context.avoid.has_value() || !(*context.avoid)(static_cast<uint32_t>(host))) break;
  }
  return host;
}

int32_t LoadBalancer::PickOnce(const Context& context, uint32_t attempt) {
  uint64_t hash = 0;
  const bool hashing = config_.policy == LbPolicy::kRingHash || config_.policy == LbPolicy::kMaglev;
  if (hashing) hash = context.hash.has_value() ? *context.hash : random_.Next();
  size_t chosen = 0;
  bool degraded = false;
  Loads others;
  if (context.without != nullptr) others = LoadsWithout(*context.without);
  const bool adjusted = !others.first.empty();
  const std::vector<uint32_t>& healthy_load = adjusted ? others.first : healthy_load_;
  const std::vector<uint32_t>& degraded_load = adjusted ? others.second : degraded_load_;
  if (healthy_load[0] != 100) {
    const uint32_t point = static_cast<uint32_t>(hashing ? hash % 100 : random_.Below(100)) + 1;
    uint32_t sum = 0;
    bool found = false;
    for (size_t i = 0; i < priorities_.size() && !found; ++i) {
      sum += healthy_load[i];
      if (point <= sum) chosen = i, found = true;
    }
    for (size_t i = 0; i < priorities_.size() && !found; ++i) {
      sum += degraded_load[i];
      if (point <= sum) chosen = i, found = degraded = true;
    }
  }
  Priority& p = priorities_[chosen];
  if (panic_[chosen]) {
    ++panics_;
    if (config_.fail_traffic_on_panic) return kNone;
    return hashing ? PickHashed(p.all_table, hash, attempt) : PickFrom(&p.all);
  }
  // No degraded host is on a ring. Envoy: common/thread_aware_lb_impl.cc, normalizeWeights
  if (hashing) return PickHashed(p.healthy_table, hash, attempt);
  if (config_.locality_weighted) {
    LocalitySources& localities = degraded ? p.degraded_localities : p.healthy_localities;
    if (!localities.chooser.empty()) {
      const uint32_t locality = localities.chooser.PickAndAdd([&](uint32_t i) -> EdfScheduler::Weight {
        uint64_t total = 0;
        for (uint32_t host : p.all.hosts) total += table_->endpoints[host].locality == i && !Excluded(host);
        const uint64_t full = 100 * total;
        return {
            std::min<uint64_t>(full, uint64_t{table_->overprovisioning_factor} * localities.sources[i].hosts.size()) *
                table_->localities[i].weight,
            full};
      });
      return PickFrom(&localities.sources[locality]);
    }
  }
  return PickFrom(degraded ? &p.degraded : &p.healthy);
}

int32_t LoadBalancer::PickFrom(Source* source) {
  const size_t n = source->hosts.size();
  if (n == 0) return kNone;
  if (source->weighted) {
    return static_cast<int32_t>(source->edf.PickAndAdd([this](uint32_t host) { return WeightOf(host); }));
  }
  switch (config_.policy) {
    case LbPolicy::kLeastRequest: {
      // Power of random choices, with replacement; the earlier draw keeps a tie.
      uint32_t best = source->hosts[random_.Below(n)];
      // After so many draws every host was seen; an Envoy takes seconds for more, and finds no other.
      constexpr uint32_t kMostDraws = 1 << 16;
      for (uint32_t i = 1; i < std::min(config_.choice_count, kMostDraws); ++i) {
        const uint32_t other = source->hosts[random_.Below(n)];
        if (hosts_[other]->active_requests < hosts_[best]->active_requests) best = other;
      }
      return static_cast<int32_t>(best);
    }
    case LbPolicy::kRandom:
      return static_cast<int32_t>(source->hosts[random_.Below(n)]);
    default:
      return static_cast<int32_t>(source->hosts[source->next++ % n]);
  }
}

void LoadBalancer::PrepareHash(const std::vector<uint32_t>& hosts, HashTable* table) const {
  if (config_.policy == LbPolicy::kRingHash) {
    table->ring = BuildHashRing(*table_, hosts, config_);
  } else {
    table->maglev = BuildMaglevTable(*table_, hosts, config_);
  }
}

int32_t LoadBalancer::PickHashed(const HashTable& table, uint64_t hash, uint32_t attempt) const {
  if (!table.maglev.empty()) {
    if (attempt > 0) hash ^= ~uint64_t{0} - attempt + 1;  // as if another request, so that a retry spreads
    return static_cast<int32_t>(table.maglev[hash % table.maglev.size()]);
  }
  if (table.ring.empty()) return kNone;
  const auto at = std::lower_bound(table.ring.begin(), table.ring.end(), std::make_pair(hash, uint32_t{0}));
  const size_t position = at == table.ring.end() ? 0 : static_cast<size_t>(at - table.ring.begin());
  return static_cast<int32_t>(table.ring[(position + attempt) % table.ring.size()].second);
}

}  // namespace wavetank::envoysim
