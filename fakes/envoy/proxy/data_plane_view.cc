#include "fakes/envoy/proxy/data_plane_view.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "envoy/config/core/v3/base.pb.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

DataPlaneView::DataPlaneView(DataPlane& plane, Process& process, Secrets& secrets)
    : plane_(plane), process_(process), secrets_(secrets) {}

void DataPlaneView::Begin() {
  ConfigStore& store = plane_.configs().Of(process_.release());
  active_ = {store.Intern<ActiveCluster>({}), store.Intern<ActiveCluster>({})};
  listening_ = store.Intern<ListenerConfig>({});
  by_address_ = store.ByAddress(listening_);
  routes_ = store.Intern<RouteTable>({});
}

void DataPlaneView::End(StopKind kind) {
  for (const auto& [name, runtime] : runtimes_) runtime->BeginEnd();  // order: none sees another
  for (const auto& runtime : retired_) runtime->BeginEnd();
  while (connections_ != nullptr) connections_->Abort(kind);
  plane_.router().EndAllOf(*this);
  // Sockets close in an order that does not depend on a hash.
  std::vector<std::pair<std::string_view, ClusterRuntime*>> runtimes;
  for (const auto& [name, runtime] : runtimes_) runtimes.emplace_back(name, runtime.get());  // order: sorted below
  std::sort(runtimes.begin(), runtimes.end());
  for (const auto& [name, runtime] : runtimes) runtime->Abort(kind);
  for (const auto& runtime : retired_) runtime->Abort(kind);
  runtimes_.clear();
  retired_.clear();
  ready_.clear();
  names_.clear();
  // What streams were counted in, or kept, outlives them.
  filter_states_.clear();
  http_stats_.clear();
  listener_stats_.clear();
  route_cache_.slots.reset();
  active_ = {};
  listening_.reset();
  by_address_.reset();
  routes_.reset();
  extensions_.clear();
  chains_.clear();
  peer_ = nullptr;
  istio_counters_ = {};
  ++epoch_;
}

const PeerInfo* DataPlaneView::peer() const {
  if (peer_ != nullptr) return peer_;
  envoy::config::core::v3::Node node;
  process_.context().FillNode(&node);
  const auto& fields = node.metadata().fields();
  const auto text = [](const auto& in, const char* key) {
    const auto it = in.find(key);
    return it == in.end() ? std::string() : it->second.string_value();
  };
  const auto labels = fields.find("LABELS");
  const google::protobuf::Struct none;
  const auto& label = labels == fields.end() ? none.fields() : labels->second.struct_value().fields();
  istio_version_ = text(fields, "ISTIO_VERSION");
  std::vector<std::pair<std::string, std::string>> labels_in_order;
  for (const auto& [key, value] : label) labels_in_order.emplace_back(key, value.string_value());
  std::sort(labels_in_order.begin(), labels_in_order.end());
  peer_ = plane_.KeepPeer({text(fields, "WORKLOAD_NAME"), text(fields, "NAMESPACE"),
                           text(label, "service.istio.io/canonical-name"),
                           text(label, "service.istio.io/canonical-revision"), text(label, "app"),
                           text(label, "version"), text(fields, "CLUSTER_ID"), std::move(labels_in_order)});
  return peer_;
}

void DataPlaneView::DrawAnew(uint64_t as) {
  process_.DrawAnew(as);
  for (const auto& [name, runtime] : runtimes_) runtime->DrawAnew();  // order: none sees another
}

void DataPlaneView::WriteAccessLogs(const AccessLogs& logs, AccessLogEntry* entry) {
  const std::string& name = process_.options().name;
  entry->flags_of_enum = !process_.release().Has(EnvoyChange::kFlagsInOrderOfSetting);
  entry->clock_ahead = host().WallClock() - host().Now();
  entry->hostname = std::string_view(name).substr(0, name.find('.'));
  if (!plane_.collects_access_logs()) return;  // not any more
  envoysim::WriteAccessLogs(logs, *entry, entry->end,
                            [this](const AccessLogLine& line) { plane_.on_access_log()(process_.context(), line); });
}

