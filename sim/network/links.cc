#include "sim/network/links.h"

#include <algorithm>

namespace wavetank::sim {

std::optional<Duration> Line::Transit(Time) {
  if (quality_.cut) return std::nullopt;
  if (quality_.loss_ppm > 0 && stream_.Chance(static_cast<uint64_t>(quality_.loss_ppm))) return std::nullopt;
  Duration delay = quality_.latency;
  if (quality_.jitter.count() > 0) delay += Duration(stream_.Between(0, quality_.jitter.count()));
  return delay;
}

Links::Links(uint64_t seed, const LineQuality& inside, const LineQuality& between)
    : seed_(seed), inside_(inside), between_(between) {}

SiteId Links::AddSite(std::string_view name) {
  sites_.emplace_back(name);
  return SiteId(static_cast<uint16_t>(sites_.size() - 1));
}

Line& Links::Between(SiteId a, SiteId b) {
  const std::pair<uint16_t, uint16_t> key = std::minmax({static_cast<uint16_t>(a), static_cast<uint16_t>(b)});
  std::unique_ptr<Line>& line = lines_[{key.first, key.second}];
  if (line == nullptr) {
    const bool same = key.first == key.second;
    // Keyed by name, not by number: another site added before changes no draw.
    auto names = std::minmax(sites_[key.first], sites_[key.second]);
    line =
        std::make_unique<Line>(seed_, same ? names.first : names.first + "-" + names.second, same ? inside_ : between_);
  }
  return *line;
}

}  // namespace wavetank::sim
