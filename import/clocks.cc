#include "import/clocks.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
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

}  // namespace wavetank::importing