void DataPlaneView::SetListening(std::shared_ptr<const NamedSet<ListenerConfig>> listening) {
  listening_since_ = host().Now();
  listening_ = std::move(listening);
  by_address_ = plane_.configs().Of(process_.release()).ByAddress(listening_);
  chains_.clear();
  ++epoch_;
}

void DataPlaneView::SetExtension(const std::string& name, std::shared_ptr<const ExtensionFilter> filter) {
  if (filter != nullptr) {
    extensions_[name] = std::move(filter);
  } else {
    extensions_.erase(name);
  }
  chains_.clear();
}

// Envoy: source/common/http/filter_chain_helper.cc, createFilterChainForFactories; config_discovery_impl.cc,
// applyLastOrDefaultConfig
DataPlaneView::Filters DataPlaneView::FiltersOf(const HttpConnectionManager& manager) {
  Filters& known = chains_[&manager];
  if (known != nullptr) return known;
  std::vector<HttpFilterLink> chain = manager.filters;
  for (const DiscoveredFilter& each : manager.discovered) {
    HttpFilterLink& link = chain[each.place];
    const auto given = extensions_.find(each.name);
    const bool fits = given != extensions_.end() && each.Takes(*given->second).ok();
    std::shared_ptr<const ExtensionFilter> filter;
    if (fits) filter = plane_.configs().Of(process_.release()).Extension(given->second->bytes, each).value;
    if (filter == nullptr) filter = each.otherwise;
    link.filter = filter == nullptr ? MissingFilter() : filter->link.filter;
    if (filter != nullptr) link.canonical = filter->link.canonical;
  }
  std::erase_if(chain, [](const HttpFilterLink& link) { return link.filter == nullptr; });
  known = std::make_shared<const std::vector<HttpFilterLink>>(std::move(chain));
  return known;
}

void DataPlaneView::SetRoutes(std::shared_ptr<const NamedSet<RouteTable>> routes) {
  routes_ = std::move(routes);
  ++epoch_;
}

// --- listening

ConnectionHandler* ListenSocket::Accept(ConnectionId connection, const AcceptInfo& info) {
  bool restores = false;
  std::shared_ptr<const ListenerConfig> listener = envoy_.FindListener(port_, info.destination, &restores);
  if (listener == nullptr) return nullptr;
  // A connection to the redirect's own port looks as if it had not been redirected.
  // Envoy: source/extensions/filters/listener/original_dst/original_dst.cc
  const bool restored = restores && port_ != 0 && info.destination.port != port_;
  return new DownstreamConnection(envoy_, connection, std::move(listener), restored);
}

std::shared_ptr<const ListenerConfig> DataPlaneView::FindListener(uint16_t bound_port, const SocketAddress& destination,
                                                                  bool* restores) const {
  if (!process_.live()) return nullptr;
  const IpAddress wildcard = destination.ip.is_v4() ? IpAddress::V4(0) : IpAddress::V6(0, 0);
  const auto find = [&](const IpAddress& ip, uint16_t port) -> const std::shared_ptr<const ListenerConfig>* {
    const auto it = by_address_->find(SocketAddress{ip, port});
    return it == by_address_->end() ? nullptr : &it->second;
  };
  const uint16_t port = bound_port != 0 ? bound_port : destination.port;
  const std::shared_ptr<const ListenerConfig>* bound = find(destination.ip, port);
  if (bound == nullptr || !(*bound)->bind_to_port) bound = find(wildcard, port);
  if (bound == nullptr || !(*bound)->bind_to_port) return nullptr;
  *restores = (*bound)->use_original_dst || (*bound)->original_dst;
  if (!(*bound)->use_original_dst) return *bound;
  // Handed over to the listener of the original destination: its exact address, then its port on any address. Bound or
  // not does not matter. Envoy: source/common/listener_manager/connection_handler_impl.cc, getBalancedHandlerByAddress
  const std::shared_ptr<const ListenerConfig>* better = find(destination.ip, destination.port);
  if (better == nullptr) better = find(wildcard, destination.port);
  return better != nullptr ? *better : *bound;
}

