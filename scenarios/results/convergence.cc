#include "scenarios/results/convergence.h"

#include <algorithm>
#include <string>

namespace wavetank::scenario {
namespace {

// The last moment not after `until`; null if there is none.
template <class Moments>
auto LastUntil(const Moments& moments, Time until) -> decltype(&moments.front()) {
  const auto it = std::upper_bound(moments.begin(), moments.end(), until,
                                   [](Time time, const auto& moment) { return time < moment.at; });
  return it == moments.begin() ? nullptr : &*std::prev(it);
}

// The first moment after `after`; null if there is none.
template <class Moments>
auto FirstAfter(const Moments& moments, Time after) -> decltype(&moments.front()) {
  const auto it = std::upper_bound(moments.begin(), moments.end(), after,
                                   [](Time time, const auto& moment) { return time < moment.at; });
  return it == moments.end() ? nullptr : &*it;
}

}  // namespace

ConvergenceTracker::ConvergenceTracker(sim::Kernel& kernel) : kernel_(kernel) {
  kernel_.AddObserver([this](const sim::TraceEvent& event) { Observe(event); });
}

void ConvergenceTracker::Begin(Time event, uint64_t first_input) {
  event_ = event;
  first_input_ = first_input;
  on_ = true;
  concerns_.clear();
  pushing_.clear();
  receiving_.clear();
}

bool ConvergenceTracker::Concerns(CauseId cause) {
  const auto [it, fresh] = concerns_.try_emplace(cause, false);
  if (fresh) {
    const std::vector<uint64_t>& inputs = kernel_.causes().Inputs(cause);  // sorted
    it->second = !inputs.empty() && inputs.back() >= first_input_;
  }
  return it->second;
}

std::vector<ConvergenceTracker::Moment>& ConvergenceTracker::OfType(ByType& by_type, NameId type) {
  for (auto& [known, moments] : by_type) {
    if (known == type) return moments;
  }
  return by_type.emplace_back(type, std::vector<Moment>()).second;
}

void ConvergenceTracker::Observe(const sim::TraceEvent& event) {
  const TraceRecord& r = event.record;
  if (r.kind >= TraceKind::kRequest) return;
  // Only the server's record of a connection names the istiod.
  if (r.kind == TraceKind::kXdsConnected && r.object != kNoName) istiod_of_[r.subject] = r.object;
  if (!on_ || !Concerns(event.cause)) return;
  const Moment now{event.time, Duration(r.kind == TraceKind::kWatchDelivered ? r.b : 0)};
  switch (r.kind) {
    case TraceKind::kWatchDelivered: {
      // Watchers are named "<istiod>-><cluster>".
      const std::string_view watcher = kernel_.names().Text(r.subject);
      const size_t arrow = watcher.find("->");
      if (arrow != std::string_view::npos) {
        pushing_[std::string(watcher.substr(0, arrow))].watches.push_back(now);
      }
      break;
    }
    case TraceKind::kConfigUpdate:
      pushing_[kernel_.names().Text(r.subject)].updates.push_back(now);
      break;
    case TraceKind::kDebounced:
      pushing_[kernel_.names().Text(r.subject)].debounced.push_back(now);
      break;
    case TraceKind::kPushQueued:
      receiving_[r.subject].queued.push_back(now);
      break;
    case TraceKind::kPushDequeued:
      receiving_[r.subject].dequeued.push_back(now);
      break;
    case TraceKind::kXdsSent: {
      Receiving& proxy = receiving_[r.subject];
      OfType(proxy.sent, r.object).push_back(now);
      ++proxy.responses;
      break;
    }
    case TraceKind::kXdsReceived:
      OfType(receiving_[r.subject].received, r.object).push_back(now);
      break;
    case TraceKind::kXdsApplied: {
      Receiving& proxy = receiving_[r.subject];
      proxy.applied = event.time;
      proxy.applied_type = r.object;
      break;
    }
    default:
      break;
  }
}

Convergence ConvergenceTracker::End() const {
  Convergence out;
  out.event = event_;
  for (const auto& [proxy, r] : receiving_) {
    if (r.applied == Time{} || r.applied < event_) continue;
    ProxyConvergence row;
    row.proxy = std::string(kernel_.names().Text(proxy));
    row.total = r.applied - event_;
    row.responses = r.responses;

    // Back from the end; a moment that nothing tells of coincides with the one after it.
    Time at = r.applied;
    const auto cut = [&](Stage stage, Time since) {
      since = std::clamp(since, event_, at);
      row.stages[static_cast<size_t>(stage)] = at - since;
      at = since;
    };
    const auto of_type = [&at, type = r.applied_type](const ByType& by_type) -> Time {
      const auto it = std::find_if(by_type.begin(), by_type.end(), [&](const auto& of) { return of.first == type; });
      const Moment* moment = it == by_type.end() ? nullptr : LastUntil(it->second, at);
      return moment == nullptr ? at : moment->at;
    };
    cut(Stage::kApply, of_type(r.received));
    cut(Stage::kNetwork, of_type(r.sent));
    const Moment* dequeued = LastUntil(r.dequeued, at);
    cut(Stage::kGeneration, dequeued == nullptr ? at : dequeued->at);
    const auto istiod = istiod_of_.find(proxy);
    const auto pushing =
        istiod == istiod_of_.end() ? pushing_.end() : pushing_.find(kernel_.names().Text(istiod->second));
    if (pushing != pushing_.end()) {
      const Pushing& p = pushing->second;
      const Moment* queued = LastUntil(r.queued, at);
      const Moment* debounced = LastUntil(p.debounced, queued == nullptr ? at : queued->at);
      if (debounced != nullptr) {
        cut(Stage::kPushQueue, debounced->at);
        // The first event of the batch that left the debouncer then.
        const Moment* before = debounced == p.debounced.data() ? nullptr : debounced - 1;
        const Moment* update = FirstAfter(p.updates, before == nullptr ? event_ - Duration(1) : before->at);
        cut(Stage::kDebounce, update == nullptr ? at : update->at);
        const Moment* watch = LastUntil(p.watches, at);
        cut(Stage::kQueue, watch == nullptr ? at : watch->at);
        cut(Stage::kWatch, watch == nullptr ? at : watch->at - watch->latency);
      }
    }
    cut(Stage::kKubernetes, event_);
    out.proxies.push_back(std::move(row));
  }
  // In one order whatever the table's: no two proxies have one name.
  std::sort(out.proxies.begin(), out.proxies.end(), [](const ProxyConvergence& a, const ProxyConvergence& b) {
    return a.total != b.total ? a.total > b.total : a.proxy < b.proxy;
  });
  return out;
}

}  // namespace wavetank::scenario
