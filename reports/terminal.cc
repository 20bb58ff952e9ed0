#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/duration.h"
#include "reports/report.h"
#include "scenarios/results/nacks.h"

namespace wavetank::report {
namespace {

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
  return out.empty() ? "no answers" : out;
}

constexpr size_t kFailuresShown = 4;  // of one flow's phase, unless all are asked for
constexpr size_t kDeadPathsShown = 5;
constexpr size_t kNacksShown = 5;
constexpr size_t kViolationsShown = 12;

std::string At(Time time) { return FormatDuration(time.time_since_epoch()); }

// "404 NR", "UF", "no answer".
std::string Sign(const scenario::TrafficResult::Failure& f) {
  std::string out = f.code != 0 ? fmt::format("{}", f.code) : "";
  if (f.flags != "-" && !f.flags.empty()) out += (out.empty() ? "" : " ") + f.flags;
  return out.empty() ? "no answer" : out;
}

std::string FailureLine(const scenario::TrafficResult::Failure& f) {
  const std::string when =
      f.first == f.last ? fmt::format("at {}", At(f.first)) : fmt::format("{} to {}", At(f.first), At(f.last));
  return fmt::format("            {:<9} {} x {}{}: {}, {}\n", f.retried ? "retried" : "failed", f.count, Sign(f),
                     f.upstream.empty() ? "" : ", " + f.upstream, f.cause, when);
}

std::string TrafficLines(const scenario::TrafficResult& t, const Palette& p, bool verbose) {
  std::string out = fmt::format("  {:<9} {:<14} {:>6} sent  {}", t.meanwhile ? "meanwhile" : "then", t.flow, t.sent,
                                Shares(t.by_version));
  if (!t.by_cluster.empty()) out += fmt::format("  ({})", Shares(t.by_cluster));
  out += "  " + (t.failed == 0 ? std::string("none failed") : p.Bad(fmt::format("{} failed", t.failed)));
  if (t.retried > 0)
    out += p.Bad(fmt::format(", {} retried", t.retried)) + fmt::format(" ({} tries in all)", t.attempts);
  if (t.client_attempts > t.sent) out += p.Bad(fmt::format(", {} attempts of the clients", t.client_attempts));
  out += fmt::format("  p50 {}, p99 {}\n", FormatDuration(t.p50), FormatDuration(t.p99));
  const size_t shown = verbose ? t.failures.size() : std::min(t.failures.size(), kFailuresShown);
  for (size_t i = 0; i < shown; ++i) out += FailureLine(t.failures[i]);
  if (shown < t.failures.size()) {
    out += fmt::format("            and {} more kinds of failure (-v shows them)\n", t.failures.size() - shown);
  }
  return out;
}

// What a reader must not miss although every expectation may have held.
std::string Warnings(const scenario::RunResult& result, const Palette& p, bool verbose) {
  const std::vector<scenario::DeadPath> dead = scenario::DeadPaths(result);
  std::string out;
  for (const scenario::SilentFlow& flow : scenario::SilentFlows(result)) {
    out += fmt::format(
        "{}  {}: no pod of {} runs at any time, so none of its {} requests was sent; mend its `from`, or "
        "bring the application\n",
        p.Bad("NOBODY SENDS"), flow.flow, flow.client, flow.sent);
  }
  for (size_t i = 0; i < dead.size() && i < kDeadPathsShown; ++i) {
    const scenario::DeadPath& d = dead[i];
    out += fmt::format(
        "{}  {} to {}: {}; all {} tries failed since {}, {} of {} requests were retried, {} failed ({}{})\n",
        p.Bad("DEAD PATH"), d.flow, d.upstream, d.cause, d.tries, At(d.since), d.retried, d.sent, d.failed, d.step,
        d.meanwhile ? ", meanwhile" : "");
  }
  if (dead.size() > kDeadPathsShown)
    out += fmt::format("           and {} more dead paths\n", dead.size() - kDeadPathsShown);
  const size_t nacks = verbose ? result.nacks.size() : std::min(result.nacks.size(), kNacksShown);
  for (size_t i = 0; i < nacks; ++i) {
    out += fmt::format("{}  {}\n", p.Bad("NACK     "), Describe(result.nacks[i]));
  }
  if (result.nacks.size() > nacks)
    out += fmt::format("           and {} more refusals (-v shows them)\n", result.nacks.size() - nacks);
  return out;
}

// Breaches of one kind at one subject are one line.
std::string ViolationLines(const scenario::RunResult& result, const Palette& p) {
  if (result.invariants.empty()) return "";
  std::string out;
  size_t unknown = 0, shown = 0;
  std::map<std::pair<std::string, std::string>, size_t> by_subject;
  for (const sim::Violation& v : result.violations) {
    unknown += v.known.empty() ? 1 : 0;
    if (by_subject[{v.invariant, v.subject}]++ > 0 || ++shown > kViolationsShown) continue;
    std::string inputs;
    for (size_t i = 0; i < std::min<size_t>(v.inputs.size(), 4); ++i)
      inputs += fmt::format("{}{}", i == 0 ? "" : ", ", v.inputs[i]);
    if (v.inputs.size() > 4) inputs += ", ...";
    out += fmt::format("  {}  {}: {} {}; {}{}{}\n", At(v.at),
                       v.known.empty() ? p.Bad(v.invariant) : v.invariant + " (known: " + v.known + ")", v.subject,
                       v.what, v.until ? "until " + At(*v.until) : "still so at the end",
                       inputs.empty() ? "" : "; because of input ", inputs);
  }
  std::string head = fmt::format("{} invariants watched, ", result.invariants.size());
  if (result.violations.empty()) return head + "none broken\n";
  head += fmt::format("{} breaches of {} kinds", result.violations.size(), by_subject.size());
  if (unknown < result.violations.size())
    head += fmt::format(", {} of which {} is known for", result.violations.size() - unknown, result.profile);
  if (shown > kViolationsShown)
    out += fmt::format("  and {} more kinds (--json has all)\n", by_subject.size() - kViolationsShown);
  return p.Bad(head) + "\n" + out;
}

std::string Verdict(const scenario::RunResult& result, const Palette& p, size_t held, size_t judged) {
  const size_t dead = scenario::DeadPaths(result).size();
  std::string word = !result.error.empty() ? p.Bad("ENDED EARLY")
                     : result.Passed()     ? p.Good("PASSED")
                                           : p.Bad("FAILED");
  if (result.interrupted) word = p.Bad("INTERRUPTED");
  std::string out =
      fmt::format("\n{}  {} of {} expectations held, {} virtual, {} events, digest {}\n", word, held, judged,
                  FormatDuration(result.end.time_since_epoch()), result.trace_records, result.digest);
  if (dead > 0 && result.Passed()) {
    out += fmt::format("{}\n", p.Bad(fmt::format("although {} {} dead (named at the top)", dead,
                                                 dead == 1 ? "path is" : "paths are")));
  }
  if (result.nacks_between > 0 && result.error.empty()) {
    out += fmt::format("{} responses were refused by Envoys, which no step expects (named at the top)\n",
                       result.nacks_between);
  }
  out += ViolationLines(result, p);
  for (const std::string& proxy : result.unready) out += p.Bad("never ready: ") + proxy + "\n";
  for (const std::string& deed : result.mended) out += deed + "\n";
  for (const std::string& note : result.notes) out += "note: " + note + "\n";
  for (const auto& without : result.without_effect) out += "note: " + Describe(without) + "\n";
  if (!result.error.empty()) out += "the run ended here: " + result.error + "\n";
  return out;
}

}  // namespace

