#include "oracles/envoy/outcome.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "fmt/format.h"

namespace wavetank::envoydiff {
namespace {

void CompareLists(std::string_view what, const std::vector<std::string>& simulated,
                  const std::vector<std::string>& real, std::vector<std::string>* out) {
  if (simulated == real) return;
  out->push_back(
      fmt::format("{}: simulated [{}], real [{}]", what, absl::StrJoin(simulated, " "), absl::StrJoin(real, " ")));
}

void CompareLines(std::string_view path, std::vector<std::string> simulated, std::vector<std::string> real,
                  std::vector<std::string>* out) {
  // Requests that go on at the same time end in any order.
  std::sort(simulated.begin(), simulated.end());
  std::sort(real.begin(), real.end());
  if (simulated == real) return;
  const auto text = [](const std::vector<std::string>& lines) {
    return lines.empty() ? "\n        (nothing)" : "\n        " + absl::StrJoin(lines, "\n        ");
  };
  out->push_back(fmt::format("{}: simulated{}\n      real{}", path, text(simulated), text(real)));
}

// The words of a refusal without the parts that Envoy varies on purpose or that only repeat the resource: its debug
// text, and the way from the resource to the field at fault.
std::string Normalised(std::string text) {
  const size_t debug = text.find("goo.gle/debug");
  if (debug != std::string::npos) {
    const size_t verdict = text.find(": Proto constraint", debug);
    text = verdict == std::string::npos ? text.substr(0, debug) : text.substr(0, debug) + text.substr(verdict + 2);
  }
  constexpr std::string_view kFailed = "validation failed (";
  const size_t failed = text.find(kFailed);
  const size_t cause = text.rfind("caused by ");
  if (failed != std::string::npos && cause != std::string::npos && cause > failed) {
    text = text.substr(0, failed + kFailed.size()) + text.substr(cause + 10);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == ':')) text.pop_back();
  return text;
}

// Enough of them for a median that one slow answer of the real one does not move.
constexpr size_t kEnoughTimes = 5;
// A busy machine is late by as much.
constexpr double kLateness = 0.3;

double Median(const std::vector<RequestOutcome>& requests) {
  std::vector<double> seconds;
  for (const RequestOutcome& r : requests) seconds.push_back(r.seconds);
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void CompareTimes(size_t step, const std::vector<RequestOutcome>& simulated, const std::vector<RequestOutcome>& real,
                  std::vector<std::string>* out) {
  if (simulated.size() < kEnoughTimes || real.size() < kEnoughTimes) return;
  const double s = Median(simulated), r = Median(real);
  if (std::abs(s - r) <= kLateness + std::max(s, r) / 2) return;
  out->push_back(fmt::format("requests {}: half of them took {:.3f} s simulated, {:.3f} s real", step + 1, s, r));
}

void CompareCounts(const Case& c, size_t step, const std::vector<RequestOutcome>& simulated,
                   const std::vector<RequestOutcome>& real, std::vector<std::string>* out) {
  const double n = static_cast<double>(simulated.size());
  for (const bool with_body : {false, true}) {
    std::map<std::string, std::pair<int, int>> counts;
    for (const RequestOutcome& r : simulated) ++counts[r.Key(with_body)].first;
    for (const RequestOutcome& r : real) ++counts[r.Key(with_body)].second;
    const size_t before = out->size();
    for (const auto& [key, count] : counts) {
      const auto [s, r] = count;
      double tolerance = n > 1 && (with_body || c.counts_about) ? 1 : 0;
      if (c.statistical) {
        const double p = (s + r) / (2 * n);
        tolerance = 4.5 * std::sqrt(2 * n * p * (1 - p)) + 1;
      }
      if (std::abs(s - r) > tolerance) {
        out->push_back(fmt::format("requests {}: simulated {}, real {} of {}: {}", step + 1, s, r, n, key));
      }
    }
    if (out->size() > before) return;
  }
}

// Whether anything was seen that could have been otherwise.
bool Observed(const Outcome& outcome) {
  const auto told = [](const RequestOutcome& r) { return r.code != 0 || r.logged; };
  for (const auto& step : outcome.requests) {
    if (std::any_of(step.begin(), step.end(), told)) return true;
  }
  const auto refusal = [](const std::string& message) { return message.find(" error 13") != std::string::npos; };
  if (std::any_of(outcome.ads.begin(), outcome.ads.end(), refusal)) return true;
  if (std::any_of(outcome.stats.begin(), outcome.stats.end(), [](const auto& stat) { return stat.second > 0; })) {
    return true;
  }
  if (!outcome.logs.empty()) return true;
  return outcome.requests.empty() && (!outcome.clusters.empty() || !outcome.listeners.empty());
}

std::string WithoutError(const std::string& message) { return message.substr(0, message.find(" error 13") + 9); }

}  // namespace

std::string RequestOutcome::Key(bool with_body) const {
  std::string key = with_body ? fmt::format("{} '{}'", code, body) : fmt::format("{}", code);
  if (!headers.empty()) key += fmt::format(" {{{}}}", headers);
  if (!logged) return key;
  return key + fmt::format(" flags {} details {} route '{}' cluster '{}' tries {} failure '{}' chain '{}'", flags,
                           details, route, cluster, attempts, failure, filter_chain);
}

size_t StepsThatAgree(const Case& c, const Outcome& simulated, const Outcome& real) {
  for (size_t step = 0; step < simulated.requests.size(); ++step) {
    std::vector<std::string> differences;
    CompareCounts(c, step, simulated.requests[step], real.requests[step], &differences);
    CompareTimes(step, simulated.requests[step], real.requests[step], &differences);
    if (!differences.empty()) return step;
  }
  return simulated.requests.size();
}

std::vector<std::string> Compare(const Case& c, const Outcome& simulated, const Outcome& real) {
  std::vector<std::string> out;
  if (c.compare_ads) {
    const auto text = [&](const std::string& message) {
      if (message.find(" error 13") == std::string::npos) return message;
      return c.compare_errors ? Normalised(message) : WithoutError(message);
    };
    const size_t n = std::max(simulated.ads.size(), real.ads.size());
    for (size_t i = 0; i < n; ++i) {
      const std::string s = i < simulated.ads.size() ? text(simulated.ads[i]) : "(nothing)";
      const std::string r = i < real.ads.size() ? text(real.ads[i]) : "(nothing)";
      if (s == r) continue;
      out.push_back(fmt::format("ADS message {}:\n      simulated {}\n      real      {}", i + 1, s, r));
      break;  // what follows differs anyway
    }
  }
  for (size_t step = 0; step < simulated.requests.size(); ++step) {
    CompareCounts(c, step, simulated.requests[step], real.requests[step], &out);
    CompareTimes(step, simulated.requests[step], real.requests[step], &out);
  }
  CompareLists("clusters", simulated.clusters, real.clusters, &out);
  CompareLists("listeners", simulated.listeners, real.listeners, &out);
  CompareLists("routes", simulated.routes, real.routes, &out);
  CompareLists("endpoints", simulated.endpoints, real.endpoints, &out);
  for (const auto& [path, lines] : real.logs) {
    const auto at = simulated.logs.find(path);
    CompareLines(path, at == simulated.logs.end() ? std::vector<std::string>() : at->second, lines, &out);
  }
  for (const auto& [path, lines] : simulated.logs) {
    if (!real.logs.contains(path)) CompareLines(path, lines, {}, &out);
  }
  // Where both have refused every listener, none has counters.
  const bool nobody_listens = simulated.listeners.empty() && real.listeners.empty();
  for (const std::string& name : real.unknown_stats) {
    if (nobody_listens && name.starts_with("listener.")) continue;
    out.push_back(fmt::format("{}: the real one has no such counter", name));
  }
  if (c.answers && !Observed(simulated) && !Observed(real))
    out.emplace_back("nothing was seen that can differ: the case says nothing");
  for (const std::string& name : c.stats) {
    const uint64_t s = simulated.stats.at(name), r = real.stats.at(name);
    if (s != r) out.push_back(fmt::format("{}: simulated {}, real {}", name, s, r));
  }
  return out;
}

}  // namespace wavetank::envoydiff
