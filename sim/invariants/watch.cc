#include "sim/invariants/watch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/assert.h"
#include "fmt/format.h"
#include "sim/invariants/catalogue.h"
#include "sim/world.h"

namespace wavetank::sim {
namespace {

constexpr Duration kQuiet = 1s, kTick = 5s;

}  // namespace

void Checker::OnAssignment(const std::string&, const Assignment&, const Assignment*) {}
void Checker::Tell(const std::string& scope, std::vector<Breach> breaches, Duration patience) {
  watch_->Tell(index_, scope, std::move(breaches), patience);
}
void Checker::Holds(std::string_view scope) {
  const auto& scopes = watch_->checkers_[index_].scopes;
  if (!scopes.empty() && scopes.find(scope) != scopes.end()) Tell(std::string(scope), {});
}
World& Checker::world() const { return watch_->world_; }
const Held& Checker::held() const { return watch_->held_; }
CauseId Checker::cause() const {
  const CauseId now = watch_->world_.kernel().cause();
  return now == kNoCause ? watch_->last_cause_ : now;
}

absl::StatusOr<std::unique_ptr<InvariantWatch>> InvariantWatch::Attach(World& world,
                                                                       const std::vector<std::string>& names,
                                                                       const Options& options) {
  std::unique_ptr<InvariantWatch> watch(new InvariantWatch(world, options));
  for (const std::string& name : names) {
    const Invariant* const row = FindInvariant(name);
    if (row == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("no invariant is named '{}'; `wavetank invariants` lists them", name));
    }
    watch->checkers_.push_back({std::string(row->name), row->make(), {}});
    watch->checkers_.back().checker->watch_ = watch.get();
    watch->checkers_.back().checker->index_ = watch->checkers_.size() - 1;
  }
  watch->self_ = std::make_shared<InvariantWatch*>(watch.get());
  const std::weak_ptr<InvariantWatch*> self = watch->self_;
  const auto with = [self](auto fn) {
    if (const auto there = self.lock()) fn(**there);
  };
  world.kernel().AddObserver([with](const TraceEvent& event) { with([&](InvariantWatch& w) { w.Observe(event); }); });
  const auto told = [](InvariantWatch& w) {
    return [&w](const std::string& proxy, const Assignment& now, const Assignment* before) {
      for (const Entry& entry : w.checkers_) entry.checker->OnAssignment(proxy, now, before);
    };
  };
  Commons& commons = world.commons();
  watch->subscriptions_ = commons.OnEitherXds([with, told](const std::string& proxy, const auto& response) {
    with([&](InvariantWatch& w) { w.held_.Apply(proxy, response, told(w)); });
  });
  watch->subscriptions_.Add(commons.on_request.Add([with](const TrafficRecord& record) {
    with([&](InvariantWatch& w) {
      for (const Entry& entry : w.checkers_) entry.checker->OnRequest(record);
    });
  }));
  return watch;
}

InvariantWatch::~InvariantWatch() = default;

void InvariantWatch::Observe(const TraceEvent& event) {
  const TraceKind kind = event.record.kind;
  const bool of_data_plane = kind >= TraceKind::kRequest && kind <= TraceKind::kGatewayHop;
  if (kind == kInvariantViolated || (of_data_plane && kind != TraceKind::kHandshake)) return;
  for (const Entry& entry : checkers_) entry.checker->OnTrace(event);
  if (kind >= TraceKind::kRequest) return;
  last_event_ = event.time;
  last_cause_ = event.cause;
  ticked_ = false;
  if (!rest_armed_) ArmRest(kQuiet);
  if (!tick_armed_) ArmTick();
}

void InvariantWatch::ArmRest(Duration delay) {
  rest_armed_ = true;
  world_.commons().host->RunAfter(delay, [self = std::weak_ptr<InvariantWatch*>(self_)] {
    if (const auto there = self.lock()) (*there)->AtRest();
  });
}

void InvariantWatch::ArmTick() {
  tick_armed_ = true;
  world_.commons().host->RunAfter(kTick, [self = std::weak_ptr<InvariantWatch*>(self_)] {
    if (const auto there = self.lock()) (*there)->Tick();
  });
}

