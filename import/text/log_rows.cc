#include "import/text/log_rows.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/csv.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

// In the order in which they are believed: what holds the line as it was written comes first.
constexpr std::string_view kLineFields[] = {"@message", "_raw",       "line",   "Line",     "log",
                                            "message",  "LogMessage", "log_s",  "LogEntry", "textPayload",
                                            "Message",  "Content",    "content"};
constexpr std::string_view kTimeFields[] = {"@timestamp",         "_time",     "tsNs", "Date", "date",
                                            "timestamp",          "Timestamp", "Time", "time", "TimeGenerated",
                                            "TimeGenerated [UTC]"};
constexpr std::string_view kPodFields[] = {"pod",
                                           "pod_name",
                                           "PodName",
                                           "Pod Name",
                                           "kubernetes.pod_name",
                                           "kubernetes.pod.name",
                                           "k8s.pod.name",
                                           "k8s_pod_name",
                                           "kube_pod",
                                           "resource.labels.pod_name"};
constexpr std::string_view kContainerFields[] = {"container",
                                                 "container_name",
                                                 "ContainerName",
                                                 "Container Name",
                                                 "kubernetes.container_name",
                                                 "kubernetes.container.name",
                                                 "k8s.container.name",
                                                 "k8s_container_name",
                                                 "kube_container_name",
                                                 "resource.labels.container_name"};

template <size_t n>
bool IsOneOf(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Text of the first of them that has any.
template <size_t n>
std::string FirstOf(const json& fields, const std::string_view (&names)[n]) {
  for (const std::string_view name : names) {
    const json& value = At(fields, name);
    if (value.is_object()) return JsonText(value);  // a line that was JSON, as some consoles show it
    std::string text = value.is_number_integer() ? JsonText(value) : TextOf(value);
    if (!text.empty()) return text;
  }
  return {};
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// "1715000000123\t2024-05-06T12:53:20.123Z\tline": what stands before the line.
std::optional<WallNs> TakeGrafanaTime(std::string_view& line) {
  constexpr size_t kMillis = 13;
  if (line.size() < kMillis + 2 || line[kMillis] != '\t' || !AllDigits(line.substr(0, kMillis))) return std::nullopt;
  const size_t end = line.find('\t', kMillis + 1);
  if (end == line.npos) return std::nullopt;
  const WallNs at = ParseWall(line.substr(kMillis + 1, end - kMillis - 1));
  if (at == kNoTime) return std::nullopt;
  line.remove_prefix(end + 1);
  return at;
}

void SetText(json& fields, const std::string& name, const json& value) {
  if (!name.empty() && (value.is_string() || value.is_object() || value.is_number_integer())) fields[name] = value;
}

}  // namespace

json FieldsOf(const json& record) {
  json fields = json::object();
  // [{"field": "@timestamp", "value": "2024-05-06 07:08:01.000"}, ...]
  if (record.is_array()) {
    for (const json& pair : record) {
      if (!At(pair, "field").is_string()) return nullptr;
      SetText(fields, wavetank::Text(pair, "field"), At(pair, "value"));
    }
    return fields.empty() ? json() : fields;
  }
  if (!record.is_object()) return nullptr;
  if (record.contains("@message") || record.contains("_raw")) return record;
  if (const json& result = At(record, "result"); At(result, "_raw").is_string()) return result;
  if (At(record, "line").is_string() && At(record, "fields").is_object() && record.contains("timestamp")) {
    for (const auto& [name, value] : At(record, "fields").items()) SetText(fields, name, value);
    fields["@message"] = At(record, "line");
    fields["@timestamp"] = At(record, "timestamp");
    return fields;
  }
  if (const json& attributes = At(record, "attributes"); At(attributes, "message").is_string()) {
    // "pod_name:istiod-7d4f"
    for (const json& tag : Items(At(attributes, "tags"))) {
      const std::string text = TextOf(tag);
      if (const size_t colon = text.find(':'); colon != text.npos)
        fields[text.substr(0, colon)] = text.substr(colon + 1);
    }
    fields["@message"] = At(attributes, "message");
    fields["@timestamp"] = At(attributes, "timestamp");
    return fields;
  }
  return nullptr;
}

std::optional<LogRow> RowOf(const json& fields) {
  LogRow out;
  out.line = FirstOf(fields, kLineFields);
  if (out.line.empty()) return std::nullopt;
  out.at = ParseRowTime(FirstOf(fields, kTimeFields));
  out.pod = FirstOf(fields, kPodFields);
  out.container = FirstOf(fields, kContainerFields);
  return out;
}

bool LooksLikeTable(std::string_view head) {
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  std::string_view line = TakeLine(head);
  // A row of data, or a log's line, is longer, and no sentence.
  if (line.size() > 4096 || line.find(',') == line.npos) return false;
  bool has_line = false, has_time = false;
  for (const std::string& name : TakeCsvRecord(line)) {
    has_line |= IsOneOf(kLineFields, name);
    has_time |= IsOneOf(kTimeFields, name);
  }
  return has_line && has_time;
}

void VisitTable(std::string_view text, absl::FunctionRef<void(size_t, const json&)> visit) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::vector<std::string> names = TakeCsvRecord(text);
  for (size_t number = 2; !text.empty(); ++number) {
    std::vector<std::string> row = TakeCsvRecord(text);
    if (row.size() == 1 && row[0].empty()) continue;
    if (row.size() > names.size()) {
      visit(number, nullptr);
      continue;
    }
    json fields = json::object();
    for (size_t i = 0; i < row.size(); ++i) {
      if (!row[i].empty()) fields[names[i]] = std::move(row[i]);
    }
    visit(number, fields);
  }
}

