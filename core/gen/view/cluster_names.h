// The clusters that every sidecar has.
#pragma once

#include <string_view>

namespace wavetank::pilot {

inline constexpr std::string_view kBlackHoleCluster = "BlackHoleCluster";
inline constexpr std::string_view kPassthroughCluster = "PassthroughCluster";
inline constexpr std::string_view kInboundPassthroughCluster = "InboundPassthroughCluster";

}  // namespace wavetank::pilot
