// Outlier detection of a cluster in use. Envoy: source/common/upstream/outlier_detection_impl.cc; docs/real-envoy.md 6.
#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/upstream/cluster_runtime.h"

namespace wavetank::envoysim {

void ClusterRuntime::Report(HostRuntime& host, OutlierResult result, uint32_t code) {
  if (!config().outlier.has_value() || retired_) return;
  const OutlierConfig& o = *config().outlier;
  if (result == OutlierResult::kConnected || result == OutlierResult::kTcpConnected) {
    if (o.split_external_local_origin_errors) {
      host.consecutive_local = 0;
    } else if (result == OutlierResult::kTcpConnected) {
      host.consecutive_5xx = host.consecutive_gateway = 0;
    }
    return;
  }
  const bool local = result != OutlierResult::kHttpCode;
  if (o.split_external_local_origin_errors) {
    if (local) {
      if (++host.consecutive_local == o.consecutive_local_origin_failure) {
        host.consecutive_local = 0;
        ConsecutiveFailures(host, o.enforcing_consecutive_local_origin_failure, ClusterStat::kEjectionsDetectedLocal,
                            ClusterStat::kEjectionsEnforcedLocal);
      }
      return;
    }
  } else if (local) {
    code = result == OutlierResult::kTimeout ? 504 : 503;
  }
  if (code < 500) {
    host.consecutive_5xx = host.consecutive_gateway = 0;
    return;
  }
  if (code >= 502 && code <= 504) {
    if (++host.consecutive_gateway == o.consecutive_gateway_failure) {
      host.consecutive_gateway = 0;
      ConsecutiveFailures(host, o.enforcing_consecutive_gateway_failure, ClusterStat::kEjectionsDetectedGateway,
                          ClusterStat::kEjectionsEnforcedGateway);
    }
  } else {
    host.consecutive_gateway = 0;
  }
  if (++host.consecutive_5xx == o.consecutive_5xx) {
    host.consecutive_5xx = 0;
    ConsecutiveFailures(host, o.enforcing_consecutive_5xx, ClusterStat::kEjectionsDetected5xx,
                        ClusterStat::kEjectionsEnforced5xx);
  }
}

void ClusterRuntime::ConsecutiveFailures(HostRuntime& host, uint32_t enforcing, ClusterStat detected,
                                         ClusterStat enforced) {
  if (host.lb.ejected || host.index < 0) return;
  Count(detected);
  const OutlierConfig& o = *config().outlier;
  const uint64_t percent = std::min<uint32_t>(o.max_ejection_percent, 100);
  const EnvoyRelease release = process().release();
  const bool room = release.Has(EnvoyChange::kEjectionCountsItself)
                        ? uint64_t{100} * (ejected_ + 1) <= percent * by_index_.size()
                        : uint64_t{100} * ejected_ < percent * by_index_.size();
  const bool always_one = o.always_eject_one_host || !release.Has(EnvoyChange::kEjectionPercentIsStrict);
  if (!room && !(always_one && ejected_ == 0)) {
    Count(ClusterStat::kEjectionsOverflow);
    return;
  }
  if (enforcing < 100 && context_.process.random().Below(100) >= enforcing) return;
  Count(enforced);
  Eject(host);
}

void ClusterRuntime::Eject(HostRuntime& host) {
  const OutlierConfig& o = *config().outlier;
  WAVETANK_ASSERT(!host.lb.ejected, config().name);
  WAVETANK_ASSERT(host.index >= 0, config().name);  // of the hosts that are balanced over
  host.lb.ejected = true;
  host.ejected_at = context_.process.host().Now();
  if (host.ejection_backoff * o.base_ejection_time < o.max_ejection_time + o.base_ejection_time)
    ++host.ejection_backoff;
  ++ejected_;
  WAVETANK_ASSERT(ejected_ <= by_index_.size(), ejected_, by_index_.size(), config().name);
  Count(ClusterStat::kEjectionsActive);
  Count(ClusterStat::kEjectionsEnforcedTotal);
  ArmInterval();
  HealthChanged();
  DrainLater(host);
}

// Workers hear of it once what they are at is done. Envoy: cluster_manager_impl.cc, postThreadLocalHealthFailure
void ClusterRuntime::DrainLater(const HostRuntime& host) {
  failed_.push_back(host.id);
  if (failed_timer_ != kNoTimer) return;
  failed_timer_ = context_.process.host().RunAfter(Duration::zero(), [this] {
    failed_timer_ = kNoTimer;
    DrainFailed();
  });
}

// Envoy: cluster_manager_impl.cc, onHostHealthFailure
void ClusterRuntime::DrainFailed() {
  const std::vector<uint32_t> failed = std::exchange(failed_, {});
  const std::vector<HostRuntime*> hosts = by_index_;
  for (HostRuntime* host : hosts) {
    if (std::find(failed.begin(), failed.end(), host->id) == failed.end()) continue;
    for (const auto& pool : host->pools) pool->DrainExisting();
    const std::vector<HostUser*> users = host->users;
    for (HostUser* user : users) {
      if (std::find(host->users.begin(), host->users.end(), user) != host->users.end()) user->OnHostFailed();
    }
  }
}

void ClusterRuntime::ArmInterval() {
  if (interval_timer_ != kNoTimer) return;
  // Envoy's timer runs from the cluster's beginning; here it is only set while it has something to do.
  const Duration interval = config().outlier->interval;
  const Duration phase = (context_.process.host().Now() - created_) % interval;
  interval_timer_ = context_.process.host().RunAfter(interval - phase, [this] {
    interval_timer_ = kNoTimer;
    OnInterval();
  });
}

void ClusterRuntime::OnInterval() {
  if (!config().outlier.has_value()) return;
  const OutlierConfig& o = *config().outlier;
  const Time now = context_.process.host().Now();
  bool again = false;
  for (HostRuntime* host : by_index_) {
    if (!host->lb.ejected) {
      if (host->ejection_backoff > 0) --host->ejection_backoff;
    } else if (now - host->ejected_at >=
               std::min<Duration>(host->ejection_backoff * o.base_ejection_time, o.max_ejection_time)) {
      Return(*host);
    }
    again |= host->lb.ejected || host->ejection_backoff > 0;
  }
  if (again) ArmInterval();
}

void ClusterRuntime::Return(HostRuntime& host) {
  host.lb.ejected = false;
  host.consecutive_5xx = host.consecutive_gateway = host.consecutive_local = 0;
  WAVETANK_ASSERT(ejected_ > 0, ejected_, config().name);
  --ejected_;
  Count(ClusterStat::kEjectionsActive, -1);
  HealthChanged();
}

// A change of health alone waits if another update came less than a merge window ago: one timer of a whole window,
// started by the first of them. Envoy: source/common/upstream/cluster_manager_impl.cc, scheduleUpdate
void ClusterRuntime::HealthChanged() {
  const Duration window = config().update_merge_window;
  if (window == Duration::zero() || !updated_once_ || context_.process.host().Now() - last_update_ > window) {
    RebuildLb();
    return;
  }
  if (merge_timer_ != kNoTimer) return;
  merge_timer_ = context_.process.host().RunAfter(window, [this] {
    merge_timer_ = kNoTimer;
    RebuildLb();
  });
}

}  // namespace wavetank::envoysim
