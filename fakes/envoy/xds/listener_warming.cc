// Listeners on their way into force, and out of it: warming, the routes they need, draining.
// Envoy: source/extensions/listener_managers/listener_manager/listener_manager_impl.cc
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/base/assert.h"
#include "fakes/envoy/xds/xds_state.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

void XdsState::WarmListener(const std::shared_ptr<const ListenerConfig>& config) {
  for (size_t i = 0; i < warming_listeners_.size(); ++i) {
    if (warming_listeners_[i].config->name != config->name) continue;
    Forget(warming_listeners_[i]);
    warming_listeners_[i] = std::move(warming_listeners_.back());
    warming_listeners_.pop_back();
    break;
  }
  secrets_.Need(config->secrets, ads_ != nullptr);
  WarmingListener warming{config};
  if (!HasRoutes(*config))
    GiveUpAfter(config->rds_initial_fetch_timeout, &warming, &WarmingListener::timeout, &WarmingListener::rds_given_up);
  if (!HasExtensions(*config)) {
    GiveUpAfter(config->ecds_initial_fetch_timeout, &warming, &WarmingListener::ecds_timeout,
                &WarmingListener::ecds_given_up);
  }
  warming_listeners_.push_back(std::move(warming));
}

void XdsState::GiveUpAfter(Duration timeout, WarmingListener* warming, TimerId WarmingListener::*timer,
                           bool WarmingListener::*given_up) {
  if (timeout <= Duration::zero()) return;
  warming->*timer = host_.RunAfter(timeout, [this, name = warming->config->name, timer, given_up] {
    for (WarmingListener& w : warming_listeners_) {
      if (w.config->name != name) continue;
      w.*given_up = true;
      w.*timer = kNoTimer;
      if (given_up != &WarmingListener::ecds_given_up) continue;
      for (const DiscoveredFilter& each : w.config->extensions) {
        if (extensions_.insert(each.name).second) CountExtension(each.name, "config_fail");
      }
    }
    PromoteListeners();
    CheckLive();
  });
}

bool XdsState::HasRoutes(const ListenerConfig& listener) const {
  return std::all_of(listener.route_names.begin(), listener.route_names.end(),
                     [&](const std::string& name) { return view_.routes()->Find(name) != nullptr; });
}

bool XdsState::HasExtensions(const ListenerConfig& listener) const {
  return std::all_of(listener.extensions.begin(), listener.extensions.end(),
                     [&](const DiscoveredFilter& each) { return !each.waits || extensions_.contains(each.name); });
}

void XdsState::Forget(WarmingListener& warming) {
  host_.Cancel(warming.timeout);
  host_.Cancel(warming.ecds_timeout);
}

bool XdsState::ListenerReady(const WarmingListener& warming) const {
  return secrets_.Ready(warming.config->secrets) && (warming.ecds_given_up || HasExtensions(*warming.config)) &&
         (warming.rds_given_up || HasRoutes(*warming.config));
}

void XdsState::PromoteListeners() {
  std::vector<std::shared_ptr<const ListenerConfig>> ready;
  for (size_t i = 0; i < warming_listeners_.size();) {
    WarmingListener& w = warming_listeners_[i];
    if (!ListenerReady(w)) {
      ++i;
      continue;
    }
    Forget(w);
    ready.push_back(std::move(w.config));
    w = std::move(warming_listeners_.back());
    warming_listeners_.pop_back();
  }
  if (warming_listeners_.empty()) warming_listeners_.shrink_to_fit();
  if (ready.empty()) return;
  std::sort(ready.begin(), ready.end(), [](const auto& a, const auto& b) { return a->name < b->name; });
  std::vector<std::shared_ptr<const ListenerConfig>> next;
  size_t r = 0;
  for (const auto& old : view_.listening()->items()) {
    while (r < ready.size() && ready[r]->name < old->name) next.push_back(ready[r++]);
    if (r < ready.size() && ready[r]->name == old->name) {
      DrainListener(old);
      next.push_back(ready[r++]);
    } else {
      next.push_back(old);
    }
  }
  while (r < ready.size()) next.push_back(ready[r++]);
  for (size_t i = 1; i < next.size(); ++i) WAVETANK_ASSERT(next[i - 1]->name < next[i]->name, next[i]->name);
  view_.SetListening(configs_.Intern<ListenerConfig>(std::move(next)));
  view_.DrainStale();
  if (warming_listeners_.empty() && pending_lds_.set) {
    const Pending done = std::exchange(pending_lds_, Pending{});
    InForce(XdsType::kLds, done.resources, done.version, done.nonce);
  }
}

