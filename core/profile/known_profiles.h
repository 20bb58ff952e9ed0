// What profiles are made of, for whoever lists them.
#pragma once

#include <string_view>
#include <vector>

namespace wavetank::pilot {

struct ProfileSwitch {
  std::string_view name, meaning;
};

std::string_view ProfileBase();  // "istio-1.18"
const std::vector<ProfileSwitch>& ProfileSwitches();

}  // namespace wavetank::pilot
