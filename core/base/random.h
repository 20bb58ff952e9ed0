// Counter-based random streams, keyed by name. A draw depends on the seed, the stream's key and how many draws the
// stream made before, on nothing else: adding an entity to a world disturbs no other entity's draws.
#pragma once

#include <cstdint>
#include <string_view>

namespace wavetank {

// splitmix64 finaliser: a bijection of 64-bit integers with good avalanche.
constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// FNV-1a, then mixed: stable on every platform, good enough to key streams (not for untrusted hash tables).
constexpr uint64_t HashName(std::string_view name, uint64_t seed = 0) {
  uint64_t h = 0xcbf29ce484222325ull ^ seed;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return Mix64(h);
}

class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view key) : key_(HashName(key, Mix64(seed))) {}

  uint64_t Next() { return Mix64(key_ ^ Mix64(counter_++)); }

  // Uniform in [0, bound), bound > 0, without modulo bias worth speaking of (multiply-shift).
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // Uniform in [low, high], both ends included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }

  // True with probability parts_per_million / 1e6.
  bool Chance(uint64_t parts_per_million) { return Below(1'000'000) < parts_per_million; }

  uint64_t draws() const { return counter_; }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
};

}  // namespace wavetank
