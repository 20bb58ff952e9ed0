// What one Envoy counts of the connection managers of one stat_prefix, and of a listener.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wavetank::envoysim {

enum class HttpStat : uint8_t {
  kCxTotal,
  kCxActive,
  kCxDestroy,
  kCxDestroyLocal,
  kCxDestroyRemote,
  kCxDestroyActiveRq,
  kCxDestroyLocalActiveRq,
  kCxDestroyRemoteActiveRq,
  kCxHttp1Total,
  kCxHttp2Total,
  kCxSslTotal,
  kCxIdleTimeout,
  kCxMaxDurationReached,
  kCxMaxRequestsReached,
  kCxDrainClose,
  kCxDelayedCloseTimeout,
  kCxUpgradesTotal,
  kCxUpgradesActive,
  kRqTotal,
  kRqActive,
  kRqHttp1Total,
  kRqHttp2Total,
  kRqCompleted,
  kRq1xx,
  kRq2xx,
  kRq3xx,
  kRq4xx,
  kRq5xx,
  kRqRxReset,
  kRqTxReset,
  kRqResponseBeforeComplete,
  kRqTimeout,
  kRqMaxDurationReached,
  kRqWsOnNonWsRoute,
  kRqFailedPathNormalization,
  kRqRedirectedWithNormalizedPath,
  kRouterTotal,
  kRouterDirectResponse,
  kRouterRedirect,
  kRouterNoRoute,
  kRouterNoCluster,
  kCount,
};
// Below "http.PREFIX.": "downstream_cx_total", "rq_total", ...
std::string_view HttpStatName(HttpStat stat);

struct HttpStats {
  std::array<uint64_t, static_cast<size_t>(HttpStat::kCount)> values{};
  void Count(HttpStat stat) { ++values[static_cast<size_t>(stat)]; }
  void Uncount(HttpStat stat) { --values[static_cast<size_t>(stat)]; }
};

// Below "listener.ADDRESS.".
struct ListenerStats {
  uint64_t total = 0, active = 0;  // downstream_cx_total, downstream_cx_active; destroyed are the others
};

}  // namespace wavetank::envoysim
