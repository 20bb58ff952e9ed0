// A cluster's active health checks: one session per host, each with a connection of its own that travels the network
// as requests do.
// Envoy: source/extensions/health_checkers/{common,http,tcp,grpc}
//
// A host counts as failed until its first check. The first success is enough, and so is the first answer that says
// that it is not well; of connections that fail, and of answers that may be tried again, `unhealthy_threshold` in a
// row.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/host.h"
#include "core/base/random.h"
#include "fakes/envoy/config/health_check_config.h"

namespace wavetank::envoysim {

class ClusterRuntime;
struct HostRuntime;
enum class StopKind : uint8_t;

// What active health checks say of a host, beside LbHost. Envoy: envoy/upstream/upstream.h, HEALTH_FLAG_ENUM_VALUES
struct CheckedHost {
  bool pending = false;     // not asked yet: PENDING_ACTIVE_HC
  bool timed_out = false;   // failed, and by silence: ACTIVE_HC_TIMEOUT
  bool told_to_go = false;  // by x-envoy-immediate-health-check-fail: EXCLUDED_VIA_IMMEDIATE_HC_FAIL
  bool removed = false;     // gone from the assignment, kept while it is well: PENDING_DYNAMIC_REMOVAL
};

class HealthChecker {
 public:
  // `cluster` outlives it.
  explicit HealthChecker(ClusterRuntime& cluster);
  ~HealthChecker();
  HealthChecker(const HealthChecker&) = delete;
  HealthChecker& operator=(const HealthChecker&) = delete;

  // From now on `host` is asked, if it is not already. It must be removed before it goes.
  void Add(HostRuntime& host);
  void Remove(HostRuntime& host);
  // An answer to a request said x-envoy-immediate-health-check-fail.
  void FailNow(HostRuntime& host);
  // The Envoy dies: its connections do.
  void Abort(StopKind kind);

  uint64_t healthy() const { return healthy_; }
  uint64_t degraded() const { return degraded_; }

 private:
  class Session;
  // Envoy: data.core.v3.HealthCheckFailureType
  enum class Failure : uint8_t { kActive, kPassive, kNetwork, kTimeout };
  enum class Change : uint8_t { kNone, kPending, kChanged };

  const HealthCheckConfig& config() const;
  Duration Interval(bool healthy, Change change);
  Duration WithJitter(Duration base, Duration jitter);

  ClusterRuntime& cluster_;
  RandomStream random_;
  uint64_t healthy_ = 0, degraded_ = 0;
  std::map<uint32_t, std::unique_ptr<Session>> sessions_;  // by HostRuntime::id
};

}  // namespace wavetank::envoysim