void DataPlaneView::Attach(DownstreamConnection* connection) {
  connection->next = connections_;
  if (connections_ != nullptr) connections_->prev = connection;
  connections_ = connection;
}

void DataPlaneView::Detach(DownstreamConnection* connection) {
  if (connection->prev != nullptr) connection->prev->next = connection->next;
  if (connection->next != nullptr) connection->next->prev = connection->prev;
  if (connections_ == connection) connections_ = connection->next;
}

// --- lookups

ClusterRuntime* DataPlaneView::Cluster(std::string_view name) {
  const auto it = runtimes_.find(name);
  if (it != runtimes_.end()) return it->second.get();
  const std::shared_ptr<const ActiveCluster>* active = active_.Find(name);
  if (active == nullptr) return nullptr;
  std::unique_ptr<ClusterRuntime> runtime;
  if (const auto ready = ready_.find(name); ready != ready_.end()) {
    runtime = std::move(ready->second);
    ready_.erase(ready);
    runtime->Update(*active);
  } else {
    runtime = MakeRuntime(*active);
  }
  return runtimes_.emplace(std::string(name), std::move(runtime)).first->second.get();
}

std::unique_ptr<ClusterRuntime> DataPlaneView::MakeRuntime(std::shared_ptr<const ActiveCluster> active) {
  auto out = std::make_unique<ClusterRuntime>(UpstreamContext{process_, secrets_, plane_.router()}, std::move(active));
  if (out->config().type == DiscoveryType::kDynamicForward) {
    for (const auto& [host, addresses] : Names(out->config().dns_cache).Known()) out->SetNamed(host, addresses);
  }
  return out;
}

DnsCache& DataPlaneView::Names(const DnsCacheConfig& config) {
  std::unique_ptr<DnsCache>& cache = names_[config.name];
  if (cache != nullptr) return *cache;
  cache = std::make_unique<DnsCache>(
      process_, config,
      [this, name = config.name](const std::string& host, const std::vector<SocketAddress>& addresses) {
        std::map<std::string_view, ClusterRuntime*> users;
        for (const auto& [cluster, runtime] : runtimes_) {  // order: a map's
          const ClusterConfig& of = runtime->config();
          if (of.type == DiscoveryType::kDynamicForward && of.dns_cache.name == name) users[of.name] = runtime.get();
        }
        for (const auto& [cluster, runtime] : users) runtime->SetNamed(host, addresses);
      });
  return *cache;
}

void DataPlaneView::KeepReady(std::unique_ptr<ClusterRuntime> runtime) {
  const std::string name = runtime->config().name;
  ready_[name] = std::move(runtime);
}

std::shared_ptr<const RouteTable> DataPlaneView::Routes(std::string_view name) const {
  const std::shared_ptr<const RouteTable>* found = routes_->Find(name);
  return found == nullptr ? nullptr : *found;
}

HttpStats& DataPlaneView::http_stats(const std::string& prefix) {
  std::unique_ptr<HttpStats>& stats = http_stats_[prefix];
  if (stats == nullptr) stats = std::make_unique<HttpStats>();
  return *stats;
}

ListenerStats& DataPlaneView::listener_stats(const std::string& prefix) {
  std::unique_ptr<ListenerStats>& stats = listener_stats_[prefix];
  if (stats == nullptr) stats = std::make_unique<ListenerStats>();
  return *stats;
}

