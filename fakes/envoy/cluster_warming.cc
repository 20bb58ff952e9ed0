// Clusters on their way into force: warming, what the workers then see, what is asked for next.
// Envoy: source/common/upstream/{cluster_manager_impl,cds_api_helper}.cc; the order of things as measured in
// shared/ENVOY.md 3.7.
#include <algorithm>
#include <iterator>
#include <utility>

#include "fakes/envoy/envoy_impl.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

std::vector<Envoy::Impl::WarmingCluster>::iterator Envoy::Impl::FindWarming(std::string_view name) {
  return std::lower_bound(warming_clusters_.begin(), warming_clusters_.end(), name,
                          [](const WarmingCluster& w, std::string_view n) { return w.config->name < n; });
}

void Envoy::Impl::WarmCluster(const std::shared_ptr<const ClusterConfig>& config) {
  NeedSecrets(config->secrets);
  WarmingCluster warming{config};
  if (config->type == DiscoveryType::kEds) {
    warming.needs_endpoints = true;
    if (config->initial_fetch_timeout > Duration::zero()) {
      warming.gives_up_at = host_.Now() + config->initial_fetch_timeout;
    }
  } else if (config->type == DiscoveryType::kStrictDns || config->type == DiscoveryType::kLogicalDns) {
    ResolveDns(config);
  }
  const auto at = FindWarming(config->name);
  if (at != warming_clusters_.end() && at->config->name == config->name) {
    *at = std::move(warming);
  } else {
    warming_clusters_.insert(at, std::move(warming));
  }
}

void Envoy::Impl::AwaitEndpoints() {
  host_.Cancel(warming_timer_);
  warming_timer_ = kNoTimer;
  Time first = Time::max();
  for (const WarmingCluster& w : warming_clusters_) {
    if (w.needs_endpoints) first = std::min(first, w.gives_up_at);
  }
  if (first == Time::max()) return;
  warming_timer_ = host_.RunAfter(first - host_.Now(), [this] {
    warming_timer_ = kNoTimer;
    GiveUpOnEndpoints();
  });
}

// The initial fetch timeout: clusters go on with the endpoints known before, or none.
void Envoy::Impl::GiveUpOnEndpoints() {
  for (WarmingCluster& w : warming_clusters_) {
    if (w.gives_up_at <= host_.Now()) w.needs_endpoints = false;
  }
  PromoteClusters();
  ClustersMayBeWarm();
  AwaitEndpoints();
}

bool Envoy::Impl::ClusterReady(const WarmingCluster& warming) const {
  if (warming.needs_endpoints || !SecretsReady(warming.config->secrets)) return false;
  const DnsState* dns = FindDns(*warming.config);
  return dns == nullptr || dns->answered;
}

bool Envoy::Impl::FirstPhaseWarms() const {
  return std::any_of(warming_clusters_.begin(), warming_clusters_.end(),
                     [](const WarmingCluster& w) { return w.config->type != DiscoveryType::kEds; });
}

std::shared_ptr<const ActiveCluster> Envoy::Impl::Activate(const std::shared_ptr<const ClusterConfig>& config) {
  std::shared_ptr<const EndpointTable> endpoints = config->load_assignment;
  if (config->type == DiscoveryType::kEds) {
    const auto* found = endpoints_->Find(config->service_name);
    endpoints = found == nullptr ? nullptr : *found;
  } else if (const DnsState* dns = FindDns(*config)) {
    endpoints = DnsTable(*dns);
  }
  return plane_.configs().Pair(config, std::move(endpoints));
}

