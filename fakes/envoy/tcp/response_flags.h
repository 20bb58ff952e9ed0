// Envoy's response flags (%RESPONSE_FLAGS%) and connection-failure reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wavetank::envoysim {

// Envoy: docs, configuration/observability/access_log/usage, "RESPONSE_FLAGS".
enum ResponseFlag : uint32_t {
  kNoFlags = 0,
  kNoHealthyUpstream = 1u << 0,                // UH
  kUpstreamConnectionFailure = 1u << 1,        // UF
  kUpstreamOverflow = 1u << 2,                 // UO
  kNoRouteFound = 1u << 3,                     // NR
  kUpstreamRetryLimitExceeded = 1u << 4,       // URX
  kNoClusterFound = 1u << 5,                   // NC
  kDurationTimeout = 1u << 6,                  // DT
  kDownstreamConnectionTermination = 1u << 7,  // DC
  kLocalReset = 1u << 8,                       // LR
  kUpstreamRemoteReset = 1u << 9,              // UR
  kUpstreamConnectionTermination = 1u << 10,   // UC
  kDelayInjected = 1u << 11,                   // DI
  kFaultInjected = 1u << 12,                   // FI
  kRateLimited = 1u << 13,                     // RL
  kUnauthorizedExternalService = 1u << 14,     // UAEX
  kUpstreamRequestTimeout = 1u << 15,          // UT
  kStreamIdleTimeout = 1u << 16,               // SI
  kDownstreamProtocolError = 1u << 17,         // DPE
  kUpstreamProtocolError = 1u << 18,           // UPE
  kOverloadManager = 1u << 19,                 // OM
  kMaxDurationReached = 1u << 21,              // UMSDR
  kFailedLocalHealthCheck = 1u << 22,          // LH
  kRateLimitServiceError = 1u << 23,           // RLSE
  kDownstreamRemoteReset = 1u << 24,           // DR
  kNoFilterConfigFound = 1u << 25,             // NFCF
  kDnsResolutionFailed = 1u << 26,             // DF
  kUnmodelledFlag = 1u << 20,                  // stands for those that nothing here sets
};
using ResponseFlags = uint32_t;

// "URX,UF" in Envoy's order of writing; "-" if none.
std::string ResponseFlagsToString(ResponseFlags flags);
std::string LongResponseFlags(ResponseFlags flags);  // "UpstreamRetryLimitExceeded,UpstreamConnectionFailure", "-"
// In the order of the enum ("UF,URX"), as releases before 1.30 write them.
std::string ResponseFlagsOfEnum(ResponseFlags flags);
// As bits in the places of the enum, as CEL's response.flags has them.
uint64_t LegacyResponseFlags(ResponseFlags flags);
// Of a connection: what failed first, then that there was no further try ("UF,URX").
std::string ConnectionFlagsToString(ResponseFlags flags);
// By its short name; nothing: no flag has it.
std::optional<ResponseFlag> ResponseFlagOf(std::string_view name);

}  // namespace wavetank::envoysim
