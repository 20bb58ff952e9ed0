#include "core/debug/control_z.h"

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/percent.h"
#include "core/debug/go_text.h"
#include "fmt/format.h"

namespace wavetank::debug {
namespace {

using nlohmann::ordered_json;

constexpr char kCtrlzProgram[] = "/usr/local/bin/pilot-discovery";
// The header is set after the status, so that net/http looks at the body instead (istio.io/pkg/ctrlz/fw/util.go).
constexpr char kSniffedText[] = "text/plain; charset=utf-8", kSniffedHtml[] = "text/html; charset=utf-8";

struct CtrlzTopic {
  std::string_view title, prefix;
};
constexpr CtrlzTopic kCtrlzTopics[] = {{"Logging Scopes", "scope"},
                                       {"Memory Usage", "mem"},
                                       {"Environment Variables", "env"},
                                       {"Process Info", "proc"},
                                       {"Command-Line Arguments", "arg"},
                                       {"Version Info", "version"},
                                       {"Metrics", "metric"},
                                       {"Signals", "signal"}};

ControlZReply CtrlzAnswered(Reply reply) { return {std::move(reply), std::nullopt}; }
ControlZReply CtrlzError(int status, std::string text) {
  return CtrlzAnswered({status, kSniffedText, std::move(text)});
}
ControlZReply CtrlzJson(const ordered_json& value) { return CtrlzAnswered({200, kSniffedText, GoText(value) + "\n"}); }

std::string CtrlzEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&#34;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string CtrlzHtml(std::string_view title, std::string_view content) {
  std::string links;
  for (const CtrlzTopic& topic : kCtrlzTopics)
    links += fmt::format("<a href=\"/{}z/\">{}</a> ", topic.prefix, topic.title);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ControlZ / {0}</title></head>\n<body>"
      "<nav><a href=\"/\">Home</a> {1}</nav>\n<h1>{0}</h1>\n{2}</body></html>\n",
      CtrlzEscaped(title), links, content);
}

// A table of a list of objects, or of one object's members.
std::string CtrlzTable(const ordered_json& value) {
  const auto cell = [](const ordered_json& v) {
    return CtrlzEscaped(v.is_string() ? v.get<std::string>() : JsonText(v));
  };
  std::string out = "<table>\n";
  if (value.is_object()) {
    for (const auto& [name, member] : value.items())
      out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", CtrlzEscaped(name), cell(member));
  } else if (value.is_array()) {
    for (const ordered_json& row : value) {
      out += "<tr>";
      if (!row.is_object()) out += fmt::format("<td>{}</td>", cell(row));
      if (row.is_object()) {
        for (const auto& [name, member] : row.items()) out += fmt::format("<td>{}</td>", cell(member));
      }
      out += "</tr>\n";
    }
  }
  return out + "</table>\n";
}

ordered_json CtrlzInfoOf(const LogScope& scope) {
  // "fatal" has no name there (istio.io/pkg/ctrlz/topics/scopes.go, levelToString).
  const auto name = [](LogLevel level) { return level == LogLevel::kFatal ? std::string_view() : LogLevelName(level); };
  return {{"name", scope.name},
          {"description", scope.description},
          {"output_level", name(scope.output)},
          {"stack_trace_level", name(scope.stack_trace)},
          {"log_callers", scope.callers}};
}

ordered_json CtrlzScopes(const LogScopes& scopes) {
  ordered_json out = ordered_json::array();
  for (const LogScope& scope : scopes.all()) out.push_back(CtrlzInfoOf(scope));
  return out;
}

std::string CtrlzScopesPage(const LogScopes& scopes) {
  std::string rows;
  for (const LogScope& scope : scopes.all()) {
    std::string options;
    for (const LogLevel level : {LogLevel::kNone, LogLevel::kError, LogLevel::kWarn, LogLevel::kInfo, LogLevel::kDebug})
      options += fmt::format("<option{}>{}</option>", level == scope.output ? " selected" : "", LogLevelName(level));
    rows += fmt::format(
        "<tr><td>{0}</td><td>{1}</td><td><select data-scope=\"{0}\" "
        "onchange=\"set(this)\">{2}</select></td><td>{3}</td>"
        "<td>{4}</td></tr>\n",
        CtrlzEscaped(scope.name), CtrlzEscaped(scope.description), options, LogLevelName(scope.stack_trace),
        scope.callers);
  }
  return fmt::format(
      "<table><tr><th>Scope</th><th>Description</th><th>Output Level</th><th>Stack Trace Level</th><th>Log "
      "Callers?</th>"
      "</tr>\n{}</table>\n<script>function set(s){{fetch('/scopej/'+encodeURIComponent(s.dataset.scope),{{method:'PUT',"
      "body:JSON.stringify({{output_level:s.value}})}})}}</script>\n",
      rows);
}

