#include "import/text/line_order.h"

#include <algorithm>
#include <vector>

#include "import/evidence/evidence.h"
#include "import/text/envelope.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

constexpr WallNs kApart = 1'000'000'000;

// The time that a line begins with, behind kubectl's prefix, or that istiod's JSON tells. kNoTime: none.
WallNs TimeOf(std::string_view line) {
  line = WithoutPodPrefix(line);
  if (line.starts_with('{')) {
    constexpr std::string_view kKey = "\"time\":\"";
    const size_t at = line.find(kKey);
    if (at == line.npos) return kNoTime;
    line.remove_prefix(at + kKey.size());
    return ParseWall(line.substr(0, line.find('"')));
  }
  const size_t end = line.find_first_of(" \t");
  return end == line.npos || end < 20 || end > 36 ? kNoTime : ParseWall(line.substr(0, end));
}

}  // namespace

LineOrder OrderOf(std::string_view head) {
  size_t on = 0, back = 0, far_back = 0;
  WallNs first = kNoTime, last = kNoTime;
  while (!head.empty()) {
    const WallNs at = TimeOf(TakeLine(head));
    if (at == kNoTime) continue;
    if (last == kNoTime) first = last = at;
    on += at > last ? 1 : 0;
    back += at < last ? 1 : 0;
    // Within a second goroutines overtake each other.
    far_back += at + kApart < last ? 1 : 0;
    last = at;
  }
  // A border between two logs is one step back, so a few are none.
  constexpr size_t kFew = 5;
  if (back >= kFew && back > 10 * on && last + kApart < first) return LineOrder::kBackward;
  return far_back >= kFew && far_back * 10 >= on ? LineOrder::kMixed : LineOrder::kForward;
}

std::string Sorted(std::string_view text, LineOrder order) {
  struct Record {
    WallNs at = kNoTime;
    std::vector<std::string_view> lines;
  };
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(TakeLine(text));
  if (order == LineOrder::kBackward) std::reverse(lines.begin(), lines.end());
  std::vector<Record> records;
  for (const std::string_view line : lines) {
    const WallNs at = TimeOf(line);
    if (at != kNoTime || records.empty()) records.push_back({at, {}});
    records.back().lines.push_back(line);
  }
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.at < b.at; });
  std::string out;
  for (const Record& record : records) {
    for (const std::string_view line : record.lines) out.append(line).append("\n");
  }
  return out;
}

}  // namespace wavetank::importing
