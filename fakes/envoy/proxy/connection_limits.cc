// How long an accepted connection may last, be silent, and how many requests it may carry.
// Envoy: source/common/tcp_proxy/tcp_proxy.cc (onMaxDownstreamConnectionDuration, onIdleTimeout),
// source/common/http/conn_manager_impl.cc (onConnectionDurationTimeout, onIdleTimeout)
#include <algorithm>

#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/downstream.h"

namespace wavetank::envoysim {
namespace {

// HttpConnectionManager.drain_timeout: between "use it no more" and its end.
constexpr Duration kDrainTimeout = 5s;

}  // namespace

void DownstreamConnection::LimitAge() {
  const bool http = chain_->http.has_value();
  if (!http && !chain_->tcp.has_value()) return;
  const Duration age = http ? chain_->http->max_connection_duration : chain_->tcp->max_duration;
  const Duration idle = http ? chain_->http->idle_timeout : chain_->tcp->idle_timeout;
  if (idle > Duration::zero()) ArmIdle(idle);
  if (age <= Duration::zero()) return;
  age_timer_ = envoy_.host().RunAfter(age, [this, http] {
    age_timer_ = kNoTimer;
    if (log_ != nullptr) log_->flags |= kDurationTimeout;
    if (!http) return CloseNow(CloseKind::kFin);
    draining_ = true;
    if (timer_ == kNoTimer) {
      timer_ = envoy_.host().RunAfter(kDrainTimeout, [this] {
        timer_ = kNoTimer;
        if (streams_.empty()) CloseNow(CloseKind::kFin);  // else with the last of them
      });
    }
  });
}

void DownstreamConnection::ArmIdle(Duration after) {
  const bool http = chain_->http.has_value();
  const Duration idle = http ? chain_->http->idle_timeout : chain_->tcp->idle_timeout;
  idle_timer_ = envoy_.host().RunAfter(after, [this, idle] {
    idle_timer_ = kNoTimer;
    if (!streams_.empty()) return ArmIdle(idle);
    const Duration silent = envoy_.host().Now() - envoy_.fabric().last_used(id_);
    silent >= idle ? CloseNow(CloseKind::kFin) : ArmIdle(idle - silent);
  });
}

bool DownstreamConnection::closing_after_this() {
  ++requests_;
  const uint32_t most = chain_->http->max_requests_per_connection;
  if (most > 0 && requests_ >= most) draining_ = true;
  return closing();
}

}  // namespace wavetank::envoysim
