#include "fakes/envoy/envoy.h"

#include <algorithm>
#include <utility>

#include "envoy/config/cluster/v3/cluster.pb.h"
#include "fakes/envoy/envoy_impl.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

constexpr uint16_t kOutboundPort = 15001;
constexpr uint16_t kInboundPort = 15006;

}  // namespace

// --- DataPlane

DataPlane::DataPlane(Host& host, Network& network, const Options& options)
    : options_(options),
      fabric_([&] {
        Fabric::Options f;
        f.tcp_hop = options.latencies.tcp_hop;
        return std::make_unique<Fabric>(host, network, f);
      }()),
      configs_(std::make_unique<ConfigStore>(options.extensions)),
      tls_(std::make_unique<TlsSessions>()),
      router_(std::make_unique<Router>(*this)) {}

DataPlane::~DataPlane() = default;

// --- lifecycle

Envoy::Impl::Impl(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options)
    : plane_(plane),
      context_(context),
      host_(context.host()),
      options_(options),
      trace_name_(host_.Intern(options.name)),
      random_(plane.options().seed, fmt::format("envoy/{}", options.name)),
      outbound_(*this, kOutboundPort),
      inbound_(*this, kInboundPort),
      direct_(*this, 0) {}

Envoy::Impl::~Impl() { Stop(StopKind::kKill); }

RandomStream Envoy::Impl::NewStream(std::string_view purpose) const {
  return RandomStream(plane_.options().seed, fmt::format("envoy/{}/{}/{}", options_.name, lives_, purpose));
}

Duration Envoy::Impl::Draw(const LatencyRange& range) {
  if (range.max <= range.min) return range.min;
  return Duration(random_.Between(range.min.count(), range.max.count()));
}

void Envoy::Impl::Start() {
  if (running_) return;
  running_ = true;
  ++lives_;
  random_ = NewStream("main");
  life_ = std::make_shared<Life>(Life{this});
  ConfigStore& store = plane_.configs();
  clusters_ = store.Intern<ClusterConfig>({});
  endpoints_ = store.Intern<EndpointTable>({});
  listeners_ = store.Intern<ListenerConfig>({});
  routes_ = store.Intern<RouteTable>({});
  active_ = {store.Intern<ActiveCluster>({}), store.Intern<ActiveCluster>({})};
  listening_ = listeners_;
  by_address_ = store.ByAddress(listening_);
  start_timer_ = host_.RunAfter(Draw(plane_.options().latencies.start), [this] {
    start_timer_ = kNoTimer;
    LoadBootstrap();
    if (!options_.has_ads) {
      cds_received_ = lds_received_ = lds_subscribed_ = true;
      CheckLive();
      return;
    }
    AdsClient::Options ads;
    ads.protocol = options_.protocol;
    ads.backoff_base = options_.xds_retry_base;
    ads.backoff_max = options_.xds_retry_max;
    ads_ = std::make_unique<AdsClient>(host_, context_.ads(), *this, ads, NewStream("ads"));
    ads_->Start();
    ads_->Subscribe(XdsType::kCds, nullptr);
    if (options_.initial_fetch_timeout > Duration::zero()) {
      init_timer_ = host_.RunAfter(options_.initial_fetch_timeout, [this] {
        init_timer_ = kNoTimer;
        cds_received_ = true;
        ClustersMayBeWarm();
      });
    }
  });
}

void Envoy::Impl::Stop(StopKind kind) {
  if (!running_) return;
  running_ = live_ = draining_ = false;
  lds_subscribed_ = lds_received_ = cds_received_ = eds_waits_ = false;
  life_.reset();
  for (TimerId* timer : {&start_timer_, &main_thread_timer_, &init_timer_, &warming_timer_}) {
    host_.Cancel(*timer);
    *timer = kNoTimer;
  }
  for (WarmingListener& w : warming_listeners_) host_.Cancel(w.timeout);
  for (DrainingListener& d : draining_listeners_) host_.Cancel(d.timer);
  for (const auto& d : dns_) CancelDns(*d);
  ads_.reset();
  queue_.clear();
  processing_ = false;
  while (connections_ != nullptr) connections_->Abort(kind);
  // Sockets close in an order that does not depend on a hash.
  std::vector<std::pair<std::string_view, ClusterRuntime*>> runtimes;
  for (const auto& [name, runtime] : runtimes_) runtimes.emplace_back(name, runtime.get());
  std::sort(runtimes.begin(), runtimes.end());
  for (const auto& [name, runtime] : runtimes) runtime->Abort(kind);
  for (const auto& runtime : retired_) runtime->Abort(kind);
  runtimes_.clear();
  retired_.clear();
  route_cache_.slots.reset();
  warming_clusters_.clear();
  warming_listeners_.clear();
  draining_listeners_.clear();
  secrets_.clear();
  dns_.clear();
  pending_cds_ = pending_lds_ = Pending{};
  counters_.reset();
  clusters_.reset();
  endpoints_.reset();
  listeners_.reset();
  routes_.reset();
  active_ = {};
  listening_.reset();
  by_address_.reset();
  ++epoch_;
  ++secrets_epoch_;
}