// istio.io/pkg/ctrlz/topics/metrics.go: the families of prom2json.
ordered_json CtrlzMetrics(const std::string& text) {
  ordered_json out = ordered_json::array();
  std::map<std::string, size_t> at;
  const auto family = [&](const std::string& name) -> ordered_json& {
    const auto [it, first] = at.try_emplace(name, out.size());
    if (first) out.push_back({{"name", name}, {"help", ""}, {"type", "UNTYPED"}, {"metrics", ordered_json::array()}});
    return out[it->second];
  };
  for (const absl::string_view each : absl::StrSplit(text, '\n')) {
    const std::string line(each);
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 3));
      if (parts.size() < 4) continue;
      std::string said = parts[3];
      if (line.starts_with("# TYPE "))
        for (char& c : said) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      family(parts[2])[line.starts_with("# HELP ") ? "help" : "type"] = said;
      continue;
    }
    const size_t end = line.rfind(' ');
    if (line.empty() || line[0] == '#' || end == std::string::npos) continue;
    const size_t brace = line.find('{');
    std::string name = line.substr(0, std::min(brace, end));
    ordered_json labels = ordered_json::object();
    if (brace != std::string::npos && brace < end) {
      const std::string inside = line.substr(brace + 1, line.rfind('}') - brace - 1);
      for (size_t i = 0; i < inside.size();) {
        const size_t equals = inside.find("=\"", i);
        if (equals == std::string::npos) break;
        size_t close = equals + 2;
        while (close < inside.size() && inside[close] != '"') close += inside[close] == '\\' ? 2 : 1;
        labels[inside.substr(i, equals - i)] = inside.substr(equals + 2, close - equals - 2);
        i = close + 2;
      }
    }
    const std::string value = line.substr(end + 1);
    // Parts of histograms and summaries belong to the family without their ending.
    std::string part;
    for (const char* ending : {"_bucket", "_sum", "_count"}) {
      const std::string base = name.substr(0, name.size() - std::min(name.size(), std::string_view(ending).size()));
      if (name.ends_with(ending) && at.contains(base)) part = ending, name = base;
    }
    ordered_json& metrics = family(name)["metrics"];
    std::string key;
    for (const char* of_part : {"le", "quantile"}) {
      if (labels.contains(of_part) && family(name)["type"] != "GAUGE")
        key = labels[of_part].get<std::string>(), labels.erase(of_part);
    }
    const std::string type = family(name)["type"].get<std::string>();
    if (type != "HISTOGRAM" && type != "SUMMARY") {
      metrics.push_back(labels.empty() ? ordered_json{{"value", value}}
                                       : ordered_json{{"labels", labels}, {"value", value}});
      continue;
    }
    if (metrics.empty() || metrics.back().value("labels", ordered_json::object()) != labels) {
      metrics.push_back(labels.empty() ? ordered_json::object() : ordered_json{{"labels", labels}});
    }
    if (part == "_sum" || part == "_count") {
      metrics.back()[part.substr(1)] = value;
    } else {
      metrics.back()[type == "HISTOGRAM" ? "buckets" : "quantiles"][key] = value;
    }
  }
  return out;
}

ControlZReply CtrlzPutScope(const LogScopes& scopes, const std::string& name, std::string_view body) {
  const nlohmann::json said = ParseJson(body);
  if (!said.is_object()) {
    return CtrlzError(400, fmt::format("unable to decode request: {}", body.empty() ? "EOF" : "it is no JSON object"));
  }
  if (scopes.Find(name) == nullptr) return CtrlzError(400, fmt::format("unknown scope name: {}", name));
  ScopeChange change;
  change.scope = name;
  // What is no level leaves the level as it is; "fatal" is none there.
  for (const auto& [field, level] :
       {std::pair("output_level", &change.output), std::pair("stack_trace_level", &change.stack_trace)}) {
    const std::optional<LogLevel> parsed = ParseLogLevel(Text(said, field));
    if (parsed && *parsed != LogLevel::kFatal) *level = parsed;
  }
  change.callers = At(said, "log_callers") == true;
  return {{202, "", ""}, std::move(change)};
}