void DataPlaneView::AddClusterStats(std::map<std::string, uint64_t>* out) const {
  for (const auto& active : active_.All()) {
    const std::string prefix = fmt::format("cluster.{}.", active->config->name);
    const auto runtime = runtimes_.find(active->config->name);
    for (size_t i = 0; i < static_cast<size_t>(ClusterStat::kCount); ++i) {
      // A release that counts it elsewhere has no such counter.
      if (static_cast<ClusterStat>(i) == ClusterStat::kRqActiveOverflow &&
          !process_.release().Has(EnvoyChange::kActiveOverflowIsCounted))
        continue;
      const std::string_view stat = ClusterStatName(static_cast<ClusterStat>(i));
      if (active->config->health_check == nullptr && stat.starts_with("health_check.")) continue;
      (*out)[prefix + std::string(ClusterStatName(static_cast<ClusterStat>(i)))] +=
          runtime == runtimes_.end() ? 0 : runtime->second->stats()[i];
    }
    if (runtime == runtimes_.end()) {
      // Nobody asked for it yet: all that is known are its hosts.
      const bool excludes = process_.release().Has(EnvoyChange::kDrainingIsExcluded);
      uint64_t total = 0, healthy = 0, degraded = 0, excluded = 0;
      for (const LbEndpoint& e :
           active->endpoints == nullptr ? std::vector<LbEndpoint>() : active->endpoints->endpoints) {
        ++total;
        healthy += e.health == EdsHealth::kHealthy;
        degraded += e.health == EdsHealth::kDegraded;
        excluded += excludes && e.draining;
      }
      (*out)[prefix + "membership_total"] = total;
      (*out)[prefix + "membership_healthy"] = healthy;
      (*out)[prefix + "membership_degraded"] = degraded;
      (*out)[prefix + "membership_excluded"] = excluded;
      for (const char* gauge : {"upstream_cx_active", "upstream_rq_active", "upstream_rq_pending_active",
                                "circuit_breakers.default.cx_open", "circuit_breakers.default.rq_pending_open",
                                "circuit_breakers.default.rq_open", "circuit_breakers.default.rq_retry_open",
                                "circuit_breakers.default.cx_pool_open"}) {
        (*out)[prefix + gauge] = 0;
      }
      continue;
    }
    for (const auto& [name, value] : runtime->second->CodeCounters()) (*out)[prefix + name] += value;
    for (const auto& [name, value] : runtime->second->Gauges()) (*out)[prefix + name] = value;
  }
}

bool DataPlaneView::MeasuresForIstio() const {
  if (listening_ == nullptr) return false;
  const auto measures = [](const FilterChain& chain) {
    return !chain.stats.empty() || (chain.http.has_value() && !chain.http->stats.empty());
  };
  return std::any_of(listening_->items().begin(), listening_->items().end(), [&](const auto& listener) {
    return std::any_of(listener->chains.begin(), listener->chains.end(), measures);
  });
}

namespace {

// Calls `add` with the counters of a cluster that are not 0, by Envoy's names; its gauges are none.
template <typename Add>
void ForEachCount(const ClusterRuntime& runtime, Add add) {
  const std::string prefix = fmt::format("cluster.{}.", runtime.config().name);
  for (size_t i = 0; i < static_cast<size_t>(ClusterStat::kCount); ++i) {
    const auto stat = static_cast<ClusterStat>(i);
    if (stat == ClusterStat::kEjectionsActive || runtime.stats()[i] == 0) continue;
    add(prefix + std::string(ClusterStatName(stat)), runtime.stats()[i]);
  }
  for (const auto& [code, count] : runtime.CodeCounters()) add(prefix + code, count);
}

}  // namespace

