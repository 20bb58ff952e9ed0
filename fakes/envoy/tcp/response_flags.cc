#include "fakes/envoy/tcp/response_flags.h"

#include <string_view>

namespace wavetank::envoysim {

namespace {

// In the order in which they are set: fault filter, retries, then what ended the request. Envoy 1.40 writes them so
// ("URX,UF"); older ones wrote them in the order of the enum.
struct FlagName {
  ResponseFlag flag;
  std::string_view name, long_name;
};
constexpr FlagName kFlagNames[] = {
    {kDelayInjected, "DI", "DelayInjected"},
    {kFaultInjected, "FI", "FaultInjected"},
    {kUpstreamRetryLimitExceeded, "URX", "UpstreamRetryLimitExceeded"},
    {kUpstreamOverflow, "UO", "UpstreamOverflow"},
    {kFailedLocalHealthCheck, "LH", "FailedLocalHealthCheck"},
    {kNoHealthyUpstream, "UH", "NoHealthyUpstream"},
    {kUpstreamRequestTimeout, "UT", "UpstreamRequestTimeout"},
    {kLocalReset, "LR", "LocalReset"},
    {kUpstreamRemoteReset, "UR", "UpstreamRemoteReset"},
    {kUpstreamConnectionFailure, "UF", "UpstreamConnectionFailure"},
    {kUpstreamConnectionTermination, "UC", "UpstreamConnectionTermination"},
    {kNoRouteFound, "NR", "NoRouteFound"},
    {kRateLimited, "RL", "RateLimited"},
    {kUnauthorizedExternalService, "UAEX", "UnauthorizedExternalService"},
    {kRateLimitServiceError, "RLSE", "RateLimitServiceError"},
    {kDownstreamConnectionTermination, "DC", "DownstreamConnectionTermination"},
    {kStreamIdleTimeout, "SI", "StreamIdleTimeout"},
    {kDownstreamProtocolError, "DPE", "DownstreamProtocolError"},
    {kUpstreamProtocolError, "UPE", "UpstreamProtocolError"},
    {kOverloadManager, "OM", "OverloadManagerTerminated"},
    {kNoFilterConfigFound, "NFCF", "NoFilterConfigFound"},
    {kNoClusterFound, "NC", "NoClusterFound"},
    {kDurationTimeout, "DT", "DurationTimeout"},
    {kMaxDurationReached, "UMSDR", "UpstreamMaxStreamDurationReached"},
    {kDnsResolutionFailed, "DF", "DnsResolutionFailed"},
    {kDownstreamRemoteReset, "DR", "DownstreamRemoteReset"},
};

// Envoy: envoy/stream_info/stream_info.h, CoreResponseFlag: each flag with its place, in that order.
struct FlagPlace {
  ResponseFlag flag;
  int place;
};
constexpr FlagPlace kEnumOrder[] = {
    {kFailedLocalHealthCheck, 0},
    {kNoHealthyUpstream, 1},
    {kUpstreamRequestTimeout, 2},
    {kLocalReset, 3},
    {kUpstreamRemoteReset, 4},
    {kUpstreamConnectionFailure, 5},
    {kUpstreamConnectionTermination, 6},
    {kUpstreamOverflow, 7},
    {kNoRouteFound, 8},
    {kDelayInjected, 9},
    {kFaultInjected, 10},
    {kRateLimited, 11},
    {kUnauthorizedExternalService, 12},
    {kRateLimitServiceError, 13},
    {kDownstreamConnectionTermination, 14},
    {kUpstreamRetryLimitExceeded, 15},
    {kStreamIdleTimeout, 16},
    {kDownstreamProtocolError, 18},
    {kMaxDurationReached, 19},
    {kNoFilterConfigFound, 21},
    {kDurationTimeout, 22},
    {kUpstreamProtocolError, 23},
    {kNoClusterFound, 24},
    {kOverloadManager, 25},
    {kDnsResolutionFailed, 26},
    {kDownstreamRemoteReset, 28},
};

void AddFlag(std::string_view name, std::string* out) {
  if (!out->empty()) *out += ",";
  *out += name;
}

}  // namespace

std::string ResponseFlagsToString(ResponseFlags flags) {
  std::string out;
  for (const FlagName& known : kFlagNames) {
    if ((flags & known.flag) != 0) AddFlag(known.name, &out);
  }
  return out.empty() ? "-" : out;
}

std::string LongResponseFlags(ResponseFlags flags) {
  std::string out;
  for (const FlagName& known : kFlagNames) {
    if ((flags & known.flag) != 0) AddFlag(known.long_name, &out);
  }
  return out.empty() ? "-" : out;
}

std::string ResponseFlagsOfEnum(ResponseFlags flags) {
  std::string out;
  for (const auto& [flag, place] : kEnumOrder) {
    if ((flags & flag) == 0) continue;
    for (const FlagName& known : kFlagNames) {
      if (known.flag == flag) AddFlag(known.name, &out);
    }
  }
  return out.empty() ? "-" : out;
}

uint64_t LegacyResponseFlags(ResponseFlags flags) {
  uint64_t out = 0;
  for (const auto& [flag, place] : kEnumOrder) out |= (flags & flag) != 0 ? uint64_t{1} << place : 0;
  return out;
}

std::string ConnectionFlagsToString(ResponseFlags flags) {
  if ((flags & kUpstreamRetryLimitExceeded) == 0 || flags == kUpstreamRetryLimitExceeded) {
    return ResponseFlagsToString(flags);
  }
  return ResponseFlagsToString(flags & ~kUpstreamRetryLimitExceeded) + ",URX";
}

std::optional<ResponseFlag> ResponseFlagOf(std::string_view name) {
  for (const FlagName& known : kFlagNames) {
    if (known.name == name) return known.flag;
  }
  return std::nullopt;
}

}  // namespace wavetank::envoysim
