#include "check/cause/chain.h"

#include <algorithm>
#include <initializer_list>

#include "core/base/status.h"
#include "core/base/trace_names.h"
#include "fmt/format.h"
#include "replay/recorder.h"
#include "scenarios/answers/pod_names.h"
#include "sim/invariants/held.h"
#include "sim/world.h"

namespace wavetank::check {
namespace {

using replay::LoggedEvent;

// The control plane's events of the story, made again: a recording holds none.
struct Trace {
  std::unique_ptr<sim::World> world;
  std::vector<LoggedEvent> events;
};

absl::StatusOr<Trace> Make(const Story& story, Time until, const std::function<void(sim::World&, Trace&)>& watch) {
  absl::StatusOr<std::unique_ptr<sim::World>> world = Begin(story);
  if (!world.ok()) return world.status();
  Trace out;
  out.world = *std::move(world);
  sim::Kernel& kernel = out.world->kernel();
  kernel.AddObserver([&](const sim::TraceEvent& event) {
    if (event.record.kind < TraceKind::kRequest) out.events.push_back(replay::Logged(kernel, event));
  });
  if (watch) watch(*out.world, out);
  for (const replay::LogInput& input : story.inputs) {
    if (input.at > until) break;
    out.world->RunUntil(input.at);
    if (absl::Status status = DoAgain(*out.world, input); !status.ok()) return status;
  }
  out.world->RunUntil(until);
  return out;
}

bool Shares(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](uint64_t each) { return std::binary_search(b.begin(), b.end(), each); });
}

std::string Words(const LoggedEvent& event) {
  std::string out = TraceKindName(event.kind) + " " + event.subject;
  if (!event.object.empty()) out += " -> " + event.object;
  out += TraceNumbers(event.kind, event.a, event.b);
  if (!event.detail.empty()) out += " \"" + event.detail.substr(0, 120) + "\"";
  return out;
}

// Walks back from events[from]: of each stage the last event that has a cause in common with it.
Chain WalkBack(const Story& story, const std::vector<LoggedEvent>& events, size_t from) {
  using enum TraceKind;
  static const std::initializer_list<TraceKind> kStages[] = {
      {kXdsReceived},
      {kXdsSent},
      {kPushDequeued},
      {kPushQueued},
      {kPushContextReady},
      {kDebounced},
      {kConfigUpdate},
      {kGatewaysChanged, kClusterAdded, kClusterRemoved, kClusterRejected},
      {kRegistryEvent},
      {kWatchDelivered},
      {kObjectApplied, kObjectDeleted}};
  const LoggedEvent& target = events[from];
  Chain out;
  out.hops.push_back({target.time, Words(target), {}});
  const bool of_proxy = target.kind >= kXdsSent && target.kind <= kXdsNack;
  // What was debounced together has many causes; once a stage is of fewer, they lead on.
  std::vector<uint64_t> causes = target.inputs;
  size_t at = from;
  for (const auto& stage : kStages) {
    const bool per_proxy = std::any_of(stage.begin(), stage.end(), [](TraceKind kind) {
      return kind == kPushQueued || kind == kPushDequeued || (kind >= kXdsSent && kind <= kXdsReceived);
    });
    if (per_proxy && !of_proxy) continue;
    for (size_t i = at; i-- > 0;) {
      const LoggedEvent& event = events[i];
      if (std::find(stage.begin(), stage.end(), event.kind) == stage.end() || !Shares(event.inputs, causes)) continue;
      if (per_proxy && event.subject != target.subject) continue;
      if (event.kind >= kXdsSent && event.kind <= kXdsReceived && event.object != target.object) continue;
      out.hops.push_back({event.time, Words(event), {}});
      if (!event.inputs.empty() && event.inputs.size() < causes.size()) causes = event.inputs;
      at = i;
      break;
    }
  }
  for (size_t i = causes.size(); i-- > 0;) {
    if (causes[i] >= story.inputs.size()) continue;
    const replay::LogInput& input = story.inputs[causes[i]];
    out.hops.push_back({input.at, replay::Describe(input, story.header.Beginning()), causes[i]});
  }
  // Gathered from the end: of one instant the input comes first.
  std::reverse(out.hops.begin(), out.hops.end());
  std::stable_sort(out.hops.begin(), out.hops.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return out;
}

}  // namespace

