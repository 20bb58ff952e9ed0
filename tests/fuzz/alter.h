// Bytes that are nearly sound: a sample with a few places changed, as fuzzers change them.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/random.h"

namespace wavetank::fuzz {

// One to four changes: bits turned, bytes replaced, stretches left out, written twice, moved in from `other`, or
// replaced by what parsers stumble over.
inline std::string Altered(std::string bytes, std::string_view other, RandomStream& random) {
  static constexpr std::string_view kStumbles[] = {"",
                                                   "-1",
                                                   "0",
                                                   "99999999999999999999",
                                                   "1e999",
                                                   "NaN",
                                                   "null",
                                                   "~",
                                                   "{}",
                                                   "[]",
                                                   "\"",
                                                   "'",
                                                   "\\",
                                                   "%",
                                                   "%%",
                                                   "%00",
                                                   "${",
                                                   "\xff",
                                                   "\xc0\x80",
                                                   "\r\n",
                                                   "\n\n",
                                                   ":",
                                                   "- ",
                                                   "&a ",
                                                   "*a",
                                                   "<<: ",
                                                   "!!",
                                                   "((((((((",
                                                   ")",
                                                   "[[[[[[[[",
                                                   "]",
                                                   "{{{{{{{{",
                                                   "}",
                                                   "/../",
                                                   "..",
                                                   "\t",
                                                   "18446744073709551616",
                                                   "-9223372036854775808",
                                                   "-----BEGIN CERTIFICATE-----",
                                                   "e30.e30.",
                                                   "=",
                                                   ",",
                                                   "  ",
                                                   "*"};
  const auto place = [&] { return static_cast<size_t>(random.Below(bytes.size() + 1)); };
  const auto length = [&](size_t from, size_t most) {
    return static_cast<size_t>(random.Below(std::min(bytes.size() - from, most) + 1));
  };
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
    const size_t at = place();
    switch (random.Below(7)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random.Below(256));
        break;
      case 2:
        bytes.erase(at, length(at, 64));
        break;
      case 3:
        bytes.insert(place(), bytes.substr(at, length(at, 256)));
        break;
      case 4: {
        const size_t from = static_cast<size_t>(random.Below(other.size() + 1));
        bytes.insert(at, other.substr(from, static_cast<size_t>(random.Below(128))));
        break;
      }
      case 5:
        bytes.resize(at);
        break;
      default:
        bytes.replace(at, length(at, 8), kStumbles[random.Below(std::size(kStumbles))]);
    }
  }
  return bytes;
}

}  // namespace wavetank::fuzz
