#include "fakes/envoy/tcp/response_flags.h"

#include <string_view>
#include <utility>

namespace wavetank::envoysim {

namespace {

// In the order in which they are set: fault filter, retries, then what ended the request. Envoy 1.40 writes them so
// ("URX,UF"); older ones wrote them in the order of the enum.
constexpr std::pair<ResponseFlag, std::string_view> kFlagNames[] = {
    {kDelayInjected, "DI"},
    {kFaultInjected, "FI"},
    {kUpstreamRetryLimitExceeded, "URX"},
    {kUpstreamOverflow, "UO"},
    {kFailedLocalHealthCheck, "LH"},
    {kNoHealthyUpstream, "UH"},
    {kUpstreamRequestTimeout, "UT"},
    {kLocalReset, "LR"},
    {kUpstreamRemoteReset, "UR"},
    {kUpstreamConnectionFailure, "UF"},
    {kUpstreamConnectionTermination, "UC"},
    {kNoRouteFound, "NR"},
    {kRateLimited, "RL"},
    {kUnauthorizedExternalService, "UAEX"},
    {kRateLimitServiceError, "RLSE"},
    {kDownstreamConnectionTermination, "DC"},
    {kStreamIdleTimeout, "SI"},
    {kDownstreamProtocolError, "DPE"},
    {kUpstreamProtocolError, "UPE"},
    {kOverloadManager, "OM"},
    {kNoClusterFound, "NC"},
    {kDurationTimeout, "DT"},
    {kMaxDurationReached, "UMSDR"},
    {kDownstreamRemoteReset, "DR"},
};

// Envoy: envoy/stream_info/stream_info.h, CoreResponseFlag
constexpr ResponseFlag kEnumOrder[] = {kFailedLocalHealthCheck,
                                       kNoHealthyUpstream,
                                       kUpstreamRequestTimeout,
                                       kLocalReset,
                                       kUpstreamRemoteReset,
                                       kUpstreamConnectionFailure,
                                       kUpstreamConnectionTermination,
                                       kUpstreamOverflow,
                                       kNoRouteFound,
                                       kDelayInjected,
                                       kFaultInjected,
                                       kRateLimited,
                                       kUnauthorizedExternalService,
                                       kRateLimitServiceError,
                                       kDownstreamConnectionTermination,
                                       kUpstreamRetryLimitExceeded,
                                       kStreamIdleTimeout,
                                       kDownstreamProtocolError,
                                       kMaxDurationReached,
                                       kDurationTimeout,
                                       kUpstreamProtocolError,
                                       kNoClusterFound,
                                       kOverloadManager,
                                       kDownstreamRemoteReset};

void AddFlag(std::string_view name, std::string* out) {
  if (!out->empty()) *out += ",";
  *out += name;
}

}  // namespace

std::string ResponseFlagsToString(ResponseFlags flags) {
  std::string out;
  for (const auto& [flag, name] : kFlagNames) {
    if ((flags & flag) != 0) AddFlag(name, &out);
  }
  return out.empty() ? "-" : out;
}

std::string ResponseFlagsOfEnum(ResponseFlags flags) {
  std::string out;
  for (const ResponseFlag flag : kEnumOrder) {
    if ((flags & flag) == 0) continue;
    for (const auto& [known, name] : kFlagNames) {
      if (known == flag) AddFlag(name, &out);
    }
  }
  return out.empty() ? "-" : out;
}

std::string ConnectionFlagsToString(ResponseFlags flags) {
  if ((flags & kUpstreamRetryLimitExceeded) == 0 || flags == kUpstreamRetryLimitExceeded) {
    return ResponseFlagsToString(flags);
  }
  return ResponseFlagsToString(flags & ~kUpstreamRetryLimitExceeded) + ",URX";
}

std::optional<ResponseFlag> ResponseFlagOf(std::string_view name) {
  for (const auto& [flag, known] : kFlagNames) {
    if (known == name) return flag;
  }
  return std::nullopt;
}

}  // namespace wavetank::envoysim
