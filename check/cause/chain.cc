#include "check/cause/chain.h"

#include <algorithm>
#include <optional>
#include <utility>

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

// Walks back from events[from]: of each stage the last event that has a cause in common with it, of the one istiod that
// it came from.
class Walk {
 public:
  // `about`: the host whose endpoints are asked for; empty: anything.
  Walk(const Story& story, const std::vector<LoggedEvent>& events, size_t from, std::string about = {})
      : story_(story), events_(events), target_(events[from]), about_(std::move(about)), causes_(target_.inputs) {
    at_ = from;
    of_proxy_ = target_.kind >= TraceKind::kXdsSent && target_.kind <= TraceKind::kXdsNack;
    istiod_ = target_.subject;
    if (!of_proxy_) return;
    for (size_t i = from; i-- > 0;) {
      if (events_[i].kind != TraceKind::kXdsConnected || events_[i].subject != target_.subject) continue;
      if (events_[i].object.empty()) continue;  // what the proxy itself says of it
      istiod_ = events_[i].object;
      connected_ = i;
      break;
    }
  }

  Chain Back() {
    using enum TraceKind;
    out_.hops.push_back({target_.time, Words(target_), {}});
    for (const TraceKind kind : {kXdsReceived, kXdsSent, kPushDequeued, kPushQueued}) {
      const bool is_xds = kind == kXdsReceived || kind == kXdsSent;
      if (!of_proxy_) break;
      if (kind == target_.kind) continue;  // the response itself, not the one before it
      Step([&](size_t i) {
        const LoggedEvent& event = events_[i];
        if (event.kind != kind || event.subject != target_.subject || !Shares(event.inputs, causes_)) return false;
        return is_xds ? event.object == target_.object : i > connected_;
      });
    }
    // What was sent because the proxy asked for it, or was pushed for another reason, had been there already: no push
    // lies between.
    if (const std::optional<size_t> before = UpdateOfBefore()) {
      Take(*before);
      causes_ = events_[*before].inputs;
    } else {
      const auto of_istiod = [&](size_t i, TraceKind kind) {
        return events_[i].kind == kind && events_[i].subject == istiod_ && Shares(events_[i].inputs, causes_);
      };
      if (target_.kind != kPushContextReady) Step([&](size_t i) { return of_istiod(i, kPushContextReady); });
      Step([&](size_t i) { return of_istiod(i, kDebounced); });
      const bool of_host =
          !about_.empty() && Step([&](size_t i) { return of_istiod(i, kConfigUpdate) && IsAbout(events_[i]); });
      if (!of_host) Step([&](size_t i) { return of_istiod(i, kConfigUpdate) && MayConcern(events_[i]); });
    }
    Step([&](size_t i) {
      const TraceKind kind = events_[i].kind;
      return (kind == kGatewaysChanged || kind == kClusterAdded || kind == kClusterRemoved ||
              kind == kClusterRejected) &&
             Shares(events_[i].inputs, causes_);
    });
    ToTheObject();
    Inputs();
    return std::move(out_);
  }

 private:
  void Take(size_t i) {
    const LoggedEvent& event = events_[i];
    out_.hops.push_back({event.time, Words(event), {}});
    // What was debounced together has many causes; once a stage is of fewer, they lead on.
    if (!event.inputs.empty() && event.inputs.size() < causes_.size()) causes_ = event.inputs;
    at_ = i;
  }
  // The last event before the one that was taken for which `is`; false: there is none.
  template <typename Is>
  bool Step(const Is& is) {
    for (size_t i = at_; i-- > 0;) {
      if (!is(i)) continue;
      Take(i);
      return true;
    }
    return false;
  }

  bool IsAbout(const LoggedEvent& event) const { return event.object.ends_with("/" + about_); }
  // Other hosts' services and endpoints change nothing of it; gateways and configuration may, and are full.
  bool MayConcern(const LoggedEvent& event) const {
    return about_.empty() || IsAbout(event) || (event.a == 1 && !event.object.starts_with("ServiceEntry/"));
  }

