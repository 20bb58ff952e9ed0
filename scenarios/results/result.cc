#include "scenarios/results/result.h"

#include <algorithm>
#include <set>

namespace wavetank::scenario {

std::string_view StageName(Stage stage) {
  switch (stage) {
    case Stage::kKubernetes:
      return "Kubernetes";
    case Stage::kWatch:
      return "API server watch";
    case Stage::kQueue:
      return "istiod queue";
    case Stage::kDebounce:
      return "debounce";
    case Stage::kPushQueue:
      return "push queue";
    case Stage::kGeneration:
      return "generation";
    case Stage::kNetwork:
      return "network";
    case Stage::kApply:
      return "Envoy apply";
  }
  return "";
}

bool RunResult::Shown() const {
  bool any = false;
  for (const StepResult& step : steps) {
    for (const ExpectationResult& e : step.expectations) {
      if (e.symptom && !e.held) return false;
      any = any || e.symptom;
    }
  }
  return any;
}

bool RunResult::Passed() const {
  if (!error.empty() || nacks_between > 0 || !unready.empty() || !SilentFlows(*this).empty()) return false;
  // What the simulated release is known to do wrong is shown, and is no surprise.
  for (const sim::Violation& v : violations) {
    if (v.known.empty()) return false;
  }
  bool symptoms = false;
  for (const StepResult& step : steps) {
    for (const ExpectationResult& e : step.expectations) {
      if (!e.symptom && !e.held) return false;
      symptoms = symptoms || e.symptom;
    }
  }
  return !symptoms || Shown() == shown_expected.value_or(true);
}

RunResult SinceBeginning(RunResult result, Duration beginning) {
  result.end -= beginning;
  for (sim::Violation& v : result.violations) {
    v.at -= beginning;
    if (v.until) *v.until -= beginning;
  }
  for (StepResult& step : result.steps) {
    for (Time* time : {&step.start, &step.end, &step.convergence.event}) *time -= beginning;
    for (std::vector<TrafficResult>* all : {&step.traffic, &step.calls}) {
      for (TrafficResult& traffic : *all) {
        traffic.start -= beginning;
        traffic.end -= beginning;
        for (TrafficResult::Failure& failure : traffic.failures) {
          failure.first -= beginning;
          failure.last -= beginning;
        }
      }
    }
  }
  return result;
}

std::vector<SilentFlow> SilentFlows(const RunResult& result) {
  std::map<std::string, SilentFlow> flows;
  std::set<std::string> heard;
  for (const StepResult& step : result.steps) {
    if (step.name == kTrafficOfLog) continue;  // no flow of this run's
    for (const TrafficResult& t : step.traffic) {
      if (t.without_client < t.sent) heard.insert(t.flow);
      SilentFlow& flow = flows.try_emplace(t.flow, SilentFlow{t.flow, t.client, 0}).first->second;
      flow.sent += t.sent;
    }
  }
  std::vector<SilentFlow> out;
  for (auto& [name, flow] : flows) {
    if (flow.sent > 0 && !heard.contains(name)) out.push_back(std::move(flow));
  }
  return out;
}

std::vector<DeadPath> DeadPaths(const RunResult& result) {
  std::vector<DeadPath> out;
  for (const StepResult& step : result.steps) {
    std::vector<const TrafficResult*> all;
    for (const TrafficResult& t : step.traffic) all.push_back(&t);
    for (const TrafficResult& t : step.calls) all.push_back(&t);
    for (const TrafficResult* each : all) {
      const TrafficResult& t = *each;
      for (const auto& [name, upstream] : t.upstreams) {
        if (upstream.tries < kEnoughTries || upstream.failed < upstream.tries) continue;
        DeadPath path{t.flow, step.name, name, "", t.meanwhile, upstream.tries, t.retried, t.failed, t.sent, t.end};
        for (const TrafficResult::Failure& failure : t.failures) {
          if (failure.upstream != name) continue;
          if (path.cause.empty()) path.cause = failure.cause;
          path.since = std::min(path.since, failure.first);
        }
        out.push_back(std::move(path));
      }
      // Requests that found no way out of their pod: the name does not resolve.
      if (t.sent < kEnoughTries || t.failed < t.sent || !t.upstreams.empty()) continue;
      for (const TrafficResult::Failure& failure : t.failures) {
        if (failure.upstream.empty() && failure.code == 0 && failure.count == t.failed)
          out.push_back({t.flow, step.name, "any server", failure.cause, t.meanwhile, failure.count, t.retried,
                         t.failed, t.sent, failure.first});
      }
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const DeadPath& a, const DeadPath& b) { return a.tries > b.tries; });
  return out;
}

}  // namespace wavetank::scenario
