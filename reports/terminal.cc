#include <fmt/format.h>

#include <algorithm>

#include "reports/report.h"
#include "scenarios/yaml_reader.h"

namespace wavetank::report {
namespace {

using scenario::FormatDuration;

class Palette {
 public:
  explicit Palette(bool on) : on_(on) {}
  std::string Bold(std::string_view s) const { return Wrap("1", s); }
  std::string Dim(std::string_view s) const { return Wrap("2", s); }
  std::string Good(std::string_view s) const { return Wrap("32", s); }
  std::string Bad(std::string_view s) const { return Wrap("1;31", s); }

 private:
  std::string Wrap(std::string_view code, std::string_view s) const {
    return on_ ? fmt::format("\033[{}m{}\033[0m", code, s) : std::string(s);
  }
  bool on_;
};

std::string Shares(const std::map<std::string, int64_t>& counts) {
  int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  std::string out;
  for (const auto& [name, count] : counts) {
    out += fmt::format("{}{} {:.1f} %", out.empty() ? "" : ", ", name.empty() ? "(unlabelled)" : name,
                       100.0 * static_cast<double>(count) / static_cast<double>(sum));
  }
  return out.empty() ? "nobody answered" : out;
}

std::string Flags(const scenario::TrafficResult& t) {
  std::string out;
  for (const auto& [flags, count] : t.by_flags) {
    if (flags == "-" || flags.empty()) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, flags);
  }
  return out;
}

}  // namespace

std::string TerminalTables(const scenario::RunResult& result, const TerminalOptions& options) {
  const Palette p(options.colour);
  std::string out = fmt::format("{}  {}\n", p.Bold(result.scenario),
                                p.Dim(fmt::format("seed {}, profile {}", result.seed, result.profile)));
  size_t held = 0, judged = 0;
  for (const auto& step : result.steps) {
    out += fmt::format("\n{}  {}\n", p.Bold(step.name),
                       p.Dim(fmt::format("at {}", FormatDuration(step.start.time_since_epoch()))));
    for (const std::string& action : step.actions) out += fmt::format("  do        {}\n", action);
    const auto& c = step.convergence;
    if (!step.actions.empty()) {
      if (c.connected < 0) {
        out += "  converged was not measured\n";
      } else if (c.proxies.empty()) {
        out += fmt::format("  converged no proxy was sent anything ({} connected)\n", c.connected);
      } else {
        const auto& last = c.proxies.front();
        out += fmt::format("  converged in {} ({} proxies were sent something, {} are connected; last {})\n",
                           p.Bold(FormatDuration(last.total)), c.proxies.size(), c.connected, last.proxy);
        const size_t rows = options.verbose ? c.proxies.size() : 1;
        for (size_t r = 0; r < rows; ++r) {
          std::string stages;
          for (int i = 0; i < scenario::kStages; ++i) {
            stages += fmt::format("{}{} {}", i == 0 ? "" : ", ", scenario::StageName(static_cast<scenario::Stage>(i)),
                                  FormatDuration(c.proxies[r].stages[static_cast<size_t>(i)]));
          }
          out += fmt::format("            {}{}\n", options.verbose ? c.proxies[r].proxy + ": " : "", p.Dim(stages));
        }
      }
    }
    for (const auto& t : step.traffic) {
      const std::string flags = Flags(t);
      out += fmt::format("  {:<9} {:<14} {:>6} sent  {}  {}  p50 {}, p99 {}{}\n", t.meanwhile ? "meanwhile" : "then",
                         t.flow, t.sent, Shares(t.by_version),
                         t.failed == 0 ? std::string("none failed") : p.Bad(fmt::format("{} failed", t.failed)),
                         FormatDuration(t.p50), FormatDuration(t.p99), flags.empty() ? "" : "  [" + flags + "]");
    }
    for (const auto& e : step.expectations) {
      ++judged;
      held += e.held ? 1 : 0;
      out += fmt::format("  {} {}\n", e.held ? p.Good("held     ") : p.Bad("NOT HELD "), e.text);
      if (!e.held || options.verbose) {
        out += fmt::format("            {}{}\n", e.explanation,
                           e.held ? "" : fmt::format("  ({}:{})", result.file, e.line));
      }
    }
    for (const std::string& note : step.notes) out += fmt::format("  note      {}\n", note);
  }
  out += fmt::format("\n{}  {} of {} expectations held, {} virtual, {} events, digest {}\n",
                     result.Passed() ? p.Good("PASSED") : p.Bad("FAILED"), held, judged,
                     FormatDuration(result.end.time_since_epoch()), result.trace_records, result.digest);
  return out;
}

}  // namespace wavetank::report
