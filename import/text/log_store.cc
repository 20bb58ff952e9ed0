#include "import/text/log_store.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "import/evidence/evidence.h"
#include "import/text/line_splitter.h"

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

// The first of the fields that is a string.
std::string FirstText(const json& of, std::initializer_list<const char*> fields) {
  for (const char* field : fields) {
    if (const json& value = At(of, field); value.is_string()) return value.get<std::string>();
  }
  return {};
}

// Of a record its time, whose it is and its line; pieces of a line that a runtime cut are put together.
class Collected {
 public:
  explicit Collected(LinesOf& found) : found_(found) {}

  static bool Is(const json& record) {
    const json& entry = Entry(record);
    if (At(entry, {"resource", "labels"}).is_object() &&
        (entry.contains("textPayload") || entry.contains("jsonPayload")))
      return true;
    return At(entry, "kubernetes").is_object() && !LineOf(entry).empty();
  }

  bool Add(const json& record) {
    if (!Is(record)) return false;
    const json& entry = Entry(record);
    const json& whose =
        At(entry, {"resource", "labels"}).is_object() ? At(entry, {"resource", "labels"}) : At(entry, "kubernetes");
    std::string pod = FirstText(whose, {"pod_name"}), container = FirstText(whose, {"container_name"});
    if (pod.empty()) pod = wavetank::Text(At(whose, "pod"), "name");
    if (container.empty()) container = wavetank::Text(At(whose, "container"), "name");
    const std::string time = FirstText(entry, {"@timestamp", "time", "timestamp", "date"});
    std::string line = LineOf(entry);
    std::string& begun = pieces_[{pod, container, wavetank::Text(entry, "stream")}];
    // Fluent Bit's and fluentd's parsers of the runtime's format keep its tag so.
    if (FirstText(entry, {"_p", "logtag"}) == "P") {
      begun += line;
      return true;
    }
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    found_[{pod, container}].push_back({ParseWall(time), std::exchange(begun, {}) + line});
    return true;
  }

 private:
  static const json& Entry(const json& record) {
    const json& source = At(record, "_source");
    return source.is_object() ? source : record;
  }
  static std::string LineOf(const json& entry) {
    std::string line = FirstText(entry, {"log", "message", "textPayload"});
    if (!line.empty()) return line;
    for (const char* parsed : {"log_processed", "jsonPayload"}) {
      json object = At(entry, parsed);
      if (!object.is_object()) continue;
      // Cloud Logging takes the time out of it.
      if (!object.contains("time")) object["time"] = At(entry, "timestamp");
      return JsonText(object);
    }
    // Of a JSON line whose fields were merged into the record.
    return entry.contains("msg") && entry.contains("level") ? JsonText(entry) : std::string();
  }

  LinesOf& found_;
  std::map<std::tuple<std::string, std::string, std::string>, std::string> pieces_;
};

// One value: a list of records, or Elasticsearch's answer with its hits.
const json* RecordsOf(const json& whole) {
  if (whole.is_array()) return &whole;
  const json& hits = At(whole, {"hits", "hits"});
  return hits.is_array() ? &hits : nullptr;
}

void ReadCollected(std::string_view text, LinesOf& found, std::vector<size_t>& unread) {
  Collected collected(found);
  if (const json whole = ParseJson(text); !whole.is_discarded()) {
    if (const json* records = RecordsOf(whole); records != nullptr) {
      for (size_t i = 0; i < records->size(); ++i) {
        if (!collected.Add((*records)[i])) unread.push_back(i + 1);
      }
      return;
    }
  }
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(text);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (const json record = ParseJson(line); !record.is_object() || !collected.Add(record)) unread.push_back(number);
  }
}

// A whole answer, or its first records: what is cut behind them no parser takes.
bool LooksCollected(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  const json first = ParseJson(line);
  if (const json* records = RecordsOf(first); records != nullptr)
    return !records->empty() && Collected::Is(records->front());
  if (first.is_object()) return Collected::Is(first);
  const auto has = [&](std::string_view key) { return head.find(key) != head.npos; };
  if (has("\"textPayload\"") || has("\"jsonPayload\"")) return has("\"resource\"");
  return (has("\"_source\"") && has("\"hits\"")) || (head.starts_with('[') && has("\"kubernetes\"") && has("\"log\""));
}

void ReadLines(std::string_view text, LinesOf& found, std::vector<size_t>& unread) {
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = TakeLine(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !ReadLine(line, found)) unread.push_back(number);
  }
}

}  // namespace

LogStoreFile KindOfLogStore(std::string_view head) {
  if (!head.starts_with('{') && !head.starts_with('[')) return LogStoreFile::kNone;
  if (const size_t type = head.find("\"resultType\""); type != head.npos) {
    const size_t value = head.find_first_not_of(" \t\r\n:", type + 12);
    if (value != head.npos && head.substr(value).starts_with("\"streams\"")) return LogStoreFile::kAnswer;
  }
  // Go sorts its keys.
  if (!head.starts_with("{\"labels\":{") && !head.starts_with("{\"line\":\"")) {
    return LooksCollected(head) ? LogStoreFile::kCollected : LogStoreFile::kNone;
  }
  LinesOf first;
  return ReadLine(head.substr(0, head.find_first_of("\r\n")), first) ? LogStoreFile::kLines : LogStoreFile::kNone;
}

StoredLog ReadLogStore(LogStoreFile kind, std::string_view text) {
  StoredLog out;
  LinesOf found;
  if (kind == LogStoreFile::kAnswer) ReadAnswer(text, found);
  if (kind == LogStoreFile::kLines) ReadLines(text, found, out.unread);
  if (kind == LogStoreFile::kCollected) ReadCollected(text, found, out.unread);
  for (auto& [whose, lines] : found) {
    // Newest first, unless asked otherwise: those of one instant, too. Where a time is missing, as they come.
    const bool dated = std::all_of(lines.begin(), lines.end(), [](const auto& line) { return line.at != kNoTime; });
    if (dated && !lines.empty() && lines.front().at > lines.back().at) std::reverse(lines.begin(), lines.end());
    if (dated) std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
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
