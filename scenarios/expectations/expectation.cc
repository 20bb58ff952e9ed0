#include "scenarios/expectations/expectation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/duration.h"

namespace wavetank::scenario {

void RegisterExpectations(std::vector<ExpectationKind>& table);  // made by CMake: every file here adds its rows

namespace {

// The flows that an expectation is about, added up into one.
struct Selected {
  TrafficResult sum;
  int flows = 0;
};

bool Concerns(const Expectation& e, const TrafficResult& t) {
  using Phase = Expectation::Phase;
  if (e.phase != Phase::kAll && t.meanwhile != (e.phase == Phase::kMeanwhile)) return false;
  if (!e.call.empty()) return t.flow.ends_with(" calls " + e.call);
  return e.flow.empty() || t.flow == e.flow;
}

Selected Select(const Expectation& e, const StepResult& step) {
  Selected out;
  for (const TrafficResult& t : e.call.empty() ? step.traffic : step.calls) {
    if (!Concerns(e, t)) continue;
    ++out.flows;
    out.sum.sent += t.sent;
    out.sum.failed += t.failed;
    out.sum.retried += t.retried;
    out.sum.attempts += t.attempts;
    out.sum.client_attempts += t.client_attempts;
    out.sum.remote += t.remote;
    out.sum.mtls_verified += t.mtls_verified;
    const auto add = [](auto& into, const auto& from) {
      for (const auto& [key, count] : from) into[key] += count;
    };
    add(out.sum.by_version, t.by_version);
    add(out.sum.by_cluster, t.by_cluster);
    add(out.sum.by_pod, t.by_pod);
    add(out.sum.by_flags, t.by_flags);
    add(out.sum.by_code, t.by_code);
    add(out.sum.remote_hops, t.remote_hops);
    add(out.sum.local_hops, t.local_hops);
    add(out.sum.gateway_snis, t.gateway_snis);
    out.sum.p50 = std::max(out.sum.p50, t.p50);
    out.sum.p99 = std::max(out.sum.p99, t.p99);
  }
  return out;
}

// Traffic that must be right always or eventually is judged second by second, each by the requests that ended in it.
ExpectationResult JudgeSeconds(const ExpectationKind& kind, const Expectation& e, const StepResult& step) {
  std::map<int64_t, TrafficResult::Second> seconds;
  for (const TrafficResult& t : step.traffic) {
    if (!Concerns(e, t)) continue;
    for (const auto& [number, second] : t.seconds) {
      TrafficResult::Second& into = seconds[number];
      into.sent += second.sent;
      into.failed += second.failed;
      into.retried += second.retried;
      for (const auto& [name, count] : second.by_version) into.by_version[name] += count;
      for (const auto& [name, count] : second.by_cluster) into.by_cluster[name] += count;
      for (const auto& [name, count] : second.by_pod) into.by_pod[name] += count;
      into.latencies_ns.insert(into.latencies_ns.end(), second.latencies_ns.begin(), second.latencies_ns.end());
    }
  }
  const bool always = e.mode == "always";
  ExpectationResult r;
  int64_t looked = 0;
  for (auto& [number, second] : seconds) {
    if (!always && (number < 0 || std::chrono::seconds(number) >= e.within)) continue;
    ++looked;
    TrafficResult sum;
    sum.sent = second.sent;
    sum.failed = second.failed;
    sum.retried = second.retried;
    sum.by_version = std::move(second.by_version);
    sum.by_cluster = std::move(second.by_cluster);
    sum.by_pod = std::move(second.by_pod);
    std::vector<int64_t>& sorted = second.latencies_ns;
    std::sort(sorted.begin(), sorted.end());
    const auto percentile = [&sorted](size_t part) {
      return sorted.empty() ? Duration::zero() : Duration(sorted[(sorted.size() - 1) * part / 100]);
    };
    sum.p50 = percentile(50);
    sum.p99 = percentile(99);
    r = kind.judge_traffic(e, sum);
    r.explanation = number < 0 ? fmt::format("in the second that ended {} s before: {}", -number - 1, r.explanation)
                               : fmt::format("in the second from {} s on: {}", number, r.explanation);
    if (r.held != always) return r;
  }
  if (looked == 0) {
    r.explanation = always ? "no request ended in this step; add the flow to meanwhile or then"
                           : fmt::format("no request ended within {} of the change; add the flow to meanwhile or then",
                                         FormatDuration(e.within));
  } else if (always) {
    r.explanation = fmt::format("in each of {} seconds; last {}", looked, r.explanation);
  } else {
    r.explanation = fmt::format("in none of {} seconds; last {}", looked, r.explanation);
  }
  return r;
}

}  // namespace

std::string Percent(int64_t ppm) {
  std::string text = fmt::format("{:.4f}", static_cast<double>(ppm) / 1e4);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " %";
}

int64_t Ppm(int64_t part, int64_t whole) { return whole == 0 ? 0 : part * 1'000'000 / whole; }

std::string FlowsOf(const Expectation& e) {
  return fmt::format("{}{}",
                     !e.call.empty()  ? "calls to " + e.call
                     : e.flow.empty() ? "all flows"
                                      : e.flow,
                     e.phase == Expectation::Phase::kMeanwhile ? ", meanwhile" : "");
}

std::string DescribeRanges(const Expectation& e) {
  std::string out;
  for (const auto& [name, range] : e.ranges) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, range.text);
  return out;
}