std::map<std::string, uint64_t> DataPlaneView::AllStats() const {
  std::map<std::string, uint64_t> out;
  process_.ForEachCounter([&](std::string_view name, uint64_t value) { out[std::string(name)] += value; });
  AddClusterStats(&out);
  // What a cluster that is no more in use counts, those of its name go on from.
  for (const auto& runtime : retired_)
    ForEachCount(*runtime, [&out](const std::string& name, uint64_t count) { out[name] += count; });
  for (const auto& [prefix, stats] : http_stats_) {  // order: the result is sorted
    const bool of_listener = prefix.starts_with("listener.");
    for (size_t i = 0; i < stats->values.size(); ++i) {
      const HttpStat stat = static_cast<HttpStat>(i);
      const bool of_codes = stat >= HttpStat::kRqCompleted && stat <= HttpStat::kRq5xx;
      if (!of_listener || of_codes) out[prefix + std::string(HttpStatName(stat))] += stats->values[i];
    }
  }
  for (const auto& [prefix, stats] : listener_stats_) {  // order: the result is sorted
    out[prefix + "downstream_cx_total"] += stats->total;
    out[prefix + "downstream_cx_active"] += stats->active;
    out[prefix + "downstream_cx_destroy"] += stats->total - stats->active;
  }
  const auto add_histogram = [&](const IstioCounters::Histogram& h) {
    if (h.name.empty()) return;
    const auto part = [&](std::string_view name, uint64_t value) {
      out[h.name + kPartBegins + std::string(name)] += value;
    };
    uint64_t below = 0;
    for (size_t i = 0; i < h.buckets.size(); ++i) {
      below += h.buckets[i];
      part(i < IstioCounters::kBounds.size() ? fmt::format("le{:g}", IstioCounters::kBounds[i]) : "le+Inf", below);
    }
    part("sum", h.sum);
    part("count", h.count);
  };
  istio_counters_.ForEach([&](const IstioCounters::Series& series) {
    if (!series.requests_name.empty()) out[series.requests_name] += series.requests;
    if (series.has_messages) {
      if (!series.request_messages_name.empty()) out[series.request_messages_name] += series.request_messages;
      if (!series.response_messages_name.empty()) out[series.response_messages_name] += series.response_messages;
    }
    for (const IstioCounters::Histogram* const h : {&series.duration, &series.request_bytes, &series.response_bytes})
      add_histogram(*h);
  });
  for (const auto& [name, histogram] : istio_counters_.defined()) add_histogram(histogram);
  for (const auto& [name, value] : istio_counters_.others()) out[name] += value;
  for (const DownstreamConnection* c = connections_; c != nullptr; c = c->next) c->AddOpened(&out);
  if (MeasuresForIstio() && peer() != nullptr && !istio_version_.empty()) {
    out[fmt::format("istiocustom.istio_build{0}component{1}proxy{0}tag{1}{2}", kTagBegins, kTagValue, istio_version_)] =
        1;
  }
  out["cluster_manager.active_clusters"] = active_.All().size();
  out["listener_manager.total_listeners_active"] = listening_ == nullptr ? 0 : listening_->items().size();
  return out;
}

uint64_t DataPlaneView::counter(std::string_view name) const {
  const uint64_t value = process_.counter(name);
  // What clusters count, they may have begun to count before they were replaced.
  if (value > 0 && !name.starts_with("cluster.")) return value;
  const auto all = AllStats();
  const auto found = all.find(std::string(name));
  return found == all.end() ? 0 : found->second;
}

namespace {

// Its hosts stand in no table: they are those that were asked for.
bool FindsHosts(const ClusterConfig& config) {
  return config.type == DiscoveryType::kOriginalDst || config.type == DiscoveryType::kDynamicForward;
}

// Of a cluster with active health checks those that its runtime has let in; null: none has come.
const EndpointTable* TableOf(const ActiveCluster& active, const ClusterRuntime* runtime) {
  const bool checked = active.config->health_check != nullptr && runtime != nullptr;
  return (checked ? runtime->table() : active.endpoints).get();
}

}  // namespace

