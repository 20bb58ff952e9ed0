#include "scenarios/answers/unrest.h"

#include <algorithm>

#include "core/base/duration.h"
#include "core/base/trace_names.h"
#include "fmt/format.h"
#include "sim/world.h"

namespace wavetank::scenario {

Unrest::Unrest(sim::World& world) : world_(world) {
  world.kernel().AddObserver([this](const sim::TraceEvent& event) {
    if (event.record.kind >= TraceKind::kRequest) return;
    Turn(event.time);
    ++now_[{event.record.kind, event.record.subject}];
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
  std::vector<std::pair<int64_t, std::pair<TraceKind, NameId>>> most;
  for (const auto& [what, count] : counts) most.emplace_back(count, what);
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const Duration span = std::min<Duration>(world_.Now() - world_.options().start, 2 * kWindow);
  for (size_t i = 0; i < most.size() && i < 3; ++i) {
    const auto& [kind, subject] = most[i].second;
    out.push_back(fmt::format("{}: {} {} in the last {} at most", world_.kernel().names().Text(subject), most[i].first,
                              TraceKindName(kind), FormatDuration(span)));
  }
  return out;
}

}  // namespace wavetank::scenario
