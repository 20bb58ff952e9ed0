// Two samples of requests by what came of them: whether they may be of one distribution.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace wavetank::importing {

// "200 98.0 %, 503 2.0 %"
std::string SharesInWords(const std::map<std::string, uint64_t>& counts, uint64_t total);

// Of two samples of one distribution no share differs by more than three deviations and a hundredth, which a log's
// resolution of a millisecond may cost. Names the first that does, in both; empty: none does.
std::string FirstDifference(const std::map<std::string, uint64_t>& a, uint64_t n,
                            const std::map<std::string, uint64_t>& b, uint64_t m);

}  // namespace wavetank::importing
