// Which application protocols a connection manager's requests offer upstream, by what they speak.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace wavetank::envoysim {

// Indexed by HttpProtocol.
struct AlpnOffers {
  std::array<std::vector<std::string>, 3> offers;
  std::array<uint64_t, 3> ids{};  // equal lists have equal ids
};

}  // namespace wavetank::envoysim
