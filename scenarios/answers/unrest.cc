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
    ++now_[UnrestKey(event.record)];
  });
}

void Unrest::Turn(Time now) {
  if (now - turned_ < kWindow) return;
  last_ = now - turned_ < 2 * kWindow ? std::move(now_) : Counts{};
  now_.clear();
  turned_ = now;
}

std::vector<std::string> Unrest::Reasons() const {
  std::vector<std::string> out = world_.AtWork();
  Counts counts = last_;
  for (const auto& [what, count] : now_) counts[what] += count;
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