ResourceNames XdsState::RdsNames() const {
  const auto of = [&](const NamedSet<ListenerConfig>& set) -> const ResourceNames& {
    if (set.wanted == nullptr) {
      std::vector<std::string> names;
      for (const auto& l : set.items()) names.insert(names.end(), l->route_names.begin(), l->route_names.end());
      SortUnique(&names);
      set.wanted = configs_.InternNames(std::move(names));
    }
    return set.wanted;
  };
  // What listens, warms or drains: the set that is wanted, the one in force, and what is on its way out.
  const ResourceNames& next = of(*listeners_);
  const ResourceNames& now = of(*view_.listening());
  if ((next == now || now->empty()) && draining_listeners_.empty()) return next;
  std::vector<std::string> names = *next;
  names.insert(names.end(), now->begin(), now->end());
  for (const DrainingListener& d : draining_listeners_) {
    names.insert(names.end(), d.config->route_names.begin(), d.config->route_names.end());
  }
  SortUnique(&names);
  return configs_.InternNames(std::move(names));
}

// Subscribes to the routes that are needed now and forgets the others.
void XdsState::WantRoutes() {
  const ResourceNames names = RdsNames();
  std::vector<std::shared_ptr<const RouteTable>> kept;
  for (const auto& r : view_.routes()->items()) {
    if (std::binary_search(names->begin(), names->end(), r->name)) kept.push_back(r);
  }
  if (kept.size() != view_.routes()->items().size()) {
    view_.SetRoutes(configs_.Intern<RouteTable>(std::move(kept)));
  }
  std::erase_if(route_subscriptions_,
                [&](const auto& s) { return !std::binary_search(names->begin(), names->end(), s.first); });
  ads_->Subscribe(XdsType::kRds, names);
}

void XdsState::NoteRoutesOf(const ListenerConfig& listener) {
  for (const std::string& name : listener.route_names) {
    if (route_subscriptions_.emplace(name, next_route_subscription_).second) ++next_route_subscription_;
  }
}

void XdsState::DrainListener(const std::shared_ptr<const ListenerConfig>& listener) {
  if (listener->route_names.empty()) return;
  DrainingListener& d = draining_listeners_.emplace_back();
  d.config = listener;
  d.timer = host_.RunAfter(process_.options().drain_time, [this, config = listener.get()] {
    const auto at = std::find_if(draining_listeners_.begin(), draining_listeners_.end(),
                                 [&](const DrainingListener& one) { return one.config.get() == config; });
    WAVETANK_ASSERT(at != draining_listeners_.end(), draining_listeners_.size());  // its timer goes with it
    draining_listeners_.erase(at);
    if (ads_ == nullptr) return;
    WantExtensions();
    WantRoutes();
  });
}

std::string XdsState::UnknownCluster(const std::vector<ClusterUse>& uses) const {
  for (const ClusterUse& use : uses) {
    const bool warming = std::any_of(warming_clusters_.begin(), warming_clusters_.end(),
                                     [&](const WarmingCluster& w) { return w.config->name == use.cluster; });
    if (!warming && view_.active().Find(use.cluster) == nullptr) return use.complaint;
  }
  return {};
}

// Two listeners cannot have one address; the one that was there first, else the first by name, keeps it.
void XdsState::RefuseTakenAddresses(Changes<ListenerConfig>* changes) {
  if (changes->upserts.empty() || changes->undecodable) return;
  absl::flat_hash_map<SocketAddress, const ListenerConfig*> taken;
  absl::flat_hash_set<const ListenerConfig*> fresh;
  for (const auto& u : changes->upserts) fresh.insert(u.get());
  for (const auto& l : changes->next->items()) {
    if (!fresh.contains(l.get())) taken.emplace(l->address, l.get());
  }
  std::vector<const ListenerConfig*> refused;
  for (const auto& u : changes->upserts) {
    if (!taken.emplace(u->address, u.get()).second) refused.push_back(u.get());
  }
  if (refused.empty()) return;
  std::vector<std::shared_ptr<const ListenerConfig>> next;
  for (const auto& l : changes->next->items()) {
    if (std::find(refused.begin(), refused.end(), l.get()) == refused.end()) {
      next.push_back(l);
    } else if (const auto* old = listeners_->Find(l->name)) {
      next.push_back(*old);
    }
  }
  for (const ListenerConfig* l : refused) {
    if (!changes->errors.empty()) changes->errors += "\n";
    changes->errors += fmt::format(
        "{0}: error adding listener: '{0}' has duplicate address '{1}' as existing listener, to check if the listener "
        "has duplicated addresses with other listeners or 'enable_reuse_port' is set to 'false' for the listener",
        l->name, l->address.ToString());
    std::erase_if(changes->upserts, [&](const auto& u) { return u.get() == l; });
  }
  changes->next = configs_.Intern<ListenerConfig>(std::move(next));
}

// The workers start, and with them the listeners accept, when everything of the first LDS is warm.
void XdsState::CheckLive() {
  if (process_.live() || !process_.running() || !lds_received_ || !warming_listeners_.empty()) return;
  if (!process_.options().has_ads && !warming_clusters_.empty()) return;
  WAVETANK_ASSERT(on_live_ != nullptr);
  process_.set_live();
  on_live_();
}

}  // namespace wavetank::envoysim
