#include "import/text/log_store.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/evidence/evidence.h"
#include "import/text/line_splitter.h"
#include "import/text/log_rows.h"

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

bool IsAuditOfCloudLogging(const json& entry) {
  return wavetank::Text(At(entry, "protoPayload"), "serviceName") == "k8s.io";
}

// Of Cloud Logging's entry the audit event that it was made of: GKE keeps objects as they were sent and stored, with a
// type of its own among their fields. "io.k8s.core.v1.pods.status.patch"; "core/v1/namespaces/NS/pods/NAME/status".
std::string AuditOfCloudLogging(const json& entry) {
  const json& payload = At(entry, "protoPayload");
  const std::string method = wavetank::Text(payload, "methodName");
  std::vector<std::string> path = absl::StrSplit(wavetank::Text(payload, "resourceName"), '/');
  json ref = json::object();
  if (path.size() >= 2) {
    ref["apiGroup"] = path[0] == "core" ? "" : path[0];
    ref["apiVersion"] = path[1];
    path.erase(path.begin(), path.begin() + 2);
    if (path.size() > 2 && path[0] == "namespaces") {
      ref["namespace"] = path[1];
      path.erase(path.begin(), path.begin() + 2);
    }
    for (const auto& [field, at] : {std::pair("resource", 0), std::pair("name", 1), std::pair("subresource", 2)}) {
      if (path.size() > static_cast<size_t>(at)) ref[field] = path[at];
    }
  }
  const json& code = At(At(payload, "status"), "code");
  json event = {{"kind", "Event"},
                {"apiVersion", "audit.k8s.io/v1"},
                {"level", "RequestResponse"},
                {"stage", "ResponseComplete"},
                {"verb", method.substr(method.rfind('.') + 1)},
                {"user", {{"username", wavetank::Text(At(payload, "authenticationInfo"), "principalEmail")}}},
                {"objectRef", std::move(ref)},
                {"responseStatus", {{"code", code.is_null() || code == 0 ? 200 : 400}}},
                {"stageTimestamp", wavetank::Text(entry, "timestamp")}};
  for (const auto& [from, to] : {std::pair("request", "requestObject"), std::pair("response", "responseObject")}) {
    json object = At(payload, from);
    if (!object.is_object()) continue;
    const std::string type = wavetank::Text(object, "@type");
    object.erase("@type");
    if (type.ends_with(".Status")) object["kind"] = "Status";
    event[to] = std::move(object);
  }
  return JsonText(event);
}

// Of a record its time, whose it is and its line; pieces of a line that a runtime cut are put together.
class Collected {
 public:
  explicit Collected(LinesOf& found) : found_(found) {}

  static bool Is(const json& record) {
    if (!FieldsOf(record).is_null()) return true;
    const json& entry = Entry(record);
    if (IsEvent(entry) || IsAzures(entry) || IsAuditOfCloudLogging(entry)) return true;
    if (At(entry, {"resource", "labels"}).is_object() &&
        (entry.contains("textPayload") || entry.contains("jsonPayload")))
      return true;
    return At(entry, "kubernetes").is_object() && !LineOf(entry).empty();
  }

