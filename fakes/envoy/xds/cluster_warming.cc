// Clusters on their way into force: warming, what the workers then see, what is asked for next.
// Envoy: source/common/upstream/{cluster_manager_impl,cds_api_helper}.cc; the order of things as measured in
// docs/real-envoy.md 7.
#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/xds/xds_state.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

std::vector<XdsState::WarmingCluster>::iterator XdsState::FindWarming(std::string_view name) {
  return std::lower_bound(warming_clusters_.begin(), warming_clusters_.end(), name,
                          [](const WarmingCluster& w, std::string_view n) { return w.config->name < n; });
}

void XdsState::WarmCluster(const std::shared_ptr<const ClusterConfig>& config) {
  WAVETANK_ASSERT(config != nullptr);
  secrets_.Need(config->secrets, ads_ != nullptr);
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

void XdsState::AwaitEndpoints() {
  host_.Cancel(warming_timer_);
  warming_timer_ = kNoTimer;
  Time first = Time::max();
  for (const WarmingCluster& w : warming_clusters_) {
    if (w.needs_endpoints) first = std::min(first, w.gives_up_at);
  }
  if (first == Time::max()) return;
  WAVETANK_ASSERT(first >= host_.Now(), first, host_.Now());  // one whose time has come no longer waits
  warming_timer_ = host_.RunAfter(first - host_.Now(), [this] {
    warming_timer_ = kNoTimer;
    GiveUpOnEndpoints();
  });
}

// The initial fetch timeout: clusters go on with the endpoints known before (since 1.32), or none.
void XdsState::GiveUpOnEndpoints() {
  const bool cached = process_.release().Has(EnvoyChange::kEndpointsAreCached);
  std::vector<std::shared_ptr<const EndpointTable>> kept = endpoints_->items();
  for (WarmingCluster& w : warming_clusters_) {
    if (!w.needs_endpoints || w.gives_up_at > host_.Now()) continue;
    w.needs_endpoints = false;
    if (!cached) std::erase_if(kept, [&](const auto& table) { return table->cluster_name == w.config->service_name; });
  }
  if (kept.size() != endpoints_->items().size()) endpoints_ = configs_.Intern<EndpointTable>(std::move(kept));
  PromoteClusters();
  ClustersMayBeWarm();
  AwaitEndpoints();
}

bool XdsState::ClusterReady(const WarmingCluster& warming) const {
  return HasWhatItNeeds(warming) && (warming.config->health_check == nullptr || warming.asked);
}

// Envoy: upstream_impl.cc, ClusterImplBase::onInitDone: a cluster is ready when each host was asked once.
void XdsState::CheckHosts() {
  for (WarmingCluster& w : warming_clusters_) {
    if (w.config->health_check == nullptr || !HasWhatItNeeds(w)) continue;
    if (w.runtime != nullptr) {
      w.runtime->Update(Activate(w.config));
      continue;
    }
    w.runtime = view_.MakeRuntime(Activate(w.config));
    const std::string& name = w.config->name;
    const bool had = view_.counter(fmt::format("cluster.{}.upstream_cx_total", name)) > 0;
    w.asked = !w.runtime->StartChecks(had, [this, name] {
      const auto at = FindWarming(name);
      WAVETANK_ASSERT(at != warming_clusters_.end() && at->config->name == name, name);  // else it had gone
      at->asked = true;
      PromoteClusters();
      ClustersMayBeWarm();
    });
  }
}

bool XdsState::HasWhatItNeeds(const WarmingCluster& warming) const {
  if (warming.needs_endpoints || !secrets_.Ready(warming.config->secrets)) return false;
  const DnsState* dns = FindDns(*warming.config);
  return dns == nullptr || dns->answered;
}

bool XdsState::FirstPhaseWarms() const {
  return std::any_of(warming_clusters_.begin(), warming_clusters_.end(),
                     [](const WarmingCluster& w) { return w.config->type != DiscoveryType::kEds; });
}

std::shared_ptr<const ActiveCluster> XdsState::Activate(const std::shared_ptr<const ClusterConfig>& config) {
  std::shared_ptr<const EndpointTable> endpoints = config->load_assignment;
  if (config->type == DiscoveryType::kEds) {
    const auto* found = endpoints_->Find(config->service_name);
    endpoints = found == nullptr ? nullptr : *found;
  } else if (const DnsState* dns = FindDns(*config)) {
    endpoints = DnsTable(*dns);
  }
  return configs_.Pair(config, std::move(endpoints));
}

// As PromoteClusters() would do it one by one. An Envoy's first clusters are mostly what another one's just were.
void XdsState::PromoteFirstClusters() {
  if (!configs_.reuses_work() || !view_.active().eds->items().empty() || view_.has_runtimes()) {
    return;
  }
  const size_t wanted = EdsNames()->size();
  if (wanted == 0 || clusters_->service_names_differ) return;
  const auto is_checked = [](const WarmingCluster& w) { return w.config->health_check != nullptr; };
  if (std::any_of(warming_clusters_.begin(), warming_clusters_.end(), is_checked)) return;
  const auto is_eds = [](const WarmingCluster& w) { return w.config->type == DiscoveryType::kEds; };
  const auto ready = [&](const WarmingCluster& w) { return is_eds(w) && ClusterReady(w); };
  const auto count = std::count_if(warming_clusters_.begin(), warming_clusters_.end(), ready);
  if (static_cast<size_t>(count) != wanted) return;
  // A cluster that was of another type has to leave the others.
  const auto changes_type = [&](const auto& other) {
    const auto* now = clusters_->Find(other->config->name);
    return now != nullptr && (*now)->type == DiscoveryType::kEds;
  };
  if (std::any_of(view_.active().others->items().begin(), view_.active().others->items().end(), changes_type)) return;
  warming_clusters_.erase(std::remove_if(warming_clusters_.begin(), warming_clusters_.end(), is_eds),
                          warming_clusters_.end());
  Adopt({configs_.Paired(*clusters_, *endpoints_), view_.active().others}, {});
}

void XdsState::PromoteClusters(bool endpoints_came) {
  CheckHosts();
  PromoteFirstClusters();
  ActiveChanges ready;
  size_t replaced = 0;
  const auto still = std::remove_if(warming_clusters_.begin(), warming_clusters_.end(), [&](WarmingCluster& w) {
    if (!ClusterReady(w)) return false;
    ready.emplace_back(w.config->name, Activate(w.config));
    if (w.runtime != nullptr) view_.KeepReady(std::move(w.runtime));
    replaced += w.config->type == DiscoveryType::kEds && view_.active().eds->Find(w.config->name) != nullptr;
    return true;
  });
  warming_clusters_.erase(still, warming_clusters_.end());
  WAVETANK_ASSERT(replaced <= ready.size(), replaced, ready.size());
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

const ResourceNames& XdsState::EdsNames() const {
  if (clusters_->wanted == nullptr) {
    std::vector<std::string> names;
    for (const auto& c : clusters_->items()) {
      if (c->type == DiscoveryType::kEds) names.push_back(c->service_name);
      clusters_->service_names_differ |= c->service_name != c->name;
    }
    SortUnique(&names);
    clusters_->wanted = configs_.InternNames(std::move(names));
  }
  return clusters_->wanted;
}

// While any cluster warms, CDS is paused and its acknowledgement waits (but for the first clusters'); the listeners
// come after the clusters.
void XdsState::ClustersMayBeWarm() {
  if (!process_.running() || ads_ == nullptr || applying_clusters_) return;
  if (eds_waits_ && !FirstPhaseWarms()) {
    eds_waits_ = false;
    ads_->Subscribe(XdsType::kEds, EdsNames());
  }
  if (!warming_clusters_.empty()) return;
  WAVETANK_ASSERT(!eds_waits_);  // else nobody would ask for endpoints any more
  ads_->Release(XdsType::kCds);
  if (pending_cds_.set) {
    const Pending done = std::exchange(pending_cds_, Pending{});
    InForce(XdsType::kCds, done.resources, done.version, done.nonce);
  }
  AskForListeners();
}

void XdsState::AskForListeners() {
  if (lds_subscribed_ || !cds_received_) return;
  WAVETANK_ASSERT(ads_ != nullptr);
  WAVETANK_ASSERT(warming_clusters_.empty(), warming_clusters_.size());  // listeners come after the clusters
  lds_subscribed_ = true;
  ads_->Subscribe(XdsType::kLds, nullptr);
  if (process_.options().initial_fetch_timeout > Duration::zero()) {
    init_timer_ = host_.RunAfter(process_.options().initial_fetch_timeout, [this] {
      init_timer_ = kNoTimer;
      lds_received_ = true;
      CheckLive();
    });
  }
}

XdsState::Activation XdsState::WorkOutActivation(const Changes<EndpointTable>& endpoints) {
  Activation out;
  out.from = view_.active().eds;
  for (const auto& table : endpoints.upserts) {
    const auto update = [&](const std::shared_ptr<const ActiveCluster>& active) {
      if (active->config->service_name != table->cluster_name) return;
      out.changes.emplace_back(active->config->name, configs_.Pair(active->config, table));
    };
    if (clusters_->service_names_differ) {
      for (const auto& active : view_.active().eds->items()) update(active);
    } else if (const auto* active = view_.active().eds->Find(table->cluster_name)) {
      update(*active);
    }
  }
  std::sort(out.changes.begin(), out.changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

}  // namespace wavetank::envoysim