void InvariantWatch::AtRest() {
  WAVETANK_ASSERT(rest_armed_);  // one look is armed at most
  rest_armed_ = false;
  const Duration quiet = world_.Now() - last_event_;
  if (quiet < kQuiet) return ArmRest(kQuiet - quiet);
  if (!world_.Settled()) return ArmRest(kQuiet);
  Rest();
  if (impatient_) ArmRest(kTick);
}

void InvariantWatch::Rest() {
  impatient_ = false;
  // What is gone holds nothing.
  std::set<std::string_view> there;
  for (const PodProcess* pod : world_.Pods()) there.insert(pod->name());
  std::vector<std::string> gone;
  for (const auto& [proxy, what] : held_.proxies()) {
    if (!there.contains(proxy)) gone.push_back(proxy);
  }
  for (const std::string& proxy : gone) held_.Forget(proxy);
  for (const Entry& entry : checkers_) entry.checker->AtRest();
}

void InvariantWatch::LookNow() {
  if (world_.Settled()) Rest();
}

void InvariantWatch::Tick() {
  WAVETANK_ASSERT(tick_armed_);
  tick_armed_ = false;
  const bool quiet = std::exchange(ticked_, true);
  bool waiting = false;
  for (const Entry& entry : checkers_) waiting = entry.checker->Tick() || waiting;
  if (waiting || !quiet) ArmTick();
}

void InvariantWatch::Tell(size_t checker, const std::string& scope, std::vector<Breach> breaches, Duration patience) {
  WAVETANK_ASSERT(checker < checkers_.size(), checker, checkers_.size());
  WAVETANK_ASSERT(patience >= Duration::zero(), patience);
  Entry& entry = checkers_[checker];
  auto known = entry.scopes.find(scope);
  if (known == entry.scopes.end()) {
    if (breaches.empty()) return;
    known = entry.scopes.try_emplace(scope).first;
  }
  const Time now = world_.Now();
  Scope before = std::exchange(known->second, {});
  for (Breach& breach : breaches) {
    State state;
    if (const auto same = before.find(breach.key); same != before.end()) {
      state = std::move(same->second);
      before.erase(same);
      // Told as it is when patience ends: what it was at first may have become less.
      if (state.violation == 0) {
        breach.cause = state.breach.cause;
        state.breach = std::move(breach);
      }
    } else {
      state.since = now;
      if (breach.cause == kNoCause) breach.cause = entry.checker->cause();
      state.breach = std::move(breach);
    }
    if (state.violation == 0 && now - state.since < patience) {
      impatient_ = true;
    } else if (state.violation == 0) {
      const Breach& b = state.breach;
      violations_.push_back({entry.name, b.subject, b.what, std::string(b.known), state.since, std::nullopt,
                             world_.kernel().causes().Inputs(b.cause)});
      state.violation = violations_.size();
      if (options_.in_trace) {
        untold_.emplace_back(violations_.size() - 1, b.cause);
        Flush();
      }
    }
    std::string key = state.breach.key;
    known->second.emplace(std::move(key), std::move(state));
  }
  for (const auto& [key, state] : before) {
    if (state.violation == 0) continue;
    WAVETANK_ASSERT(state.violation <= violations_.size(), state.violation, violations_.size());
    Violation& over = violations_[state.violation - 1];
    WAVETANK_ASSERT(!over.until, over.invariant, key);  // it ends once; what comes back is another
    over.until = now;
  }
  if (known->second.empty()) entry.scopes.erase(known);
}

// An observer must not emit, so the trace has it when what happens now is over.
void InvariantWatch::Flush() {
  if (std::exchange(flush_armed_, true)) return;
  world_.commons().host->Post([self = std::weak_ptr<InvariantWatch*>(self_)] {
    const auto there = self.lock();
    if (there == nullptr) return;
    InvariantWatch& w = **there;
    w.flush_armed_ = false;
    Host& host = *w.world_.commons().host;
    for (const auto& [index, cause] : std::exchange(w.untold_, {})) {
      WAVETANK_ASSERT(index < w.violations_.size(), index, w.violations_.size());
      const Violation& v = w.violations_[index];
      const ScopedCause because(host, cause);
      host.Emit({kInvariantViolated, host.Intern(v.subject), host.Intern(v.invariant), 0, 0, v.what});
    }
  });
}

}  // namespace wavetank::sim