void JudgeRange(const Expectation& e, const std::string& name, int64_t value, const std::string& shown,
                ExpectationResult* r) {
  const auto range = e.ranges.find(name);
  if (range == e.ranges.end()) return;
  const bool held = range->second.Holds(value);
  r->held = r->held && held;
  r->explanation += fmt::format("{}{} {}{}", r->explanation.empty() ? "" : ", ", shown, name,
                                held ? "" : fmt::format(" (expected {})", range->second.text));
}

std::vector<FieldRow> OfTraffic(std::vector<FieldRow> more) {
  std::vector<FieldRow> out = {
      row::Other("flow", FieldType::kFlow, "A flow's name; all flows of the step if left out"),
      row::Text("call", "Instead of flows: what applications call, host:port as they write it"),
      row::Choice("of", {"then", "meanwhile"},
                  "Which of the step's traffic is judged; the one after convergence if left out")};
  for (FieldRow& field : more) out.push_back(std::move(field));
  return out;
}

const std::vector<ExpectationKind>& Expectations() {
  static const auto* const all = [] {
    auto* made = new std::vector<ExpectationKind>();
    RegisterExpectations(*made);
    std::sort(made->begin(), made->end(), [](const auto& a, const auto& b) { return a.row.name < b.row.name; });
    return made;
  }();
  return *all;
}

const ExpectationKind* FindExpectation(std::string_view name) {
  const auto& all = Expectations();
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& kind) { return kind.row.name == name; });
  return it == all.end() ? nullptr : &*it;
}

std::string Describe(const Expectation& e) {
  const ExpectationKind* kind = FindExpectation(e.kind);
  return (e.mode.empty() ? "" : e.mode + " ") + (kind == nullptr ? e.kind : kind->describe(e));
}

ExpectationResult Judge(const Expectation& e, const StepResult& step, const WorldView& world) {
  ExpectationResult r;
  const ExpectationKind* kind = FindExpectation(e.kind);
  if (kind == nullptr) {
    r.explanation = "no expectation has this name";
  } else if (kind->judge_step != nullptr) {
    r = kind->judge_step(e, step);
  } else if (kind->judge_world != nullptr) {
    r = kind->judge_world(e, world);
  } else if (!e.mode.empty()) {
    r = JudgeSeconds(*kind, e, step);
  } else if (const Selected s = Select(e, step); s.flows == 0 || s.sum.sent == 0) {
    r.explanation = e.call.empty() ? "no such request was sent in this step; add the flow to meanwhile or then"
                                   : "no application called it in this step; the action behaviour says who calls whom";
  } else {
    r = kind->judge_traffic(e, s.sum);
  }
  r.text = Describe(e);
  r.line = e.line;
  return r;
}

}  // namespace wavetank::scenario
