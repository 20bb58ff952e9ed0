#include "capacity/plan/slo.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/duration.h"
#include "scenarios/language/yaml_reader.h"

namespace wavetank::capacity {
namespace {

constexpr std::string_view kForms =
    "write 'convergence p99 <= 2s' (p50, p90, p99 or max), 'cpu <= 80%', 'memory <= 80%' or 'error 0'";

absl::Status Wrong(std::string_view term, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("--slo: '{}': {}; {}", term, what, kForms));
}

absl::Status ReadTerm(const std::string& term, Slo* out) {
  const std::vector<std::string> words = absl::StrSplit(term, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.empty()) return Wrong(term, "an empty term");
  if (words[0] == "error") {
    if (words.size() != 2 || words[1] != "0") return Wrong(term, "errors can only be asked to be 0");
    out->no_error = true;
    return absl::OkStatus();
  }
  if (words[0] == "convergence") {
    if (words.size() != 4 || words[2] != "<=") return Wrong(term, "a percentile, <= and a duration follow");
    static constexpr std::pair<std::string_view, int64_t> kPercentiles[] = {
        {"p50", 500'000}, {"p90", 900'000}, {"p99", 990'000}, {"max", 1'000'000}};
    bool known = false;
    for (const auto& [name, ppm] : kPercentiles) {
      if (words[1] != name) continue;
      out->convergence_ppm = ppm;
      known = true;
    }
    if (!known) return Wrong(term, fmt::format("'{}' is no percentile that is known", words[1]));
    const std::optional<Duration> limit = ParseDuration(words[3]);
    if (!limit || *limit <= Duration::zero()) return Wrong(term, fmt::format("'{}' is no duration", words[3]));
    out->limit = *limit;
    return absl::OkStatus();
  }
  if (words[0] == "cpu" || words[0] == "memory") {
    if (words.size() != 3 || words[1] != "<=") return Wrong(term, "<= and a share follow");
    const std::optional<int64_t> share = scenario::ParseShare(words[2]);
    if (!share || *share == 0) return Wrong(term, fmt::format("'{}' is no share of the limit", words[2]));
    (words[0] == "cpu" ? out->cpu_ppm : out->memory_ppm) = *share;
    return absl::OkStatus();
  }
  return Wrong(term, fmt::format("'{}' is nothing that can be asked for", words[0]));
}

}  // namespace

absl::StatusOr<Slo> ParseSlo(std::string_view text) {
  Slo out;
  std::set<std::string> asked;
  const std::vector<std::string> terms = absl::StrSplit(std::string(text), ',');
  for (const std::string& term : terms) {
    if (absl::Status status = ReadTerm(term, &out); !status.ok()) return status;
    const std::vector<std::string> words = absl::StrSplit(term, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (!asked.insert(words[0]).second) return Wrong(term, words[0] + " has a bound already, and has but one");
  }
  return out;
}

std::string Slo::Text() const {
  std::vector<std::string> terms;
  if (limit > Duration::zero()) {
    terms.push_back(fmt::format("convergence {} <= {}",
                                convergence_ppm == 1'000'000 ? "max" : fmt::format("p{}", convergence_ppm / 10'000),
                                FormatDuration(limit)));
  }
  if (cpu_ppm > 0) terms.push_back(fmt::format("cpu <= {} %", cpu_ppm / 10'000));
  if (memory_ppm > 0) terms.push_back(fmt::format("memory <= {} %", memory_ppm / 10'000));
  if (no_error) terms.emplace_back("error 0");
  return fmt::format("{}", fmt::join(terms, ", "));
}

}  // namespace wavetank::capacity
