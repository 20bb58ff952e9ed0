#include "capacity/calibrate/samples.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "nlohmann/json.hpp"

namespace wavetank::capacity {
namespace {

constexpr size_t kMostBytes = 256u << 20;

bool NameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

std::optional<double> Number(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) return std::nullopt;
  return value;
}

// `name="value",...}` from `at` on, behind the brace; false: it is none. `at` is left behind the closing brace.
bool ReadLabels(std::string_view line, size_t* at, std::map<std::string, std::string>* out) {
  while (*at < line.size()) {
    while (*at < line.size() && (line[*at] == ' ' || line[*at] == ',')) ++*at;
    if (*at < line.size() && line[*at] == '}') {
      ++*at;
      return true;
    }
    std::string name, value;
    while (*at < line.size() && NameCharacter(line[*at])) name += line[(*at)++];
    if (name.empty() || line.substr(*at, 2) != "=\"") return false;
    *at += 2;
    for (; *at < line.size() && line[*at] != '"'; ++*at) {
      if (line[*at] == '\\' && *at + 1 < line.size()) {
        ++*at;
        value += line[*at] == 'n' ? '\n' : line[*at];
      } else {
        value += line[*at];
      }
    }
    if (*at >= line.size()) return false;
    ++*at;
    (*out)[name] = value;
  }
  return false;
}

}  // namespace

absl::StatusOr<Samples> Samples::Parse(std::string_view text, const std::string& path) {
  Samples out;
  const auto bad = [&](int line, std::string_view what) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}: {}; save what istiod answers at :15014/metrics", path, line, what));
  };
  if (text.size() > kMostBytes) return bad(1, "more than 256 MB");
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != text.npos && text[start] == '{') {
    const nlohmann::json json = ParseJson(text);
    const auto none = [&] {
      return absl::InvalidArgumentError(
          fmt::format("{}: no answer of Prometheus' API; save that of /api/v1/query, with data.result", path));
    };
    if (!json.is_object() || !json.contains("data") || !json["data"].is_object()) return none();
    const nlohmann::json& data = json["data"];
    if (!data.contains("result") || !data["result"].is_array()) return none();
    for (const nlohmann::json& row : data["result"]) {
      if (!row.is_object() || !row.contains("metric") || !row["metric"].is_object() || !row.contains("value") ||
          !row["value"].is_array() || row["value"].size() != 2 || !row["value"][1].is_string()) {
        return none();
      }
      Series series;
      std::string name;
      for (const auto& [key, value] : row["metric"].items()) {
        if (!value.is_string()) return none();
        (key == "__name__" ? name : series.labels[key]) = value.get<std::string>();
      }
      const std::optional<double> number = Number(row["value"][1].get<std::string>());
      if (!number) return none();
      series.value = *number;
      out.series_.emplace(name, std::move(series));
    }
    return out;
  }
  int number = 0;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  for (const std::string& line : lines) {
    ++number;
    if (line.empty() || line.front() == '#' || line == "\r") continue;
    size_t at = 0;
    while (at < line.size() && NameCharacter(line[at])) ++at;
    if (at == 0) return bad(number, "no sample");
    const std::string name = line.substr(0, at);
    Series series;
    if (at < line.size() && line[at] == '{' && !ReadLabels(line, &++at, &series.labels))
      return bad(number, "no labels");
    const std::vector<std::string> words = absl::StrSplit(line.substr(at), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    const std::optional<double> value = words.empty() || words.size() > 2 ? std::nullopt : Number(words[0]);
    if (!value) return bad(number, "no value");
    series.value = *value;
    // As `run --metrics` and a backfill of Prometheus have them.
    if (!seen.insert({name, series.labels}).second)
      return bad(number, fmt::format("{} a second time: samples of several instants, of which one is wanted", name));
    out.series_.emplace(name, std::move(series));
  }
  return out;
}

double Samples::Sum(std::string_view name, std::string_view label, std::string_view value) const {
  double sum = 0;
  bool found = false;
  const auto [from, to] = series_.equal_range(name);
  for (auto it = from; it != to; ++it) {
    if (!label.empty()) {
      const auto at = it->second.labels.find(std::string(label));
      if (at == it->second.labels.end() || at->second != value) continue;
    }
    if (!std::isfinite(it->second.value)) continue;
    sum += it->second.value;
    found = true;
  }
  return found ? sum : -1;
}

void Samples::ForEach(
    std::string_view name,
    const std::function<void(const std::map<std::string, std::string>& labels, double value)>& then) const {
  const auto [from, to] = series_.equal_range(name);
  for (auto it = from; it != to; ++it) then(it->second.labels, it->second.value);
}

bool Samples::Has(std::string_view name) const { return series_.find(name) != series_.end(); }

std::string Samples::LabelOf(std::string_view name, const std::string& label) const {
  const auto it = series_.find(name);
  if (it == series_.end()) return "";
  const auto at = it->second.labels.find(label);
  return at == it->second.labels.end() ? "" : at->second;
}

}  // namespace wavetank::capacity