// As PromoteClusters() would do it one by one. An Envoy's first clusters are mostly what another one's just were.
void Envoy::Impl::PromoteFirstClusters() {
  if (!plane_.configs().reuses_work() || !active_.eds->items().empty() || !runtimes_.empty() || !retired_.empty()) {
    return;
  }
  const size_t wanted = EdsNames()->size();
  if (wanted == 0 || clusters_->service_names_differ) return;
  const auto is_eds = [](const WarmingCluster& w) { return w.config->type == DiscoveryType::kEds; };
  const auto ready = [&](const WarmingCluster& w) { return is_eds(w) && ClusterReady(w); };
  const auto count = std::count_if(warming_clusters_.begin(), warming_clusters_.end(), ready);
  if (static_cast<size_t>(count) != wanted) return;
  // A cluster that was of another type has to leave the others.
  const auto changes_type = [&](const auto& other) {
    const auto* now = clusters_->Find(other->config->name);
    return now != nullptr && (*now)->type == DiscoveryType::kEds;
  };
  if (std::any_of(active_.others->items().begin(), active_.others->items().end(), changes_type)) return;
  warming_clusters_.erase(std::remove_if(warming_clusters_.begin(), warming_clusters_.end(), is_eds),
                          warming_clusters_.end());
  Adopt({plane_.configs().Paired(*clusters_, *endpoints_), active_.others}, {});
}

void Envoy::Impl::PromoteClusters(bool endpoints_came) {
  PromoteFirstClusters();
  ActiveChanges ready;
  size_t replaced = 0;
  const auto still = std::remove_if(warming_clusters_.begin(), warming_clusters_.end(), [&](const WarmingCluster& w) {
    if (!ClusterReady(w)) return false;
    ready.emplace_back(w.config->name, Activate(w.config));
    replaced += w.config->type == DiscoveryType::kEds && active_.eds->Find(w.config->name) != nullptr;
    return true;
  });
  warming_clusters_.erase(still, warming_clusters_.end());
  if (warming_clusters_.empty()) {
    warming_clusters_.shrink_to_fit();
    AwaitEndpoints();
  }
  if (!ready.empty()) SetActive(std::move(ready));
  // A changed cluster's predecessor takes its subscription along, which repeats the request, unless an acknowledgement
  // is about to. Envoy: grpc_mux_impl.h, ~GrpcMuxWatchImpl
  for (; replaced > 0 && !endpoints_came && ads_ != nullptr; --replaced) {
    ads_->Subscribe(XdsType::kEds, EdsNames(), /*again=*/true);
  }
}

void Envoy::Impl::SetActive(ActiveChanges changes) {
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // A cluster that changes its type leaves one set and joins the other.
  const auto is_eds = [](const ActiveCluster& active) { return active.config->type == DiscoveryType::kEds; };
  auto next_eds = NextActive(*active_.eds, changes, is_eds);
  auto next_others = NextActive(*active_.others, changes, [&](const ActiveCluster& a) { return !is_eds(a); });
  if (next_eds == nullptr && next_others == nullptr) return;
  Adopt({next_eds == nullptr ? active_.eds : std::move(next_eds),
         next_others == nullptr ? active_.others : std::move(next_others)},
        changes);
}

std::vector<std::shared_ptr<const ActiveCluster>> Envoy::Impl::ActiveSets::All() const {
  std::vector<std::shared_ptr<const ActiveCluster>> out;
  if (eds == nullptr) return out;
  out.reserve(eds->items().size() + others->items().size());
  std::merge(eds->items().begin(), eds->items().end(), others->items().begin(), others->items().end(),
             std::back_inserter(out), [](const auto& a, const auto& b) { return NameOf(*a) < NameOf(*b); });
  return out;
}

std::shared_ptr<const NamedSet<ActiveCluster>> Envoy::Impl::NextActive(
    const NamedSet<ActiveCluster>& from, const ActiveChanges& changes,
    absl::FunctionRef<bool(const ActiveCluster&)> of) {
  std::vector<std::shared_ptr<const ActiveCluster>> next;
  next.reserve(from.items().size() + changes.size());
  size_t c = 0;
  bool changed = false;
  const auto stays = [&] { return changes[c].second != nullptr && of(*changes[c].second); };
  const auto take = [&] {  // what `from` has not
    if (stays()) {
      changed = true;
      next.push_back(changes[c].second);
    }
    ++c;
  };
  for (const auto& old : from.items()) {
    while (c < changes.size() && changes[c].first < old->config->name) take();
    if (c < changes.size() && changes[c].first == old->config->name) {
      changed |= changes[c].second != old;
      if (stays()) next.push_back(changes[c].second);
      ++c;
    } else {
      next.push_back(old);
    }
  }
  while (c < changes.size()) take();
  return changed ? plane_.configs().Intern<ActiveCluster>(std::move(next)) : nullptr;
}