std::vector<EndpointsInUse> DataPlaneView::EndpointTables() const {
  std::vector<EndpointsInUse> out;
  for (const auto& active : active_.All()) {
    const auto runtime = runtimes_.find(active->config->name);
    EndpointsInUse& each = out.emplace_back();
    each.cluster = active->config->name;
    each.config = active->config.get();
    each.table = TableOf(*active, runtime == runtimes_.end() ? nullptr : runtime->second.get());
    if (FindsHosts(*active->config) && runtime != runtimes_.end()) each.dialled = runtime->second->Addresses();
  }
  return out;
}

std::vector<EndpointStatus> DataPlaneView::Endpoints() const {
  std::vector<EndpointStatus> out;
  for (const auto& active : active_.All()) {
    const auto runtime = runtimes_.find(active->config->name);
    if (FindsHosts(*active->config) && runtime != runtimes_.end()) {
      for (const SocketAddress& address : runtime->second->Addresses()) {
        EndpointStatus& s = out.emplace_back();
        s.cluster = active->config->name;
        s.address = address.ToString();
        s.weight = 1;
        s.healthy = true;
        s.outlier_ejected = runtime->second->Ejected(address);
        s.tls = active->config->socket.tls != nullptr;
      }
    }
    const EndpointTable* const endpoints =
        TableOf(*active, runtime == runtimes_.end() ? nullptr : runtime->second.get());
    if (endpoints == nullptr) continue;
    for (size_t i = 0; i < endpoints->endpoints.size(); ++i) {
      const LbEndpoint& e = endpoints->endpoints[i];
      EndpointStatus& s = out.emplace_back();
      s.cluster = active->config->name;
      s.address = e.address.ToString();
      s.weight = e.weight;
      s.priority = e.priority;
      s.locality = endpoints->localities[e.locality].Name();
      s.healthy = e.health == EdsHealth::kHealthy;
      if (runtime != runtimes_.end() && i < runtime->second->hosts().size()) {
        const HostRuntime& host = *runtime->second->hosts()[i];
        s.outlier_ejected = host.lb.ejected;
        s.failed_active_hc = host.lb.failed_check;
        s.degraded_active_hc = host.lb.degraded_check;
        s.pending_dynamic_removal = host.checked.removed;
        s.pending_active_hc = host.checked.pending;
        s.excluded_via_immediate_hc_fail = host.checked.told_to_go;
        s.active_hc_timeout = host.checked.timed_out;
      }
      const int socket = MatchTransportSocket(*active->config, e.transport_socket_match.get());
      s.tls = (socket < 0 ? active->config->socket : active->config->socket_matches[socket].socket).tls != nullptr;
    }
  }
  std::sort(out.begin(), out.end(), [](const EndpointStatus& a, const EndpointStatus& b) {
    return std::tie(a.cluster, a.priority, a.locality, a.address) <
           std::tie(b.cluster, b.priority, b.locality, b.address);
  });
  return out;
}

std::vector<std::string> DataPlaneView::ClusterNames() const {
  std::vector<std::string> out;
  for (const auto& a : active_.All()) out.push_back(a->config->name);
  return out;
}

std::vector<std::string> DataPlaneView::ListenerNames() const {
  std::vector<std::string> out;
  if (listening_ != nullptr) {
    for (const auto& l : listening_->items()) out.push_back(l->name);
  }
  return out;
}

std::vector<std::string> DataPlaneView::RouteNames() const {
  std::vector<std::string> out;
  if (routes_ != nullptr) {
    for (const auto& r : routes_->items()) out.push_back(r->name);
  }
  return out;
}

