#include "fakes/envoy/match/hash128.h"

#include "xxhash.h"

namespace wavetank::envoysim {

Hash128 HashBytes(std::string_view bytes, uint64_t seed) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {h.high64, h.low64};
}

}  // namespace wavetank::envoysim
