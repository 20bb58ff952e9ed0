#include "import/clocks.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "fmt/format.h"

namespace wavetank::importing {
namespace {

// What align.cc takes for one change, whatever the clocks; less is the lag of watches, not of clocks.
constexpr WallNs kLag = 250'000'000;
constexpr size_t kFewest = 3;

using EventKey = std::tuple<InputKind, std::string, std::string, std::string, std::string>;
using Times = std::map<EventKey, std::vector<WallNs>>;

struct Offset {
  WallNs by = 0;
  size_t events = 0;
};

// How far `b` is ahead of `a`: the median of what both tell equally often. Nothing: too few, or they do not agree.
std::optional<Offset> OffsetOf(const Times& a, const Times& b) {
  std::vector<WallNs> differences;
  for (const auto& [key, times] : a) {
    const auto other = b.find(key);
    if (other == b.end() || other->second.size() != times.size()) continue;
    for (size_t i = 0; i < times.size(); ++i) differences.push_back(other->second[i] - times[i]);
  }
  if (differences.size() < kFewest) return std::nullopt;
  std::sort(differences.begin(), differences.end());
  const WallNs median = differences[differences.size() / 2];
  const auto near = std::count_if(differences.begin(), differences.end(),
                                  [&](WallNs each) { return std::abs(each - median) <= kLag; });
  if (static_cast<size_t>(near) * 5 < differences.size() * 4) return std::nullopt;
  return Offset{median, differences.size()};
}

std::string Seconds(WallNs by) { return fmt::format("{:.3f} s", static_cast<double>(std::abs(by)) / 1e9); }

}  // namespace

void AlignClocks(Evidence& evidence, const std::function<bool(const std::string& replica)>& given) {
  std::map<std::string, Times> told;
  for (const InferredInput& input : evidence.inputs) {
    if (input.initial) continue;
    switch (input.kind) {
      case InputKind::kIstiodStarted:
      case InputKind::kProxyConnected:
      case InputKind::kProxyDisconnected:
      case InputKind::kProxyRefused:
      case InputKind::kTraffic:
      case InputKind::kBehaviour:
        break;  // of one replica, or of a proxy
      default:
        told[input.replica][{input.kind, input.ns, input.name, input.host, input.object_kind}].push_back(input.at);
    }
  }
  if (told.size() < 2) return;
  for (auto& [replica, events] : told) {
    for (auto& [key, times] : events) std::sort(times.begin(), times.end());
  }
  // The one whose clock was told, else the one that tells most, is right; the others follow those that are.
  std::string first;
  size_t most = 0;
  for (const auto& [replica, events] : told) {
    const size_t weight = events.size() + (given(replica) ? size_t{1} << 32 : 0);
    if (weight > most) most = weight, first = replica;
  }
  std::set<std::string> right = {first};
  std::map<std::string, WallNs> moved;
  bool found = true;
  while (found) {
    found = false;
    for (auto& [replica, events] : told) {
      if (right.contains(replica)) continue;
      for (const std::string& known : right) {
        const std::optional<Offset> offset = OffsetOf(told.at(known), events);
        if (!offset) continue;
        found = true;
        if (std::abs(offset->by) > kLag && !given(replica)) {
          moved[replica] = -offset->by;
          for (auto& [key, times] : events) {
            for (WallNs& at : times) at -= offset->by;
          }
          evidence.notes.push_back(
              fmt::format("the clock of {} is {} {} that of {}, by {} events that both show; its "
                          "times are put right",
                          replica, Seconds(offset->by), offset->by > 0 ? "ahead of" : "behind", known, offset->events));
        }
        right.insert(replica);
        break;
      }
      if (found) break;
    }
  }
  if (moved.empty()) return;
  const auto by = [&](const std::string& replica) {
    const auto it = moved.find(replica);
    return it == moved.end() ? WallNs{0} : it->second;
  };
  for (InferredInput& input : evidence.inputs) {
    const WallNs move = by(input.replica);
    input.at += move;
    input.earliest += move;
    input.latest += move;
  }
  for (Claim& claim : evidence.claims) {
    if (claim.at == kNoTime) continue;
    const WallNs move = by(claim.replica);
    claim.at += move;
    claim.first_event += move;
    claim.last_event += move;
  }
  for (IstiodRun& run : evidence.runs) {
    run.from += by(run.replica);
    run.to += by(run.replica);
  }
}

void NoteLongSilence(Evidence& evidence) {
  constexpr WallNs kDay = 86'400'000'000'000;
  struct Told {
    WallNs from, to;
    std::string file;
  };
  std::map<std::string, Told> of_file;
  const auto tell = [&](WallNs at, const std::string& file) {
    if (at == kNoTime) return;
    Told& told = of_file.try_emplace(file, Told{at, at, file}).first->second;
    told.from = std::min(told.from, at);
    told.to = std::max(told.to, at);
  };
  for (const InferredInput& input : evidence.inputs) tell(input.at, input.place.file);
  for (const Claim& claim : evidence.claims) tell(claim.at, claim.place.file);
  std::vector<Told> all;
  for (auto& [file, told] : of_file) all.push_back(std::move(told));
  std::sort(all.begin(), all.end(), [](const Told& a, const Told& b) { return a.from < b.from; });
  size_t last = 0;  // what tells longest of those before
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].from - all[last].to > kDay) {
      evidence.notes.push_back(fmt::format(
          "no source tells of the {} days between {} ({}) and {} ({}); a log of both is as long, and takes as long to "
          "replay. If a clock is wrong, --skew {}=DURATION puts it right",
          (all[i].from - all[last].to) / kDay, all[last].file, FormatWall(all[last].to), all[i].file,
          FormatWall(all[i].from), all[i].file));
    }
    if (all[i].to > all[last].to) last = i;
  }
}

}  // namespace wavetank::importing
