#include "sim/network/links.h"

#include <algorithm>

#include "core/base/assert.h"

namespace wavetank::sim {

absl::Status CheckQuality(const LineQuality& quality) {
  constexpr Duration kLongest = 1h;
  if (quality.latency < Duration::zero() || quality.latency > kLongest) {
    return absl::InvalidArgumentError("the latency of a link lies between 0 and one hour");
  }
  if (quality.jitter < Duration::zero() || quality.jitter > kLongest) {
    return absl::InvalidArgumentError("the jitter of a link lies between 0 and one hour");
  }
  if (quality.loss_ppm < 0 || quality.loss_ppm > 1'000'000) {
    return absl::InvalidArgumentError("the loss of a link lies between 0 and 1000000 parts per million");
  }
  return absl::OkStatus();
}

void Line::set_quality(const LineQuality& quality) {
  WAVETANK_ASSERT(CheckQuality(quality).ok(), name_, quality.latency, quality.jitter, quality.loss_ppm);
  quality_ = quality;
}

std::optional<Duration> Line::Transit(Time) {
  if (quality_.cut) return std::nullopt;
  if (quality_.loss_ppm > 0 && stream_.Chance(static_cast<uint64_t>(quality_.loss_ppm))) return std::nullopt;
  Duration delay = quality_.latency;
  if (quality_.jitter.count() > 0) delay += Duration(stream_.Between(0, quality_.jitter.count()));
  WAVETANK_ASSERT(delay >= quality_.latency, delay, name_);  // jitter never makes a line faster
  return delay;
}

Links::Links(uint64_t seed, const LineQuality& inside, const LineQuality& between)
    : seed_(seed), inside_(inside), between_(between) {}

SiteId Links::AddSite(std::string_view name) {
  WAVETANK_ASSERT(sites_.size() < UINT16_MAX, sites_.size());
  sites_.emplace_back(name);
  return SiteId(static_cast<uint16_t>(sites_.size() - 1));
}

Line& Links::Between(SiteId a, SiteId b) {
  const std::pair<uint16_t, uint16_t> key = std::minmax({static_cast<uint16_t>(a), static_cast<uint16_t>(b)});
  WAVETANK_ASSERT(key.second < sites_.size(), key.first, key.second, sites_.size());
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
