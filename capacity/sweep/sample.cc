#include "capacity/sweep/sample.h"

#include <array>

#include "core/base/assert.h"
#include "core/base/random.h"

namespace wavetank::capacity {
namespace {

// Degree and coefficients of a primitive polynomial, and the first direction numbers, for the dimensions after the
// first.
struct Direction {
  unsigned degree, coefficients;
  std::array<uint32_t, 5> first;
};
constexpr Direction kDirections[kMostSobol - 1] = {
    {1, 0, {1}},          {2, 1, {1, 3}},        {3, 1, {1, 3, 1}},        {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}}, {4, 4, {1, 3, 5, 13}}, {5, 2, {1, 1, 5, 5, 17}},
};

std::array<uint32_t, 32> DirectionNumbers(size_t dimension) {
  std::array<uint32_t, 32> v{};
  if (dimension == 0) {
    for (unsigned i = 0; i < 32; ++i) v[i] = 1u << (31 - i);
    return v;
  }
  const Direction& d = kDirections[dimension - 1];
  for (unsigned i = 0; i < 32; ++i) {
    if (i < d.degree) {
      v[i] = d.first[i] << (31 - i);
      continue;
    }
    v[i] = v[i - d.degree] ^ (v[i - d.degree] >> d.degree);
    for (unsigned k = 1; k < d.degree; ++k) {
      if ((d.coefficients >> (d.degree - 1 - k) & 1u) != 0) v[i] ^= v[i - k];
    }
  }
  return v;
}

}  // namespace

std::vector<std::vector<size_t>> Grid(const std::vector<size_t>& sizes) {
  std::vector<std::vector<size_t>> out;
  std::vector<size_t> at(sizes.size());
  for (;;) {
    out.push_back(at);
    size_t i = sizes.size();
    while (i > 0 && ++at[i - 1] == sizes[i - 1]) at[--i] = 0;
    if (i == 0) return out;
  }
}

std::vector<std::vector<size_t>> RandomSample(const std::vector<size_t>& sizes, int64_t points, uint64_t seed) {
  RandomStream random(seed, "sweep");
  std::vector<std::vector<size_t>> out;
  for (int64_t i = 0; i < points; ++i) {
    std::vector<size_t>& point = out.emplace_back();
    for (const size_t size : sizes) point.push_back(random.Below(size));
  }
  return out;
}

std::vector<uint32_t> SobolPoint(uint64_t number, size_t dimensions) {
  WAVETANK_ASSERT(dimensions <= kMostSobol, dimensions);
  const uint64_t gray = number ^ (number >> 1);
  std::vector<uint32_t> out;
  for (size_t d = 0; d < dimensions; ++d) {
    const std::array<uint32_t, 32> v = DirectionNumbers(d);
    uint32_t x = 0;
    for (unsigned i = 0; i < 32; ++i) {
      if ((gray >> i & 1u) != 0) x ^= v[i];
    }
    out.push_back(x);
  }
  return out;
}

std::vector<std::vector<size_t>> SobolSample(const std::vector<size_t>& sizes, int64_t points) {
  std::vector<std::vector<size_t>> out;
  for (int64_t i = 0; i < points; ++i) {
    const std::vector<uint32_t> x = SobolPoint(static_cast<uint64_t>(i), sizes.size());
    std::vector<size_t>& point = out.emplace_back();
    for (size_t d = 0; d < sizes.size(); ++d) point.push_back(static_cast<size_t>(uint64_t{x[d]} * sizes[d] >> 32));
  }
  return out;
}

}  // namespace wavetank::capacity