  bool Add(const json& record) {
    if (const json fields = FieldsOf(record); !fields.is_null()) return AddFields(fields);
    if (!Is(record)) return false;
    const json& entry = Entry(record);
    if (IsEvent(entry)) {
      AddEvent(entry);
      return true;
    }
    if (IsAuditOfCloudLogging(entry)) {
      found_[{"", ""}].push_back({ParseWall(wavetank::Text(entry, "timestamp")), AuditOfCloudLogging(entry)});
      return true;
    }
    const json& labels = At(entry, {"resource", "labels"});
    const json& whose = labels.is_object() ? labels : IsAzures(entry) ? entry : At(entry, "kubernetes");
    std::string pod = FirstText(whose, {"pod_name", "PodName"});
    std::string container = FirstText(whose, {"container_name", "ContainerName"});
    if (pod.empty()) pod = wavetank::Text(At(whose, "pod"), "name");
    if (container.empty()) container = wavetank::Text(At(whose, "container"), "name");
    const std::string time = FirstText(entry, {"@timestamp", "time", "timestamp", "date", "TimeGenerated"});
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

  // False: none of them holds a line.
  bool AddFields(const json& fields) {
    std::optional<LogRow> row = RowOf(fields);
    if (row) AddRow(*std::move(row));
    return row.has_value();
  }
  void AddRow(LogRow row) {
    if (!AddInner(row.line))
      found_[{std::move(row.pod), std::move(row.container)}].push_back({row.at, std::move(row.line)});
  }

  // Lines of which the records hold the beginning alone.
  size_t Cut() const {
    return static_cast<size_t>(
        std::count_if(pieces_.begin(), pieces_.end(), [](const auto& each) { return !each.second.empty(); }));
  }

 private:
  // What a store keeps may be a collector's record itself.
  bool AddInner(const std::string& line) {
    if (!line.starts_with('{')) return false;
    const json inner = ParseJson(line);
    return inner.is_object() && Is(inner) && !IsEvent(inner) && Add(inner);
  }
  static const json& Entry(const json& record) {
    const json& source = At(record, "_source");
    return source.is_object() ? source : record;
  }
  // CloudWatch's: milliseconds since 1970.
  static bool IsEvent(const json& entry) {
    return At(entry, "timestamp").is_number_integer() && At(entry, "message").is_string() &&
           (entry.contains("ingestionTime") || entry.contains("eventId") || entry.contains("logStreamName"));
  }
  static bool IsAzures(const json& entry) {
    if (At(entry, {"properties", "log"}).is_string()) return true;
    return At(entry, "TimeGenerated").is_string() && !LineOf(entry).empty();
  }
  void AddEvent(const json& entry) {
    const std::string message = wavetank::Text(entry, "message");
    if (AddInner(message)) return;
    constexpr int64_t kMost = INT64_MAX / 1'000'000;
    const int64_t ms = Number(entry, "timestamp");
    found_[{"", ""}].push_back({ms > 0 && ms < kMost ? ms * 1'000'000 : kNoTime, message});
  }
  static std::string LineOf(const json& entry) {
    if (const json& log = At(entry, {"properties", "log"}); log.is_string()) return log.get<std::string>();
    std::string line = FirstText(entry, {"log", "message", "textPayload", "log_s", "LogMessage", "LogEntry"});
    if (!line.empty()) return line;
    for (const char* parsed : {"log_processed", "jsonPayload", "LogMessage"}) {
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

// One value: a list of records, Elasticsearch's answer with its hits, CloudWatch's with events or results (Splunk's,
// too), Azure's records, or Datadog's data.
const json* RecordsOf(const json& whole) {
  if (whole.is_array()) return &whole;
  for (const json* list : {&At(whole, {"hits", "hits"}), &At(whole, "events"), &At(whole, "records"),
                           &At(whole, "results"), &At(whole, "data")}) {
    if (list->is_array()) return list;
  }
  return nullptr;
}

// What an answer of CloudWatch's Insights says of itself: one of a query that runs is not whole, and there are at most
// as many results as its limit lets through.
void NoteWhatIsNotThere(const json& answer, size_t results, std::vector<std::string>& notes) {
  const std::string status = wavetank::Text(answer, "status");
  if (!status.empty() && status != "Complete") {
    notes.push_back(fmt::format(
        "the query's status is {}: its answer is not whole; ask again (aws logs get-query-results)", status));
  }
  const json& matched = At(answer, {"statistics", "recordsMatched"});
  if (matched.is_number() && matched.get<double>() > static_cast<double>(results)) {
    notes.push_back(
        fmt::format("the query matched {:.0f} records, of which the answer holds {}; `| limit 10000`, or a shorter "
                    "time, brings the others",
                    matched.get<double>(), results));
  }
}

void ReadRecords(std::string_view text, Collected& collected, StoredLog& out) {
  std::vector<size_t>& unread = out.unread;
  if (const json whole = ParseJson(text); !whole.is_discarded()) {
    if (const json* records = RecordsOf(whole); records != nullptr) {
      if (whole.contains("results")) NoteWhatIsNotThere(whole, records->size(), out.notes);
      size_t without_line = 0;
      for (size_t i = 0; i < records->size(); ++i) {
        if (collected.Add((*records)[i])) continue;
        unread.push_back(i + 1);
        without_line += FieldsOf((*records)[i]).is_null() ? 0 : 1;
      }
      if (without_line > 0) {
        out.notes.push_back(fmt::format(
            "{} rows hold no line of a log: let the query give it (`fields @timestamp, @message`)", without_line));
      }
      return;
    }
  }
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(text);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const json record = ParseJson(line);
    bool read = record.is_object() && collected.Add(record);
    // Azure's hubs write a list a line.
    if (const json* records = read ? nullptr : RecordsOf(record); records != nullptr) {
      read = !records->empty() &&
             std::all_of(records->begin(), records->end(), [&](const json& each) { return collected.Add(each); });
    }
    if (!read) unread.push_back(number);
  }
}

void ReadCollected(std::string_view text, LinesOf& found, StoredLog& out) {
  Collected collected(found);
  ReadRecords(text, collected, out);
  if (const size_t cut = collected.Cut(); cut > 0)
    out.notes.push_back(fmt::format("{} lines that the runtime cut are left out, as their rest is not there", cut));
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
  if (has("\"protoPayload\"")) return has("\"k8s.io\"");
  const bool answer = head.starts_with('[') || has("\"results\"");
  if (answer && (has("\"@message\"") || has("\"_raw\""))) return true;
  if (has("\"results\"") && has("\"field\"") && has("\"value\"")) return has("\"@ptr\"") || has("\"statistics\"");
  if (has("\"result\"") && has("\"_raw\"")) return true;
  if (head.starts_with('[') && has("\"line\"") && has("\"timestamp\"")) return has("\"fields\"");
  if (has("\"data\"") && has("\"attributes\"") && has("\"message\"")) return has("\"tags\"");
  if (has("\"events\"") && has("\"message\"")) return has("\"ingestionTime\"") || has("\"eventId\"");
  if (has("\"records\"") || head.starts_with('[')) {
    if (has("\"properties\"") && has("\"category\"")) return has("\"kube-");
    if (has("\"TimeGenerated\"")) return has("\"log_s\"") || has("\"LogMessage\"") || has("\"LogEntry\"");
  }
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
  if (LooksLikeTable(head)) return LogStoreFile::kTable;
  if (LooksLikeGrafanaText(head)) return LogStoreFile::kGrafanaText;
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
  if (kind == LogStoreFile::kCollected) ReadCollected(text, found, out);
  Collected rows(found);
  if (kind == LogStoreFile::kTable) {
    VisitTable(text, [&](size_t number, const json& fields) {
      if (!rows.AddFields(fields)) out.unread.push_back(number);
    });
  }
  if (kind == LogStoreFile::kGrafanaText) VisitGrafanaText(text, [&](LogRow row) { rows.AddRow(std::move(row)); });
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
