#include "scenarios/library/cause.h"

#include <algorithm>
#include <map>

#include "core/base/duration.h"
#include "fmt/format.h"
#include "scenarios/answers/endpoint_oddities.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

// The most frequent failure of the steps' traffic.
std::string WorstFailure(const RunResult& result, const std::set<std::string>& steps) {
  const TrafficResult::Failure* worst = nullptr;
  int64_t sent = 0;
  for (const StepResult& step : result.steps) {
    if (!steps.contains(step.name)) continue;
    for (const TrafficResult& t : step.traffic) {
      for (const TrafficResult::Failure& failure : t.failures) {
        if (worst != nullptr && failure.count <= worst->count) continue;
        worst = &failure;
        sent = t.sent;
      }
    }
  }
  if (worst == nullptr) return "";
  return fmt::format("{} {} {} requests failed: {}{}", worst->count, worst->retried ? "tries of" : "of", sent,
                     worst->upstream.empty() ? "" : worst->upstream + ": ", worst->cause);
}

std::string Ejected(const RunResult& result, const std::set<std::string>& steps) {
  for (const StepResult& step : result.steps) {
    if (steps.contains(step.name) && !step.ejected.empty())
      return fmt::format("{} ejected {}", step.ejected.front().proxy, step.ejected.front().host);
  }
  return "";
}

// The way with the most gateways, where it has more than one.
std::string LongWay(const RunResult& result, const std::set<std::string>& steps) {
  const std::vector<std::string>* longest = nullptr;
  int64_t count = 0;
  for (const StepResult& step : result.steps) {
    if (!steps.contains(step.name)) continue;
    for (const TrafficResult& t : step.traffic) {
      for (const auto& [way, requests] : t.ways) {
        if (way.size() < 3 || (longest != nullptr && way.size() <= longest->size())) continue;
        longest = &way;
        count = requests;
      }
    }
  }
  if (longest == nullptr) return "";
  std::string out = fmt::format("{} requests pass {} gateways:", count, longest->size() - 1);
  for (const std::string& each : *longest) out += " " + each;
  return out;
}

// The slowest proxy of the steps, and the stage that took it longest.
std::string SlowStage(const RunResult& result, const std::set<std::string>& steps) {
  const ProxyConvergence* slowest = nullptr;
  for (const StepResult& step : result.steps) {
    if (!steps.contains(step.name) || step.convergence.proxies.empty()) continue;
    const ProxyConvergence& proxy = step.convergence.proxies.front();
    if (slowest == nullptr || proxy.total > slowest->total) slowest = &proxy;
  }
  if (slowest == nullptr) return "";
  const auto stage = std::max_element(slowest->stages.begin(), slowest->stages.end());
  return fmt::format("{} has it after {}, of which {} is {}", slowest->proxy, FormatDuration(slowest->total),
                     FormatDuration(*stage), StageName(static_cast<Stage>(stage - slowest->stages.begin())));
}

// Which pods answered.
std::string Answerers(const RunResult& result, const std::set<std::string>& steps) {
  std::map<std::string, int64_t> pods;
  int64_t sent = 0;
  for (const StepResult& step : result.steps) {
    if (!steps.contains(step.name)) continue;
    for (const TrafficResult& t : step.traffic) {
      for (const auto& [pod, count] : t.by_pod) pods[pod] += count;
      sent += t.sent;
    }
  }
  std::string out;
  for (const auto& [pod, count] : pods) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", pod, count);
  return out.empty() ? "" : fmt::format("{} requests were answered by {}", sent, out);
}

bool HasSymptoms(const Step& step) {
  return std::any_of(step.expectations.begin(), step.expectations.end(), [](const auto& e) { return e.symptom; });
}

}  // namespace

void CauseFinder::Add(sim::World& world, const Step& step, std::vector<std::string>* out) const {
  std::set<std::string> flows;
  for (const auto* traffic : {&step.then, &step.meanwhile}) {
    for (const Traffic& t : *traffic) flows.insert(t.flow);
  }
  if (flows.empty()) {
    for (const FlowSpec& flow : scenario_.flows) flows.insert(flow.name);
  }
  for (const std::string& name : flows) {
    const FlowSpec& flow = *scenario_.FindFlow(name);
    for (std::string& line :
         EndpointOddities(world, {flow.from_cluster, flow.from_namespace, flow.from_app, flow.host, flow.port})) {
      if (std::find(out->begin(), out->end(), line) == out->end()) out->push_back(std::move(line));
    }
  }
}

void CauseFinder::Glance(sim::World& world, std::string_view step) {
  if (world.Now() - glanced_ < kGlance) return;
  glanced_ = world.Now();
  for (const Step& each : scenario_.steps) {
    if (each.name == step && HasSymptoms(each)) Add(world, each, &passing_);
  }
}

void CauseFinder::Look(sim::World& world, const Step& step) {
  if (!HasSymptoms(step)) return;
  steps_.insert(step.name);
  Add(world, step, &oddities_);
}

std::string CauseFinder::Tell(const RunResult& result) const {
  const std::string failure = WorstFailure(result, steps_);
  if (!oddities_.empty()) return failure.empty() ? oddities_.front() : oddities_.front() + "; " + failure;
  for (const std::string& line : {Ejected(result, steps_), failure, LongWay(result, steps_)}) {
    if (!line.empty()) return line;
  }
  if (!passing_.empty()) return passing_.front() + " (for a while)";
  const std::string answered = Answerers(result, steps_);
  return answered.empty() ? SlowStage(result, steps_) : answered;
}

}  // namespace wavetank::scenario
