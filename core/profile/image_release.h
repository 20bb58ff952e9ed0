// The release that an image's name tells.
#pragma once

#include <string_view>

namespace wavetank::pilot {

// "1.18.2" of "host:5000/istio/pilot:1.18.2@sha256:..."; empty: it has none.
std::string_view TagOf(std::string_view image);

// 18 of such an image; 0: its tag names no release of Istio.
int MinorOfImage(std::string_view image);

}  // namespace wavetank::pilot