  // Where no change that led to this push can have changed endpoints of the host: the last one that did.
  std::optional<size_t> UpdateOfBefore() const {
    if (about_.empty()) return std::nullopt;
    std::optional<size_t> found;
    for (size_t i = at_; i-- > 0;) {
      const LoggedEvent& event = events_[i];
      if (event.kind != TraceKind::kConfigUpdate || event.subject != istiod_) continue;
      if (Shares(event.inputs, causes_) && MayConcern(event)) return std::nullopt;
      if (!found && IsAbout(event)) found = i;
    }
    return found;
  }

  // Through the registry and the watch to what was written: the same object, and of it the same version.
  void ToTheObject() {
    using enum TraceKind;
    const auto shares = [&](size_t i, TraceKind kind) {
      return events_[i].kind == kind && Shares(events_[i].inputs, causes_);
    };
    const bool handled = Step([&](size_t i) { return shares(i, kRegistryEvent); });
    const std::string object = handled ? events_[at_].object : std::string();
    const auto told = [&](size_t i) {
      return shares(i, kWatchDelivered) && events_[i].subject.starts_with(istiod_ + "->");
    };
    const bool watched =
        (handled && Step([&](size_t i) { return told(i) && events_[i].object == object; })) || Step(told);
    const auto written = [&](size_t i) { return shares(i, kObjectApplied) || shares(i, kObjectDeleted); };
    if (!watched) {
      Step(written);
      return;
    }
    const LoggedEvent& delivered = events_[at_];
    const bool same = Step(
        [&](size_t i) { return written(i) && events_[i].object == delivered.object && events_[i].a == delivered.a; });
    if (!same) Step(written);
  }

  void Inputs() {
    for (size_t i = causes_.size(); i-- > 0;) {
      if (causes_[i] >= story_.inputs.size()) continue;
      const replay::LogInput& input = story_.inputs[causes_[i]];
      out_.hops.push_back({input.at, replay::Describe(input, story_.header.Beginning()), causes_[i]});
    }
    // Gathered from the end: of one instant the input comes first.
    std::reverse(out_.hops.begin(), out_.hops.end());
    std::stable_sort(out_.hops.begin(), out_.hops.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  }

  const Story& story_;
  const std::vector<LoggedEvent>& events_;
  const LoggedEvent& target_;
  const std::string about_;
  std::vector<uint64_t> causes_;
  std::string istiod_;
  bool of_proxy_ = false;
  size_t connected_ = 0, at_ = 0;
  Chain out_;
};

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
    if (event.a == number) out.push_back(Walk(story, trace->events, i).Back());
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
    if (trace->events[i].kind == TraceKind::kXdsNack && ++found == number) return Walk(story, trace->events, i).Back();
  }
  return absl::NotFoundError(fmt::format(
      "{}: {} responses were refused, and there is no number {}; they are counted from 1", story.path, found, number));
}

absl::StatusOr<Chain> ChainOfEndpoint(const Story& story, const std::string& address, const std::string& proxy,
                                      Time at) {
  struct Turn {
    size_t events = 0;
    std::string proxy, what, host;
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
        turns.push_back({so_far.events.size(), name,
                         fmt::format("{} {} {}", is ? "gets" : "loses", address, now.cluster),
                         now.cluster.substr(now.cluster.rfind('|') + 1)});
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
      Chain chain = Walk(story, trace->events, e, turns[i].host).Back();
      chain.hops.push_back({event.time, fmt::format("{} {}", *found, turns[i].what), {}});
      return chain;
    }
  }
  return absl::NotFoundError(fmt::format(
      "{}: {} was not sent {} until then; `wavetank state --proxy` shows what it holds", story.path, *found, address));
}

}  // namespace wavetank::check
