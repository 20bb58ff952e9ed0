// 128-bit content hashes: what makes two resources the same without comparing their bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace wavetank::envoysim {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Hash128& x) {
    return H::combine(std::move(h), x.high, x.low);
  }
};

// XXH3. Not for adversaries: a server that can write xDS to an Envoy can do worse than collide.
Hash128 HashBytes(std::string_view bytes, uint64_t seed = 0);

}  // namespace wavetank::envoysim
