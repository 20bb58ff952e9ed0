// What a cluster counts, by Envoy's names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wavetank::envoysim {

enum class ClusterStat : uint8_t {
  kCxTotal,
  kCxConnectFail,
  kCxConnectTimeout,
  kCxNoneHealthy,
  kCxOverflow,
  kRqTotal,
  kRqRetry,
  kRqRetrySuccess,
  kRqRetryOverflow,
  kRqRetryLimitExceeded,
  kRqTimeout,
  kRqPerTryTimeout,
  kRqPerTryIdleTimeout,
  kRqPendingOverflow,
  kRqActiveOverflow,
  kLbHealthyPanic,
  kMembershipChange,
  kEjectionsActive,
  kEjectionsEnforcedTotal,
  kEjectionsOverflow,
  kSslHandshake,
  kSslConnectionError,
  kSslFailVerifyError,
  kSslFailVerifySan,
  kSslFailVerifyNoCert,
  kSslFailVerifyCertHash,
  kCxDestroy,
  kCxDestroyLocal,
  kCxDestroyRemote,
  kCxDestroyWithActiveRq,
  kCxDestroyLocalWithActiveRq,
  kCxDestroyRemoteWithActiveRq,
  kCxHttp1Total,
  kCxHttp2Total,
  kCxMaxRequests,
  kCxCloseNotify,
  kCxMaxDurationReached,
  kCxIdleTimeout,
  kCxProtocolError,
  kRqPendingTotal,
  kRqCancelled,
  kRqPendingFailureEject,
  kRqTxReset,
  kRqRxReset,
  kRqRetryBackoffExponential,
  kRqRetryBackoffRatelimited,
  kRqMaxDurationReached,
  kEjectionsDetected5xx,
  kEjectionsDetectedGateway,
  kEjectionsDetectedLocal,
  kEjectionsEnforced5xx,
  kEjectionsEnforcedGateway,
  kEjectionsEnforcedLocal,
  kHealthCheckAttempt,
  kHealthCheckSuccess,
  kHealthCheckFailure,
  kHealthCheckPassiveFailure,
  kHealthCheckNetworkFailure,
  kHealthCheckVerifyCluster,
  kUpdateAttempt,
  kUpdateSuccess,
  kCount,
};
// "upstream_cx_total", "ssl.handshake", ...
std::string_view ClusterStatName(ClusterStat stat);

using ClusterStats = std::array<uint64_t, static_cast<size_t>(ClusterStat::kCount)>;

}  // namespace wavetank::envoysim
