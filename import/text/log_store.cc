#include "import/text/log_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "import/evidence/evidence.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

struct StoredLine {
  int64_t at = 0;
  std::string text;
};

// By pod and container: streams of one container differ in labels alone.
using LinesOf = std::map<std::pair<std::string, std::string>, std::vector<StoredLine>>;

std::vector<StoredLine>& LinesWith(const json& labels, LinesOf& found) {
  return found[{wavetank::Text(labels, "pod"), wavetank::Text(labels, "container")}];
}

void ReadAnswer(std::string_view text, LinesOf& found) {
  const json answer = ParseJson(text);
  for (const json& stream : Items(At(answer, {"data", "result"}))) {
    std::vector<StoredLine>& lines = LinesWith(At(stream, "stream"), found);
    for (const json& value : Items(At(stream, "values"))) {
      int64_t at = 0;
      if (!value.is_array() || value.size() < 2 || !ReadInteger(TextOf(value[0]), at)) continue;
      lines.push_back({at, TextOf(value[1])});
    }
  }
}

// {"labels":{"pod":"istiod-7d4f"},"line":"...","timestamp":"2024-05-06T07:08:10.1Z"}, without labels by --no-labels.
bool ReadLine(std::string_view line, LinesOf& found) {
  const json entry = ParseJson(line);
  if (!entry.is_object() || !At(entry, "line").is_string() || !At(entry, "timestamp").is_string()) return false;
  const WallNs at = ParseWall(wavetank::Text(entry, "timestamp"));
  if (at == kNoTime) return false;
  LinesWith(At(entry, "labels"), found).push_back({at, wavetank::Text(entry, "line")});
  return true;
}

void ReadLines(std::string_view text, LinesOf& found, std::vector<size_t>& unread) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !ReadLine(line, found)) unread.push_back(number);
  }
}

}  // namespace

LogStoreFile KindOfLogStore(std::string_view head) {
  if (!head.starts_with('{')) return LogStoreFile::kNone;
  if (const size_t type = head.find("\"resultType\""); type != head.npos) {
    const size_t value = head.find_first_not_of(" \t\r\n:", type + 12);
    if (value != head.npos && head.substr(value).starts_with("\"streams\"")) return LogStoreFile::kAnswer;
  }
  // Go sorts its keys.
  if (!head.starts_with("{\"labels\":{") && !head.starts_with("{\"line\":\"")) return LogStoreFile::kNone;
  LinesOf first;
  return ReadLine(head.substr(0, head.find_first_of("\r\n")), first) ? LogStoreFile::kLines : LogStoreFile::kNone;
}

StoredLog ReadLogStore(LogStoreFile kind, std::string_view text) {
  StoredLog out;
  LinesOf found;
  if (kind == LogStoreFile::kAnswer) ReadAnswer(text, found);
  if (kind == LogStoreFile::kLines) ReadLines(text, found, out.unread);
  for (auto& [whose, lines] : found) {
    // Newest first, unless asked otherwise: those of one instant, too.
    if (!lines.empty() && lines.front().at > lines.back().at) std::reverse(lines.begin(), lines.end());
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    StoredLines stored{whose.first, {}};
    const std::string container = whose.second.empty() ? "discovery" : whose.second;
    const std::string prefix = whose.first.empty() ? "" : "[pod/" + whose.first + "/" + container + "] ";
    for (StoredLine& line : lines) {
      while (!line.text.empty() && line.text.back() == '\n') line.text.pop_back();
      stored.text += prefix + line.text + "\n";
    }
    if (!stored.text.empty()) out.streams.push_back(std::move(stored));
  }
  return out;
}

}  // namespace wavetank::importing