absl::StatusOr<std::vector<Chain>> ChainsOfPush(const Story& story, int64_t number) {
  const absl::StatusOr<Trace> trace = Make(story, story.end, nullptr);
  if (!trace.ok()) return trace.status();
  std::vector<Chain> out;
  int64_t most = 0;
  for (size_t i = 0; i < trace->events.size(); ++i) {
    const LoggedEvent& event = trace->events[i];
    if (event.kind != TraceKind::kPushContextReady) continue;
    most = std::max(most, event.a);
    if (event.a == number) out.push_back(WalkBack(story, trace->events, i));
  }
  if (!out.empty()) return out;
  return absl::NotFoundError(
      fmt::format("{}: no istiod made a push {}; they are numbered 1 to {}", story.path, number, most));
}

absl::StatusOr<Chain> ChainOfNack(const Story& story, int64_t number) {
  const absl::StatusOr<Trace> trace = Make(story, story.end, nullptr);
  if (!trace.ok()) return trace.status();
  int64_t found = 0;
  for (size_t i = 0; i < trace->events.size(); ++i) {
    if (trace->events[i].kind == TraceKind::kXdsNack && ++found == number) return WalkBack(story, trace->events, i);
  }
  return absl::NotFoundError(fmt::format(
      "{}: {} responses were refused, and there is no number {}; they are counted from 1", story.path, found, number));
}

absl::StatusOr<Chain> ChainOfEndpoint(const Story& story, const std::string& address, const std::string& proxy,
                                      Time at) {
  struct Turn {
    size_t events = 0;
    std::string proxy, what;
  };
  std::vector<Turn> turns;
  const bool with_port = address.find(':') != std::string::npos;
  const auto holds = [&](const sim::Assignment& assignment) {
    return std::any_of(assignment.endpoints.begin(), assignment.endpoints.end(), [&](const auto& e) {
      return (with_port ? e.address.ToString() : e.address.ip.ToString()) == address;
    });
  };
  sim::Held held;
  Subscriptions responses;
  const absl::StatusOr<Trace> trace = Make(story, at, [&](sim::World& world, Trace& so_far) {
    const auto note = [&](const std::string& name, const sim::Assignment& now, const sim::Assignment* before) {
      const bool is = holds(now), was = before != nullptr && holds(*before);
      if (is != was)
        turns.push_back(
            {so_far.events.size(), name, fmt::format("{} {} {}", is ? "gets" : "loses", address, now.cluster)});
    };
    responses = world.commons().OnEitherXds(
        [&held, note](const std::string& name, const auto& response) { held.Apply(name, response, note); });
  });
  if (!trace.ok()) return trace.status();
  std::vector<scenario::PodName> names;
  for (const auto& [name, what] : held.proxies()) names.push_back(scenario::PodNameOf(name));
  for (scenario::PodName& name : names) {
    if (const sim::PodProcess* const pod = trace->world->FindPod(name.Full())) name = scenario::PodNameOf(*pod);
  }
  const absl::StatusOr<std::string> found =
      scenario::FindOnePod("proxy that was sent anything", proxy, names, *trace->world);
  if (!found.ok()) return found.status();
  for (size_t i = turns.size(); i-- > 0;) {
    if (turns[i].proxy != *found) continue;
    // The response is told before the proxy's own event of it.
    for (size_t e = turns[i].events; e < trace->events.size(); ++e) {
      const LoggedEvent& event = trace->events[e];
      if (event.kind != TraceKind::kXdsReceived || event.subject != *found || event.object != "EDS") continue;
      Chain chain = WalkBack(story, trace->events, e);
      chain.hops.push_back({event.time, fmt::format("{} {}", *found, turns[i].what), {}});
      return chain;
    }
  }
  return absl::NotFoundError(fmt::format(
      "{}: {} was not sent {} until then; `wavetank state --proxy` shows what it holds", story.path, *found, address));
}

}  // namespace wavetank::check
