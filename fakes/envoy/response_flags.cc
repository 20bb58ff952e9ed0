#include "fakes/envoy/response_flags.h"

#include <string_view>
#include <utility>

namespace wavetank::envoysim {

std::string ResponseFlagsToString(ResponseFlags flags) {
  // In the order in which they are set: fault filter, retries, then what ended the request. Envoy 1.40 writes them so
  // ("URX,UF"); older ones wrote them in the order of the enum.
  static constexpr std::pair<ResponseFlag, std::string_view> kNames[] = {
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
  if (flags == kNoFlags) return "-";
  std::string out;
  for (const auto& [flag, name] : kNames) {
    if ((flags & flag) == 0) continue;
    if (!out.empty()) out += ",";
    out += name;
  }
  return out;
}

}  // namespace wavetank::envoysim