void Envoy::Impl::Drain() {
  if (!running_ || draining_) return;
  draining_ = true;
}

void Envoy::Impl::LoadBootstrap() {
  if (options_.bootstrap == nullptr) return;
  ConfigStore& store = plane_.configs();
  for (const std::string& bytes : options_.bootstrap->clusters) {
    const Decoded<ClusterConfig>& decoded = store.Cluster(bytes);
    if (decoded.value == nullptr) continue;
    WarmCluster(decoded.value);
  }
  PromoteClusters();
  AwaitEndpoints();
  for (const std::string& bytes : options_.bootstrap->listeners) {
    const Decoded<ListenerConfig>& decoded = store.Listener(bytes);
    if (decoded.value != nullptr) WarmListener(decoded.value);
  }
  PromoteListeners();
}

// --- listening

ConnectionHandler* Envoy::Impl::ListenSocket::Accept(ConnectionId connection, const AcceptInfo& info) {
  bool restores = false;
  std::shared_ptr<const ListenerConfig> listener = envoy_.FindListener(port_, info.destination, &restores);
  if (listener == nullptr) return nullptr;
  // A connection to the redirect's own port looks as if it had not been redirected.
  // Envoy: source/extensions/filters/listener/original_dst/original_dst.cc
  const bool restored = restores && port_ != 0 && info.destination.port != port_;
  return new DownstreamConnection(envoy_, connection, std::move(listener), restored);
}