std::string TerminalTables(const scenario::RunResult& result, const TerminalOptions& options) {
  const Palette p(options.colour);
  std::string out = fmt::format("{}  {}\n", p.Bold(result.scenario),
                                p.Dim(fmt::format("seed {}, profile {}", result.seed, result.profile)));
  out += Warnings(result, p, options.verbose);
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
    for (const auto& t : step.traffic) out += TrafficLines(t, p, options.verbose);
    for (const auto& t : step.calls) out += TrafficLines(t, p, options.verbose);
    for (const auto& e : step.ejected) {
      out += fmt::format("  ejected   {} by {} ({})\n", e.host, e.proxy, e.cluster);
    }
    for (const auto& e : step.expectations) {
      // A symptom is there or not; whether it should be depends on the profile, and all of them are judged together.
      if (e.symptom) {
        out += fmt::format("  {} {}\n", e.held ? "shown    " : "not shown", e.text);
        if (options.verbose) out += fmt::format("            {}\n", e.explanation);
        continue;
      }
      ++judged;
      held += e.held ? 1 : 0;
      out += fmt::format("  {} {}\n", e.held ? p.Good("held     ") : p.Bad("NOT HELD "), e.text);
      if (!e.held || options.verbose) {
        out += fmt::format("            {}{}\n", e.explanation,
                           e.held ? "" : fmt::format("  ({}:{})", result.file, e.line));
      }
    }
    for (const std::string& note : step.notes) out += fmt::format("  note      {}\n", note);
    if (!step.cut.empty()) {
      out += fmt::format("  cut       {}; {} expectations were not judged\n", step.cut, step.not_judged);
    }
  }
  return out + Verdict(result, p, held, judged);
}

}  // namespace wavetank::report