bool LooksLikeGrafanaText(std::string_view head) {
  // What the query itself told stands before the lines: labels, bytes, a limit.
  for (int looked_at = 0; looked_at < 20 && !head.empty(); ++looked_at) {
    std::string_view line = TakeLine(head);
    if (TakeGrafanaTime(line)) return true;
  }
  return false;
}

void VisitGrafanaText(std::string_view text, absl::FunctionRef<void(LogRow)> visit) {
  json common = json::object();
  std::optional<LogRow> row;
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<WallNs> at = TakeGrafanaTime(line);
    constexpr std::string_view kCommon = "Common labels: ";
    if (at) {
      if (row) visit(*std::move(row));
      row = LogRow{*at, FirstOf(common, kPodFields), FirstOf(common, kContainerFields), std::string(line)};
    } else if (row) {
      row->line.append("\n").append(line);  // of an entry of several lines
    } else if (line.starts_with(kCommon)) {
      common = ParseJson(line.substr(kCommon.size()));
    }
  }
  if (row) visit(*std::move(row));
}

WallNs ParseRowTime(std::string_view text) {
  if (const WallNs at = ParseWall(text); at != kNoTime) return at;
  if (int64_t number = 0; AllDigits(text) && ReadInteger(text, number)) {
    // Seconds, milli-, micro- or nanoseconds since 1970: by their digits, as these years have them.
    for (const auto& [digits, unit] :
         {std::pair<size_t, int64_t>{10, 1'000'000'000}, {13, 1'000'000}, {16, 1'000}, {19, 1}}) {
      if (text.size() == digits) return number <= INT64_MAX / unit ? number * unit : kNoTime;
    }
    return kNoTime;
  }
  for (const char* format : {"%Y-%m-%d %H:%M:%E*S", "%Y-%m-%dT%H:%M:%E*S%z", "%Y-%m-%dT%H:%M:%E*S",
                             "%m/%d/%Y, %I:%M:%E*S %p", "%b %d, %Y @ %H:%M:%E*S"}) {
    absl::Time at;
    if (!absl::ParseTime(format, absl::string_view(text.data(), text.size()), &at, nullptr)) continue;
    const int64_t ns = absl::ToUnixNanos(at);
    return ns == INT64_MIN || ns == INT64_MAX ? kNoTime : ns;
  }
  return kNoTime;
}

}  // namespace wavetank::importing