std::shared_ptr<const ListenerConfig> Envoy::Impl::FindListener(uint16_t bound_port, const SocketAddress& destination,
                                                                bool* restores) const {
  if (!live_) return nullptr;
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

void Envoy::Impl::Attach(DownstreamConnection* connection) {
  connection->next = connections_;
  if (connections_ != nullptr) connections_->prev = connection;
  connections_ = connection;
}

void Envoy::Impl::Detach(DownstreamConnection* connection) {
  if (connection->prev != nullptr) connection->prev->next = connection->next;
  if (connection->next != nullptr) connection->next->prev = connection->prev;
  if (connections_ == connection) connections_ = connection->next;
}

// --- lookups

ClusterRuntime* Envoy::Impl::Cluster(std::string_view name) {
  const auto it = runtimes_.find(name);
  if (it != runtimes_.end()) return it->second.get();
  const std::shared_ptr<const ActiveCluster>* active = active_.Find(name);
  if (active == nullptr) return nullptr;
  return runtimes_.emplace(std::string(name), std::make_unique<ClusterRuntime>(*this, *active)).first->second.get();
}

std::shared_ptr<const RouteTable> Envoy::Impl::Routes(std::string_view name) const {
  const std::shared_ptr<const RouteTable>* found = routes_->Find(name);
  return found == nullptr ? nullptr : *found;
}

TlsParty Envoy::Impl::Party(const std::shared_ptr<const TlsContext>& context) const {
  TlsParty party;
  party.context = context;
  party.certificate = context->certificate;
  party.trusted_ca = context->trusted_ca;
  if (const SecretState* s = FindSecret(context->certificate_secret)) party.certificate = s->secret.certificate;
  if (const SecretState* s = FindSecret(context->validation_secret)) party.trusted_ca = s->secret.trusted_ca;
  return party;
}

uint64_t& Envoy::Impl::Counter(std::string_view name) {
  if (counters_ == nullptr) counters_ = std::make_unique<StringMap<uint64_t>>();
  const auto it = counters_->find(name);
  if (it != counters_->end()) return it->second;
  return counters_->emplace(std::string(name), 0).first->second;
}

uint64_t Envoy::Impl::counter(std::string_view name) const {
  uint64_t value = 0;
  if (counters_ != nullptr) {
    if (const auto it = counters_->find(name); it != counters_->end()) value = it->second;
  }
  constexpr std::string_view kCluster = "cluster.";
  if (!name.starts_with(kCluster)) return value;
  for (size_t i = 0; i < static_cast<size_t>(ClusterStat::kCount); ++i) {
    const std::string_view stat = ClusterStatName(static_cast<ClusterStat>(i));
    if (!name.ends_with(stat) || name.size() < kCluster.size() + stat.size() + 1) continue;
    const std::string_view cluster = name.substr(kCluster.size(), name.size() - kCluster.size() - stat.size() - 1);
    const auto it = runtimes_.find(cluster);
    if (it != runtimes_.end()) value += it->second->stats()[i];
  }
  return value;
}

std::vector<EndpointStatus> Envoy::Impl::Endpoints() {
  std::vector<EndpointStatus> out;
  for (const auto& active : active_.All()) {
    const auto runtime = runtimes_.find(active->config->name);
    if (active->config->type == DiscoveryType::kOriginalDst && runtime != runtimes_.end()) {
      for (const SocketAddress& address : runtime->second->Addresses()) {
        EndpointStatus& s = out.emplace_back();
        s.cluster = active->config->name;
        s.address = address.ToString();
        s.weight = 1;
        s.healthy = true;
        s.tls = active->config->socket.tls != nullptr;
      }
    }
    if (active->endpoints == nullptr) continue;
    for (size_t i = 0; i < active->endpoints->endpoints.size(); ++i) {
      const LbEndpoint& e = active->endpoints->endpoints[i];
      EndpointStatus& s = out.emplace_back();
      s.cluster = active->config->name;
      s.address = e.address.ToString();
      s.weight = e.weight;
      s.priority = e.priority;
      s.locality = active->endpoints->localities[e.locality].Name();
      s.healthy = e.health == EdsHealth::kHealthy;
      if (runtime != runtimes_.end() && i < runtime->second->hosts().size()) {
        s.outlier_ejected = runtime->second->hosts()[i]->lb.ejected;
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

std::vector<std::string> Envoy::Impl::ClusterNames() const {
  std::vector<std::string> out;
  for (const auto& a : active_.All()) out.push_back(a->config->name);
  return out;
}

std::vector<std::string> Envoy::Impl::ListenerNames() const {
  std::vector<std::string> out;
  if (listening_ != nullptr) {
    for (const auto& l : listening_->items()) out.push_back(l->name);
  }
  return out;
}

std::vector<std::string> Envoy::Impl::RouteNames() const {
  std::vector<std::string> out;
  if (routes_ != nullptr) {
    for (const auto& r : routes_->items()) out.push_back(r->name);
  }
  return out;
}

// --- the public face

Envoy::Envoy(DataPlane& plane, EnvoyContext& context, const EnvoyOptions& options)
    : impl_(std::make_unique<Impl>(plane, context, options)) {}
Envoy::~Envoy() = default;
void Envoy::Start() { impl_->Start(); }
void Envoy::Stop(StopKind kind) { impl_->Stop(kind); }
void Envoy::Drain() { impl_->Drain(); }
bool Envoy::running() const { return impl_->running(); }
bool Envoy::live() const { return impl_->live(); }
bool Envoy::draining() const { return impl_->draining(); }
bool Envoy::ads_connected() const { return impl_->connected(); }
Acceptor& Envoy::outbound() { return impl_->outbound(); }
Acceptor& Envoy::inbound() { return impl_->inbound(); }
Acceptor& Envoy::direct() { return impl_->direct(); }
std::string_view Envoy::accepted_version(XdsType type) const { return impl_->accepted_version(type); }
std::vector<EndpointStatus> Envoy::Endpoints() const { return impl_->Endpoints(); }
std::vector<std::string> Envoy::ClusterNames() const { return impl_->ClusterNames(); }
std::vector<std::string> Envoy::ListenerNames() const { return impl_->ListenerNames(); }
std::vector<std::string> Envoy::RouteNames() const { return impl_->RouteNames(); }
uint64_t Envoy::counter(std::string_view name) const { return impl_->counter(name); }

}  // namespace wavetank::envoysim
