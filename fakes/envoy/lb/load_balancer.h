// Envoy's load balancing over one cluster's endpoints: priorities, panic, localities, then a policy among hosts.
// Envoy: source/extensions/load_balancing_policies/common/load_balancer_impl.cc; figures in docs/real-envoy.md 3.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/random.h"
#include "core/base/time.h"
#include "fakes/envoy/lb/edf.h"
#include "fakes/envoy/lb/endpoint_table.h"

namespace wavetank::envoysim {

enum class LbPolicy : uint8_t { kRoundRobin, kLeastRequest, kRandom, kRingHash, kMaglev, kClusterProvided };

struct LbConfig {
  LbPolicy policy = LbPolicy::kRoundRobin;
  uint32_t panic_threshold_percent = 50;
  bool locality_weighted = false;
  bool fail_traffic_on_panic = false;
  uint32_t choice_count = 2;          // LEAST_REQUEST
  uint64_t minimum_ring_size = 1024;  // RING_HASH
  uint64_t maximum_ring_size = 8 * 1024 * 1024;
  uint64_t maglev_table_size = 65537;
  bool use_hostname_for_hashing = false;
  // Of ROUND_ROBIN and LEAST_REQUEST: a host that is new (Istio's warmupDurationSecs) gets its weight by and by.
  Duration slow_start_window{};  // 0: at once
  double slow_start_aggression = 1;
  double slow_start_min_weight = 0.1;  // of its weight
};

// The part of a host's state that balancing needs. Indexed like EndpointTable::endpoints.
struct LbHost {
  uint32_t active_requests = 0;
  bool ejected = false;                 // by outlier detection
  bool failed_check = false;            // by active health checks
  bool degraded_check = false;          // they say so
  bool excluded = false;                // it does not count among those of which a share has to be healthy
  std::optional<Time> healthy_since{};  // when a balancer first saw it healthy
};

// What the control plane, outlier detection and health checks come to. Envoy: upstream_impl.h, coarseHealth
EdsHealth HealthOf(const LbEndpoint& endpoint, const LbHost& host);

class LoadBalancer {
 public:
  static constexpr int32_t kNone = -1;

  struct Context {
    std::optional<uint64_t> hash;  // RING_HASH, MAGLEV: of the request; none: random
    // Retries: hosts to avoid, asked again up to `reselections` times; the last choice is taken in any case.
    std::optional<absl::FunctionRef<bool(uint32_t host)>> avoid = std::nullopt;
    uint32_t reselections = 0;
    // Retries: priorities to leave out, as AnyBut() knows some that are not; null: none.
    const std::vector<bool>* without = nullptr;
    Time now{};  // for slow start
  };

  // `random` is the balancer's own stream: its first draw is the seed of round-robin positions, as each Envoy process
  // has one.
  // `excludes_draining`: draining hosts do not count among those of which a share has to be healthy
  // (EnvoyChange::kDrainingIsExcluded).
  LoadBalancer(const LbConfig& config, RandomStream random, bool excludes_draining = true);

  // Takes over new endpoints, or the same ones with other health. O(n), O(ring) for the hashing policies. `hosts` must
  // outlive the next Update.
  // `now` matters to slow start alone.
  void Update(std::shared_ptr<const EndpointTable> table, const std::vector<const LbHost*>& hosts, Time now = {});

  // What is drawn from here on; where round robin stands stays.
  void DrawFrom(RandomStream random) { random_ = random; }

  // Index of the endpoint, or kNone: no healthy upstream.
  int32_t Pick(const Context& context);

  // Whether something is available in other priorities.
  bool AnyBut(const std::vector<bool>& priorities) const;

  // Percent of load per priority, and whether a priority is in panic; for tests and dumps.
  const std::vector<uint32_t>& healthy_load() const { return healthy_load_; }
  const std::vector<bool>& panic() const { return panic_; }
  // Choices in panic so far.
  uint64_t panics() const { return panics_; }

 private:
  // Hosts among which one policy chooses.
  struct Source {
    std::vector<uint32_t> hosts;
    bool weighted = false;
    EdfScheduler edf;
    uint64_t next = 0;  // round robin
  };
  struct LocalitySources {
    EdfScheduler chooser;
    std::vector<Source> sources;
  };
  // One set of hosts prepared for consistent hashing.
  struct HashTable {
    std::vector<std::pair<uint64_t, uint32_t>> ring;
    std::vector<uint32_t> maglev;
  };
  struct Priority {
    Source all, healthy, degraded;
    LocalitySources healthy_localities, degraded_localities;
    uint32_t total = 0, excluded = 0;
    HashTable all_table, healthy_table;
  };

  EdsHealth Health(uint32_t host) const;
  bool Excluded(uint32_t host) const {
    return hosts_[host]->excluded || (excludes_draining_ && table_->endpoints[host].draining);
  }
  void ComputeLoads();
  // The loads where nothing goes to some priorities, healthy and degraded hosts'; empty: nothing is available.
  using Loads = std::pair<std::vector<uint32_t>, std::vector<uint32_t>>;
  Loads LoadsWithout(const std::vector<bool>& priorities) const;
  void Prepare(Source* source) const;
  void PrepareLocalities(const Priority& priority, EdsHealth health, const Priority* old, LocalitySources* out);
  void PrepareHash(const std::vector<uint32_t>& hosts, HashTable* table) const;
  int32_t PickOnce(const Context& context, uint32_t attempt);
  int32_t PickFrom(Source* source);
  int32_t PickHashed(const HashTable& table, uint64_t hash, uint32_t attempt) const;
  EdfScheduler::Weight WeightOf(uint32_t host) const;
  // Whether some host may still be new. Envoy: load_balancer_impl.cc, EdfLoadBalancerBase::noHostsAreInSlowStart
  bool SlowStarting() const;
  // What a host's weight counts for, of kWholeWeight. Envoy: the same, applySlowStartFactor
  uint64_t SlowStartShare(uint32_t host) const;
  static constexpr uint64_t kWholeWeight = uint64_t{1} << 24;

  LbConfig config_;
  RandomStream random_;
  uint64_t seed_;
  bool excludes_draining_;
  std::shared_ptr<const EndpointTable> table_;
  std::vector<const LbHost*> hosts_;
  std::vector<Priority> priorities_;
  std::vector<uint32_t> healthy_load_, degraded_load_;
  std::vector<uint32_t> healthy_share_, degraded_share_;  // percent that is available, overprovisioned
  std::vector<bool> panic_;
  uint64_t panics_ = 0;
  Time now_{};                       // of the last Update() or Pick()
  std::optional<Time> latest_host_;  // when the newest host came, as slow start counts
};

}  // namespace wavetank::envoysim
