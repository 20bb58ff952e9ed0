// How long an accepted connection may last, be silent, and how many requests it may carry.
// Envoy: source/common/tcp_proxy/tcp_proxy.cc (onMaxDownstreamConnectionDuration, onIdleTimeout),
// source/common/http/conn_manager_impl.cc (onConnectionDurationTimeout, onIdleTimeout)
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/downstream.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
void DownstreamConnection::LimitAge() {
  WAVETANK_ASSERT(age_timer_ == kNoTimer);
  const bool http = chain_->http.has_value();
  if (!http && !chain_->tcp.has_value()) return;
  const Duration age = http ? chain_->http->max_connection_duration : chain_->tcp->max_duration;
  const Duration idle = http ? chain_->http->idle_timeout : chain_->tcp->idle_timeout;
  if (idle > Duration::zero()) ArmIdle(idle);
  if (age <= Duration::zero()) return;
  age_timer_ = envoy_.host().RunAfter(age, [this, http] {
    age_timer_ = kNoTimer;
    if (log_ != nullptr) log_->flags |= kDurationTimeout;
    if (!http) {
      ++envoy_.Counter(fmt::format("tcp.{}.max_downstream_connection_duration", chain_->tcp->stat_prefix));
      return CloseNow(CloseKind::kFin);
    }
    http_stats_->Count(HttpStat::kCxMaxDurationReached);
    StartDrainSequence();
  });
}

// The client is told that it closes, by HTTP/2's GOAWAY at once, else with the next answer; after a while it does.
// Envoy: conn_manager_impl.cc, startDrainSequence
void DownstreamConnection::StartDrainSequence() {
  WAVETANK_ASSERT(chain_ != nullptr);
  WAVETANK_ASSERT(chain_->http.has_value());
  if (multiplexed_ && !std::exchange(said_goaway_, true)) {
    Http2Notice goaway;
    goaway.goes_away = true;
    envoy_.fabric().Notify(id_, goaway);
  }
  if (draining_) return;
  draining_ = true;
  sequence_timer_ = envoy_.host().RunAfter(chain_->http->drain_timeout, [this] {
    sequence_timer_ = kNoTimer;
    drain_ended_ = true;
    if (streams_.empty()) CloseNow(CloseKind::kFin);  // else with the last of them
  });
}

// A client of HTTP/2 that was told so closes by itself, unless it takes longer than the drain sequence.
void DownstreamConnection::CloseIfDone() {
  if (ends_ || !closing() || !streams_.empty() || chain_ == nullptr || !chain_->http.has_value()) return;
  if (lingers_) return Linger();
  if (!multiplexed_ || drain_ended_) CloseNow(CloseKind::kFin);
}

// A close while the client still sends would be a reset, and lose it the answer. Envoy: connection_impl.cc,
// FlushWriteAndDelay
void DownstreamConnection::Linger() {
  const Duration patience = chain_->http->delayed_close_timeout;
  if (patience <= Duration::zero()) return CloseNow(CloseKind::kFin);
  envoy_.host().Cancel(linger_timer_);
  linger_timer_ = envoy_.host().RunAfter(patience, [this] {
    linger_timer_ = kNoTimer;
    http_stats_->Count(HttpStat::kCxDelayedCloseTimeout);
    CloseNow(CloseKind::kFin);
  });
}

// Envoy: active_stream_listener_base.cc, conn_manager_impl.cc, tcp_proxy.cc
void DownstreamConnection::CountBegin() {
  WAVETANK_ASSERT(listener_stats_ == nullptr);  // a connection is counted once
  const std::string prefix = StatPrefix();
  listener_stats_ = &envoy_.listener_stats(prefix);
  ++listener_stats_->total;
  ++listener_stats_->active;
  if (chain_->tcp.has_value()) ++envoy_.Counter(fmt::format("tcp.{}.downstream_cx_total", chain_->tcp->stat_prefix));
  if (!chain_->http.has_value()) return;
  const std::string http = fmt::format("http.{}.", chain_->http->stat_prefix);
  http_stats_ = &envoy_.http_stats(http);
  listener_http_stats_ = &envoy_.http_stats(prefix + http);
  http_stats_->Count(HttpStat::kCxTotal);
  http_stats_->Count(HttpStat::kCxActive);
  if (chain_->socket.tls != nullptr) http_stats_->Count(HttpStat::kCxSslTotal);
}

void DownstreamConnection::CountEnd(bool local) {
  if (listener_stats_ == nullptr) return;
  WAVETANK_ASSERT(listener_stats_->active > 0, listener_stats_->active);
  --listener_stats_->active;
  listener_stats_ = nullptr;
  if (http_stats_ == nullptr) return;
  http_stats_->Uncount(HttpStat::kCxActive);
  http_stats_->Count(HttpStat::kCxDestroy);
  http_stats_->Count(local ? HttpStat::kCxDestroyLocal : HttpStat::kCxDestroyRemote);
  if (streams_.empty()) return;
  http_stats_->Count(HttpStat::kCxDestroyActiveRq);
  http_stats_->Count(local ? HttpStat::kCxDestroyLocalActiveRq : HttpStat::kCxDestroyRemoteActiveRq);
}

void DownstreamConnection::ArmIdle(Duration after) {
  const bool http = chain_->http.has_value();
  const Duration idle = http ? chain_->http->idle_timeout : chain_->tcp->idle_timeout;
  WAVETANK_ASSERT(idle_timer_ == kNoTimer);
  WAVETANK_ASSERT(after > Duration::zero(), after);
  idle_timer_ = envoy_.host().RunAfter(after, [this, idle] {
    idle_timer_ = kNoTimer;
    if (!streams_.empty()) return ArmIdle(idle);
    const Duration silent = envoy_.host().Now() - envoy_.fabric().last_used(id_);
    if (silent < idle) return ArmIdle(idle - silent);
    if (http_stats_ != nullptr) {
      http_stats_->Count(HttpStat::kCxIdleTimeout);
      if (spoke_) return StartDrainSequence();  // its codec is to say so
    } else {
      ++envoy_.Counter(fmt::format("tcp.{}.idle_timeout", chain_->tcp->stat_prefix));
    }
    CloseNow(CloseKind::kFin);
  });
}

// Envoy: conn_manager_impl.cc, newStream
void DownstreamConnection::CountRequest() {
  ++requests_;
  const uint32_t most = chain_->http->max_requests_per_connection;
  WAVETANK_ASSERT(http_stats_ != nullptr);
  if (most == 0 || requests_ < most) return;
  http_stats_->Count(HttpStat::kCxMaxRequestsReached);
  if (multiplexed_) return StartDrainSequence();
  draining_ = true;
}

bool DownstreamConnection::SayIfClosing() {
  if (!closing()) return false;
  if (!multiplexed_) return true;
  StartDrainSequence();
  return false;
}

}  // namespace wavetank::envoysim