void Envoy::Impl::Adopt(ActiveSets next, const ActiveChanges& changes) {
  active_ = std::move(next);
  ++epoch_;
  if (runtimes_.empty() && retired_.empty()) return;
  for (const auto& [name, active] : changes) {
    const auto it = runtimes_.find(name);
    if (it == runtimes_.end()) continue;
    if (active != nullptr && active->config->hash == it->second->config().hash) {
      it->second->Update(active);
    } else {
      RetireRuntime(name);
    }
  }
  retired_.erase(std::remove_if(retired_.begin(), retired_.end(), [](const auto& r) { return r->idle(); }),
                 retired_.end());
}

// A removed or changed cluster: what runs on it runs out; a successor starts from nothing, its counters excepted.
void Envoy::Impl::RetireRuntime(const std::string& name) {
  const auto it = runtimes_.find(name);
  std::unique_ptr<ClusterRuntime> runtime = std::move(it->second);
  runtimes_.erase(it);
  for (size_t i = 0; i < static_cast<size_t>(ClusterStat::kCount); ++i) {
    const auto stat = static_cast<ClusterStat>(i);
    if (stat == ClusterStat::kEjectionsActive || runtime->stats()[i] == 0) continue;
    Counter(fmt::format("cluster.{}.{}", name, ClusterStatName(stat))) += runtime->stats()[i];
  }
  runtime->Retire();
  retired_.push_back(std::move(runtime));
  if (active_.Find(name) == nullptr) ForgetDns(name);
}

const ResourceNames& Envoy::Impl::EdsNames() const {
  if (clusters_->wanted == nullptr) {
    std::vector<std::string> names;
    for (const auto& c : clusters_->items()) {
      if (c->type == DiscoveryType::kEds) names.push_back(c->service_name);
      clusters_->service_names_differ |= c->service_name != c->name;
    }
    SortUnique(&names);
    clusters_->wanted = plane_.configs().InternNames(std::move(names));
  }
  return clusters_->wanted;
}

// While any cluster warms, CDS is paused and its acknowledgement waits (but for the first clusters'); the listeners
// come after the clusters.
void Envoy::Impl::ClustersMayBeWarm() {
  if (!running_ || ads_ == nullptr || applying_clusters_) return;
  if (eds_waits_ && !FirstPhaseWarms()) {
    eds_waits_ = false;
    ads_->Subscribe(XdsType::kEds, EdsNames());
  }
  if (!warming_clusters_.empty()) return;
  ads_->Release(XdsType::kCds);
  if (pending_cds_.set) {
    const Pending done = std::exchange(pending_cds_, Pending{});
    InForce(XdsType::kCds, done.resources, done.version, done.nonce);
  }
  AskForListeners();
}

void Envoy::Impl::AskForListeners() {
  if (lds_subscribed_ || !cds_received_) return;
  lds_subscribed_ = true;
  ads_->Subscribe(XdsType::kLds, nullptr);
  if (options_.initial_fetch_timeout > Duration::zero()) {
    init_timer_ = host_.RunAfter(options_.initial_fetch_timeout, [this] {
      init_timer_ = kNoTimer;
      lds_received_ = true;
      CheckLive();
    });
  }
}

Envoy::Impl::Activation Envoy::Impl::WorkOutActivation(const Changes<EndpointTable>& endpoints) {
  Activation out;
  out.from = active_.eds;
  for (const auto& table : endpoints.upserts) {
    const auto update = [&](const std::shared_ptr<const ActiveCluster>& active) {
      if (active->config->service_name != table->cluster_name) return;
      out.changes.emplace_back(active->config->name, plane_.configs().Pair(active->config, table));
    };
    if (clusters_->service_names_differ) {
      for (const auto& active : active_.eds->items()) update(active);
    } else if (const auto* active = active_.eds->Find(table->cluster_name)) {
      update(*active);
    }
  }
  std::sort(out.changes.begin(), out.changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace wavetank::envoysim