// Connections of listeners that are gone, or whose filter chain changed, drain; an equal chain of the new version
// keeps its own. Envoy: source/common/listener_manager/listener_impl.h, in-place filter chain update
void DataPlaneView::DrainStale() {
  for (DownstreamConnection* c = connections_; c != nullptr; c = c->next) {
    const auto* now = listening_->Find(c->listener().name);
    if (now != nullptr && (c->uses(*now) || c->chain() == nullptr)) continue;
    const bool kept = now != nullptr && std::any_of((*now)->chains.begin(), (*now)->chains.end(),
                                                    [&](const FilterChain& f) { return f.hash == c->chain()->hash; });
    if (!kept) c->BeginDrain();
  }
}

std::vector<std::string> DataPlaneView::SetActive(ActiveChanges changes) {
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // A cluster that changes its type leaves one set and joins the other.
  const auto is_eds = [](const ActiveCluster& active) { return active.config->type == DiscoveryType::kEds; };
  auto next_eds = NextActive(*active_.eds, changes, is_eds);
  auto next_others = NextActive(*active_.others, changes, [&](const ActiveCluster& a) { return !is_eds(a); });
  std::vector<std::string> gone;
  if (next_eds != nullptr || next_others != nullptr) {
    gone = Adopt({next_eds == nullptr ? active_.eds : std::move(next_eds),
                  next_others == nullptr ? active_.others : std::move(next_others)},
                 changes);
  }
  ready_.clear();  // of what is just as before, the one in use stays
  return gone;
}

std::vector<std::shared_ptr<const ActiveCluster>> ActiveSets::All() const {
  std::vector<std::shared_ptr<const ActiveCluster>> out;
  if (eds == nullptr) return out;
  out.reserve(eds->items().size() + others->items().size());
  std::merge(eds->items().begin(), eds->items().end(), others->items().begin(), others->items().end(),
             std::back_inserter(out), [](const auto& a, const auto& b) { return NameOf(*a) < NameOf(*b); });
  return out;
}

std::shared_ptr<const NamedSet<ActiveCluster>> DataPlaneView::NextActive(
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
  return changed ? plane_.configs().Of(process_.release()).Intern<ActiveCluster>(std::move(next)) : nullptr;
}

std::vector<std::string> DataPlaneView::Adopt(ActiveSets next, const ActiveChanges& changes) {
  active_ = std::move(next);
  ++epoch_;
  std::vector<std::string> gone;
  AdoptInRuntimes(changes, &gone);
  // A cluster with slow start has to know how old each of its hosts is before anybody asks for one; health checks go on
  // whether anybody asks or not.
  for (const auto& [name, active] : changes) {
    if (active == nullptr) continue;
    const ClusterConfig& config = *active->config;
    if (config.lb.slow_start_window > Duration::zero() || config.health_check != nullptr) Cluster(name);
  }
  return gone;
}

void DataPlaneView::AdoptInRuntimes(const ActiveChanges& changes, std::vector<std::string>* gone) {
  if (!has_runtimes()) return;
  for (const auto& [name, active] : changes) {
    const auto it = runtimes_.find(name);
    if (it == runtimes_.end()) continue;
    if (active != nullptr && active->config->hash == it->second->config().hash) {
      it->second->Update(active);
    } else {
      if (RetireRuntime(name)) gone->push_back(name);
    }
  }
  for (const auto& runtime : retired_) Fold(runtime.get());
  std::erase_if(retired_, [](const auto& runtime) { return runtime->idle(); });
}

void DataPlaneView::Fold(ClusterRuntime* runtime) {
  ForEachCount(*runtime, [this](const std::string& name, uint64_t count) { Counter(name) += count; });
  runtime->ForgetCounts();
}

// A removed or changed cluster: what runs on it runs out; a successor starts from nothing, its counters excepted.
bool DataPlaneView::RetireRuntime(const std::string& name) {
  const auto it = runtimes_.find(name);
  std::unique_ptr<ClusterRuntime> runtime = std::move(it->second);
  runtimes_.erase(it);
  Fold(runtime.get());
  runtime->Retire();
  retired_.push_back(std::move(runtime));
  return active_.Find(name) == nullptr;
}

}  // namespace wavetank::envoysim
