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
    {kNoHealthyUpstream, "UH"},
    {kUpstreamRequestTimeout, "UT"},
    {kLocalReset, "LR"},
    {kUpstreamRemoteReset, "UR"},
    {kUpstreamConnectionFailure, "UF"},
    {kUpstreamConnectionTermination, "UC"},
    {kUpstreamOverflow, "UO"},
    {kNoRouteFound, "NR"},
    {kRateLimited, "RL"},
    {kUnauthorizedExternalService, "UAEX"},
    {kDownstreamConnectionTermination, "DC"},
    {kStreamIdleTimeout, "SI"},
    {kDownstreamProtocolError, "DPE"},
    {kUpstreamProtocolError, "UPE"},
    {kOverloadManager, "OM"},
    {kNoClusterFound, "NC"},
    {kDurationTimeout, "DT"},
};

}  // namespace

std::string ResponseFlagsToString(ResponseFlags flags) {
  if (flags == kNoFlags) return "-";
  std::string out;
  for (const auto& [flag, name] : kFlagNames) {
    if ((flags & flag) == 0) continue;
    if (!out.empty()) out += ",";
    out += name;
  }
  return out;
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