std::optional<ordered_json> CtrlzTopicJson(std::string_view topic, const ControlZProcess& process) {
  if (topic == "env") {
    ordered_json out = ordered_json::array();
    for (const auto& [name, value] : process.variables) out.push_back({{"name", name}, {"value", value}});
    return out;
  }
  if (topic == "arg") {
    ordered_json out = {kCtrlzProgram};
    for (const std::string& argument : process.arguments) out.push_back(argument);
    return out;
  }
  if (topic == "proc") {
    // A working folder that is the host's name: so is 1.18.2 (istio.io/pkg/ctrlz/topics/proc.go).
    return ordered_json{{"egid", process.user},
                        {"euid", process.user},
                        {"gid", process.user},
                        {"groups", {process.user}},
                        {"pid", 1},
                        {"ppid", 0},
                        {"uid", process.user},
                        {"wd", process.pod},
                        {"hostname", process.pod},
                        {"tempdir", "/tmp"}};
  }
  if (topic == "version") {
    return ordered_json{{"version", process.version},
                        {"revision", "simulated"},
                        {"golang_version", ""},
                        {"status", "Clean"},
                        {"tag", process.version}};
  }
  if (topic == "metric") return CtrlzMetrics(process.metrics);
  return std::nullopt;
}

ordered_json CtrlzHomeJson(const ControlZProcess& process) {
  const int64_t unix = kWorldEpochUnixSeconds * 1'000'000'000 + process.now.time_since_epoch().count();
  return {{"ProcessName", kCtrlzProgram}, {"CurrentTime", unix}, {"Hostname", process.pod}, {"IP", process.ip}};
}

}  // namespace

ControlZReply AnswerControlZ(const LogScopes& scopes, const ControlZProcess& process, std::string_view method,
                             std::string_view path, std::string_view body) {
  const bool looks = method == "GET" || method == "HEAD";
  for (const CtrlzTopic& topic : kCtrlzTopics) {
    const std::string pages = fmt::format("/{}z", topic.prefix), api = fmt::format("/{}j", topic.prefix);
    if (path.starts_with(pages)) {
      if (topic.prefix == "mem") break;
      if (topic.prefix == "scope")
        return CtrlzAnswered({200, kSniffedHtml, CtrlzHtml(topic.title, CtrlzScopesPage(scopes))});
      const std::optional<ordered_json> value = CtrlzTopicJson(topic.prefix, process);
      return CtrlzAnswered(
          {200, kSniffedHtml, CtrlzHtml(topic.title, value ? CtrlzTable(*value) : "<p>SIGUSR1</p>\n")});
    }
    if (!path.starts_with(api)) continue;
    const std::string_view rest = path.substr(api.size());
    if (topic.prefix == "mem") break;
    if (topic.prefix == "signal") {
      if (rest == "/SIGUSR1" && (method == "PUT" || method == "POST")) return CtrlzAnswered({202, "", ""});
      break;
    }
    if (rest.empty() && looks)
      return CtrlzAnswered({301, kSniffedHtml, fmt::format("<a href=\"{}/\">Moved Permanently</a>.\n\n", api)});
    if (rest == "/" && looks) {
      return CtrlzJson(topic.prefix == "scope" ? CtrlzScopes(scopes) : *CtrlzTopicJson(topic.prefix, process));
    }
    if (topic.prefix != "scope" || rest.size() < 2 || rest.find('/', 1) != rest.npos) break;
    const std::string name = PercentDecodedLoosely(rest.substr(1));
    if (method == "PUT") return CtrlzPutScope(scopes, name, body);
    if (!looks) return CtrlzError(405, "");
    const LogScope* const scope = scopes.Find(name);
    return scope == nullptr ? CtrlzError(400, fmt::format("unknown scope name: {}", name))
                            : CtrlzJson(CtrlzInfoOf(*scope));
  }
  if (path.starts_with("/memz") || path.starts_with("/memj")) {
    return CtrlzError(501, "a simulated istiod has no Go runtime whose memory could be told\n");
  }
  if (method == "PUT" && path == "/homej/exit") {
    return CtrlzError(501, "a simulated istiod is not ended from here; `kubectl delete pod` does\n");
  }
  if (!looks) return CtrlzError(405, "");
  if (path == "/") return CtrlzAnswered({200, kSniffedHtml, CtrlzHtml("Home", CtrlzTable(CtrlzHomeJson(process)))});
  if (path == "/homej" || path == "/homej/") return CtrlzJson(CtrlzHomeJson(process));
  return CtrlzAnswered({404, kSniffedHtml, CtrlzHtml("Not found", "<p>There is no such page.</p>\n")});
}

}  // namespace wavetank::debug
