#include "scenarios/answers/unrest.h"

#include <algorithm>

#include "core/base/duration.h"
#include "core/base/trace_names.h"
#include "fmt/format.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

uint64_t UnrestKey(const TraceRecord& record) {
  return static_cast<uint64_t>(record.kind) << 32 | static_cast<uint32_t>(record.subject);
}

}  // namespace

Unrest::Unrest(sim::World& world) : world_(world) {
  world.kernel().AddObserver([this](const sim::TraceEvent& event) {
    if (event.record.kind >= TraceKind::kRequest) return;
    Turn(event.time);
    now_.noted.push_back(UnrestKey(event.record));
    if (now_.noted.size() < kMostNoted) return;
    for (const uint64_t what : now_.noted) ++now_.counts[what];
    now_.noted.clear();
  });
}

void Unrest::Turn(Time now) {
  if (now - turned_ < kWindow) return;
  std::swap(last_, now_);
  now_.noted.clear();
  now_.counts.clear();
  if (now - turned_ >= 2 * kWindow) last_ = {};
  turned_ = now;
}

std::vector<std::string> Unrest::Reasons() const {
  std::vector<std::string> out = world_.AtWork();
  absl::flat_hash_map<uint64_t, int64_t> counts;
  for (const Window* window : {&last_, &now_}) {
    for (const auto& [what, count] : window->counts) counts[what] += count;
    for (const uint64_t what : window->noted) ++counts[what];
  }
  std::vector<std::pair<uint64_t, int64_t>> most(counts.begin(), counts.end());
  std::sort(most.begin(), most.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const Duration span = std::min<Duration>(world_.Now() - world_.options().start, 2 * kWindow);
  for (size_t i = 0; i < most.size() && i < 3; ++i) {
    const auto kind = static_cast<TraceKind>(most[i].first >> 32);
    const auto subject = static_cast<NameId>(static_cast<uint32_t>(most[i].first));
    out.push_back(fmt::format("{}: {} {} in the last {} at most", world_.kernel().names().Text(subject), most[i].second,
                              TraceKindName(kind), FormatDuration(span)));
  }
  return out;
}

}  // namespace wavetank::scenario
