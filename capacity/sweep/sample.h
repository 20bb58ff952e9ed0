// Which combinations are looked at: indices of values, one for each setting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wavetank::capacity {

// All, the last setting fastest.
std::vector<std::vector<size_t>> Grid(const std::vector<size_t>& sizes);
// Independent draws, as many as `points`; one may come twice.
std::vector<std::vector<size_t>> RandomSample(const std::vector<size_t>& sizes, int64_t points, uint64_t seed);

// The first `points` of Sobol's sequence, which fills a space evenly (Joe and Kuo's direction numbers, 2008). At most
// kMostSobol settings.
inline constexpr size_t kMostSobol = 8;
std::vector<std::vector<size_t>> SobolSample(const std::vector<size_t>& sizes, int64_t points);
// A point of the sequence, each coordinate as a fraction of 2^32; number from 0.
std::vector<uint32_t> SobolPoint(uint64_t number, size_t dimensions);

}  // namespace wavetank::capacity
