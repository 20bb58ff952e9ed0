#include "import/metrics/samples.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;

bool IsNameByte(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' || (!first && c >= '0' && c <= '9');
}

bool ReadNumber(std::string_view text, double& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// Seconds since 1970, of years that nanoseconds can hold.
WallNs FromSeconds(double seconds) {
  if (!std::isfinite(seconds) || std::abs(seconds) > 9e9) return kNoTime;
  return std::llround(seconds * 1e6) * 1000;
}

// One line of text: `name{label="value",...} 17 1700000000000`. Prometheus: Exposition formats.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  bool Read(Sample& out) {
    out.metric = Name();
    if (out.metric.empty()) return false;
    if (Take('{')) {
      while (!Take('}')) {
        const std::string label = Name();
        if (label.empty() || !Take('=') || !Take('"')) return false;
        std::string value;
        if (!Quoted(value)) return false;
        out.labels[label] = std::move(value);
        if (!Take(',') && !rest_.starts_with('}')) return false;
      }
    }
    const std::string_view value = Word(), stamp = Word();
    if (!ReadNumber(value, out.value)) return false;
    // An exemplar of OpenMetrics may follow.
    if (stamp.empty() || stamp == "#") return true;
    double at = 0;
    if (!ReadNumber(stamp, at)) return false;
    // Prometheus writes milliseconds, OpenMetrics seconds; no instant that both could mean lies after 1973.
    constexpr double kLeastMilliseconds = 1e11;
    out.at = FromSeconds(std::abs(at) >= kLeastMilliseconds ? at / 1e3 : at);
    return out.at != kNoTime;
  }

 private:
  void Spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  std::string Name() {
    Spaces();
    size_t n = 0;
    while (n < rest_.size() && IsNameByte(rest_[n], n == 0)) ++n;
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  bool Take(char c) {
    Spaces();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool Quoted(std::string& out) {
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c != '\\' || rest_.empty()) {
        out += c;
        continue;
      }
      out += rest_.front() == 'n' ? '\n' : rest_.front();
      rest_.remove_prefix(1);
    }
    return false;
  }
  std::string_view Word() {
    Spaces();
    const size_t n = std::min(rest_.find_first_of(" \t\r"), rest_.size());
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }

  std::string_view rest_;
};

class Reader {
 public:
  Reader(const std::string& file, Refusals& refusals, const std::function<void(Sample&&)>& each)
      : file_(file), refusals_(refusals), each_(each) {}

  void TextLines(std::string_view text) {
    uint64_t number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
      if (line.empty() || line.front() == '#') continue;
      Sample sample;
      sample.line = number;
      if (!LineReader(line).Read(sample)) {
        refusals_.Add("line of no known form", {file_, number}, line);
      } else {
        Give(std::move(sample));
      }
    }
  }

  // Prometheus: HTTP API, "Expression query result formats".
  void Query(std::string_view text) {
    const json answer = ParseJson(text);
    if (answer.is_discarded()) return refusals_.Add("answer of Prometheus that is no whole JSON", {file_, 1});
    const json& data = At(answer, "data");
    if (wavetank::Text(answer, "status") != "success") {
      return refusals_.Add("query that Prometheus did not answer", {file_, 1}, wavetank::Text(answer, "error"));
    }
    for (const json& series : Items(At(data, "result"))) {
      Sample sample;
      sample.line = 1;
      for (const auto& [name, value] : At(series, "metric").items()) {
        if (name == "__name__") {
          sample.metric = TextOf(value);
        } else {
          sample.labels[name] = TextOf(value);
        }
      }
      if (sample.metric.empty()) {
        refusals_.Add("series without a metric's name: query it without a function around it", {file_, 1});
        continue;
      }
      for (const json& pair : Items(At(series, "values"))) Pair(sample, pair);
      if (const json& pair = At(series, "value"); !pair.is_null()) Pair(sample, pair);
    }
  }

 private:
  void Pair(const Sample& series, const json& pair) {
    Sample sample = series;
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !ReadNumber(TextOf(pair[1]), sample.value)) {
      return refusals_.Add("sample of no known form", {file_, 1});
    }
    sample.at = FromSeconds(pair[0].get<double>());
    if (sample.at == kNoTime) return refusals_.Add("sample of no known time", {file_, 1});
    Give(std::move(sample));
  }

  void Give(Sample&& sample) {
    if (!std::isfinite(sample.value)) {
      return refusals_.Add("sample that is no finite number", {file_, sample.line}, sample.metric);
    }
    each_(std::move(sample));
  }

  const std::string& file_;
  Refusals& refusals_;
  const std::function<void(Sample&&)>& each_;
};

}  // namespace

MetricsFile KindOfMetricsFile(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos) return MetricsFile::kNone;
  head.remove_prefix(first);
  if (head.front() == '{') {
    const std::string_view start = head.substr(0, 200);
    const auto has = [&](std::string_view key) { return start.find(key) != start.npos; };
    const bool failed = has("\"status\"") && has("\"errorType\"") && has("\"error\"");
    return failed || (has("\"resultType\"") && has("\"data\"")) ? MetricsFile::kQuery : MetricsFile::kNone;
  }
  // Two lines that say so: one alone may be a remark of a shell.
  size_t lines = 0;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    if (end == head.npos) break;
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 1);
    Sample sample;
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ") || line.starts_with("# UNIT "))
      return MetricsFile::kText;
    if (line.empty() || line.front() == '#') continue;
    if (!LineReader(line).Read(sample)) return MetricsFile::kNone;
    if (++lines == 2) return MetricsFile::kText;
  }
  return MetricsFile::kNone;
}

void ReadSamples(MetricsFile kind, std::string_view text, const std::string& file, Refusals& refusals,
                 const std::function<void(Sample&& sample)>& each) {
  Reader reader(file, refusals, each);
  switch (kind) {
    case MetricsFile::kText:
      return reader.TextLines(text);
    case MetricsFile::kQuery:
      return reader.Query(text);
    case MetricsFile::kNone:
      return;
  }
}

}  // namespace wavetank::importing
