#include "import/judge/shares.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fmt/format.h"

namespace wavetank::importing {

std::string SharesInWords(const std::map<std::string, uint64_t>& counts, uint64_t total) {
  std::string out;
  for (const auto& [what, count] : counts) {
    out += fmt::format("{}{} {:.1f} %", out.empty() ? "" : ", ", what,
                       100.0 * static_cast<double>(count) / static_cast<double>(total));
  }
  return out;
}

std::string FirstDifference(const std::map<std::string, uint64_t>& a, uint64_t n,
                            const std::map<std::string, uint64_t>& b, uint64_t m) {
  std::set<std::string> all;
  for (const auto* counts : {&a, &b}) {
    for (const auto& [what, count] : *counts) all.insert(what);
  }
  const auto of = [](const std::map<std::string, uint64_t>& counts, const std::string& what) {
    const auto it = counts.find(what);
    return it == counts.end() ? 0.0 : static_cast<double>(it->second);
  };
  const auto size_a = static_cast<double>(n), size_b = static_cast<double>(m);
  for (const std::string& what : all) {
    const double share_a = of(a, what) / size_a, share_b = of(b, what) / size_b;
    const double pooled = (of(a, what) + of(b, what)) / (size_a + size_b);
    const double deviation = std::sqrt(pooled * (1 - std::min(pooled, 1.0)) * (1 / size_a + 1 / size_b));
    if (std::abs(share_a - share_b) > 3 * deviation + 0.01) {
      return fmt::format("{} {:.1f} % and here {:.1f} %", what, 100 * share_a, 100 * share_b);
    }
  }
  return {};
}

}  // namespace wavetank::importing
