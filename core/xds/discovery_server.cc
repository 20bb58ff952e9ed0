#include "core/xds/discovery_server.h"

#include <fmt/format.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/random.h"
#include "core/config/mesh/mesh_config.h"
#include "core/kube/time_format.h"

namespace wavetank::pilot {

// The client's end of a stream.
class DiscoveryServer::Handle final : public AdsConnection {
 public:
  explicit Handle(ConnectionRef connection) : connection_(std::move(connection)) {}
  ~Handle() override { connection_->HangUp(); }
  void OnRequest(DiscoveryRequest request) override { connection_->Receive(std::move(request)); }
  void OnDeltaRequest(DeltaDiscoveryRequest request) override { connection_->Receive(std::move(request)); }

 private:
  ConnectionRef connection_;
};

DiscoveryServer::DiscoveryServer(Host& host, EnvironmentSource environment, Options options)
    : host_(host),
      environment_(std::move(environment)),
      options_(std::move(options)),
      push_order_(options_.push_order),
      trace_name_(host.Intern(options_.name)),
      cache_(options_.cache),
      debouncer_(host, options_.debounce,
                 [this](PushRequest request, Callback done) { Push(std::move(request), std::move(done)); }),
      queue_(host),
      limiter_(options_.requests_per_second),
      nonce_prefix_(fmt::format("{:016x}", HashName(options_.name))) {
  for (int i = 0; i < kXdsTypes; ++i) {
    type_names_[static_cast<size_t>(i)] = host.Intern(ShortTypeName(static_cast<XdsType>(i)));
  }
}

DiscoveryServer::~DiscoveryServer() = default;

void DiscoveryServer::SetGenerator(std::string_view name, XdsType type, Generator* generator) {
  named_generators_.try_emplace(std::string(name)).first->second[static_cast<size_t>(type)] = generator;
}

Generator* DiscoveryServer::FindGenerator(XdsType type, const Proxy& proxy) const {
  const auto index = static_cast<size_t>(type);
  if (!proxy.metadata.generator.empty()) {
    const auto named = named_generators_.find(proxy.metadata.generator);
    if (named != named_generators_.end() && named->second[index] != nullptr) return named->second[index];
  }
  return generators_[index];
}

void DiscoveryServer::Shutdown(const absl::Status& status) {
  shut_down_ = true;
  const std::map<uint64_t, ConnectionRef> streams = streams_;
  for (const auto& [number, connection] : streams) connection->Close(status);
}

std::unique_ptr<AdsConnection> DiscoveryServer::Connect(Peer peer, AdsStream& stream, AuthenticatePeer authenticate) {
  const uint64_t number = next_stream_++;
  const NameId address = host_.Intern(peer.address);
  auto connection = std::make_shared<Connection>(*this, number, std::move(peer), std::move(authenticate), stream);
  streams_.emplace(number, connection);
  const auto later = [&](Duration delay, auto fn) {
    host_.RunAfter(delay, [connection, fn = std::move(fn), alive = std::weak_ptr<char>(alive_)] {
      if (!alive.expired()) fn(*connection);
    });
  };
  if (!ready_ || shut_down_) {
    later(Duration::zero(),
          [](Connection& c) { c.Close(absl::UnavailableError("server is not ready to serve discovery information")); });
  } else if (const auto wait = limiter_.Reserve(host_.Now(), options_.request_patience)) {
    later(*wait, [](Connection& c) { c.Open(); });
  } else {
    host_.Emit({TraceKind::kXdsRejected, trace_name_, address, 0, 0, {}});
    later(Duration::zero(), [](Connection& c) {
      c.Close(
          absl::ResourceExhaustedError("request rate limit exceeded: rate: Wait(n=1) would exceed context deadline"));
    });
  }
  return std::make_unique<Handle>(std::move(connection));
}

// Events.

void DiscoveryServer::ClearCacheOf(std::string_view hostname, std::string_view ns) {
  cache_.Clear({{ConfigKind::kServiceEntry, std::string(hostname), std::string(ns)}}, host_.Now());
}

// istiod: pilot/pkg/xds/eds.go, edsCacheUpdate.
void DiscoveryServer::LogEndpoints(const ShardKey& shard, std::string_view hostname, std::string_view ns, bool none,
                                   bool known, EndpointIndex::PushType push) const {
  std::string text;
  if (none) {
    text = fmt::format("Incremental push, service {} at shard {}/{} has no endpoints", hostname,
                       ProviderName(shard.provider), shard.cluster.str());
  } else if (!known) {
    text = fmt::format("Full push, new service {}/{}", ns, hostname);
  } else if (push == EndpointIndex::PushType::kFull) {
    text = fmt::format("Full push, service accounts changed, {}", hostname);
  }
  if (!text.empty()) options_.log({.scope = "ads", .text = std::move(text)});
}

EndpointIndex::PushType DiscoveryServer::UpdateEndpoints(const ShardKey& shard, std::string_view hostname,
                                                         std::string_view ns, EndpointList endpoints) {
  const bool known = !options_.log || endpoints_.Find(hostname, ns) != nullptr;
  const bool none = endpoints.empty();
  const auto push = endpoints_.UpdateServiceEndpoints(shard, hostname, ns, std::move(endpoints));
  if (options_.log) LogEndpoints(shard, hostname, ns, none, known, push);
  // Already now: a request that is answered before the push sees the new endpoints.
  ClearCacheOf(hostname, ns);
  return push;
}

void DiscoveryServer::EdsUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                EndpointList endpoints) {
  const auto push = UpdateEndpoints(shard, hostname, ns, std::move(endpoints));
  if (push == EndpointIndex::PushType::kNone) return;
  PushRequest request;
  request.full = push == EndpointIndex::PushType::kFull;
  request.configs_updated.insert({ConfigKind::kServiceEntry, std::string(hostname), std::string(ns)});
  request.reasons = Reason(TriggerReason::kEndpoint);
  ConfigUpdate(std::move(request));
}

void DiscoveryServer::EdsCacheUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns,
                                     EndpointList endpoints) {
  UpdateEndpoints(shard, hostname, ns, std::move(endpoints));
}

void DiscoveryServer::SvcUpdate(const ShardKey& shard, std::string_view hostname, std::string_view ns, Event event) {
  if (event != Event::kDelete) return;
  endpoints_.DeleteServiceShard(shard, hostname, ns, false);
  ClearCacheOf(hostname, ns);
}

void DiscoveryServer::RemoveShard(const ShardKey& shard) {
  endpoints_.DeleteShard(shard);
  cache_.ClearAll(host_.Now());
}

void DiscoveryServer::ConfigUpdate(PushRequest request) {
  if (request.HasConfigsOfKind(ConfigKind::kAddress)) cache_.ClearAll(host_.Now());
  request.cause = host_.MergeCauses(request.cause, host_.cause());
  request.start = host_.Now();
  NameId key = kNoName;
  if (!request.configs_updated.empty()) {
    const ConfigKey& first = *request.configs_updated.begin();
    key = host_.Intern(fmt::format("{}/{}/{}", ConfigKindName(first.kind), first.ns, first.name));
  }
  host_.Emit({TraceKind::kConfigUpdate, trace_name_, key, request.full ? 1 : 0, 0, {}});
  if (options_.log) {
    for (const std::string_view reason : ReasonNames(request.reasons)) gathered_.push_back(reason);
    last_gathered_ = host_.Now();
  }
  debouncer_.Add(std::move(request));
}

void DiscoveryServer::ProxyUpdate(const ClusterId& cluster, std::string_view ip) {
  static const std::set<uint64_t> kNone;
  const auto at_ip = clients_by_ip_.find(absl::string_view(ip.data(), ip.size()));
  for (const uint64_t number : at_ip == clients_by_ip_.end() ? kNone : at_ip->second) {
    const ConnectionRef& connection = clients_.at(number);
    if (!connection->initialized() || connection->proxy().cluster() != cluster) continue;
    auto request = std::make_shared<PushRequest>();
    request->full = true;
    request->push = push_context();
    request->start = host_.Now();
    request->reasons = Reason(TriggerReason::kProxy);
    request->cause = host_.cause();
    NoteQueued(*connection);
    queue_.Enqueue(connection, request);
    break;
  }
  SendPushes();
}

// Pushes.

Environment DiscoveryServer::CurrentEnvironment() {
  Environment environment = environment_();
  environment.endpoints = &endpoints_;
  return environment;
}

const PushContextRef& DiscoveryServer::push_context() {
  if (push_context_ == nullptr) {
    PushRequest everything;
    everything.full = true;
    push_context_ = PushContext::Create(CurrentEnvironment(), nullptr, everything, "");
  }
  return push_context_;
}

void DiscoveryServer::DropCache(const PushRequest& request) {
  if (request.configs_updated.empty()) {
    cache_.ClearAll(host_.Now());
  } else {
    cache_.Clear(request.configs_updated, host_.Now());
  }
}

// istiod: pilot/pkg/xds/discovery.go, debounce, configsUpdated, reasonsUpdated. Which key of several it names is a
// matter of a Go map; here the first.
void DiscoveryServer::LogDebounced(const PushRequest& request) {
  ++debounced_;
  if (!options_.log) return;
  std::string what = "reason unknown";
  if (const auto& keys = request.configs_updated; !keys.empty()) {
    const ConfigKey& first = *keys.begin();
    what = DebouncedConfigs(fmt::format("{}/{}/{}", ConfigKindName(first.kind), first.ns, first.name), keys.size());
  } else if (gathered_.size() == 1) {
    what = fmt::format("reason {}", gathered_[0]);
  } else if (gathered_.size() == 2) {
    what = fmt::format("reason {} and {}", gathered_[0], gathered_[1]);
  } else if (!gathered_.empty()) {
    what = fmt::format("reason {} and {} more reasons", gathered_[0], gathered_.size() - 1);
  }
  gathered_.clear();
  options_.log({.scope = "ads",
                .text = DebouncedLine(debounced_, request.events, what, host_.Now() - last_gathered_,
                                      host_.Now() - request.start, request.full)});
}

// istiod: pilot/pkg/xds/ads.go, AdsPushAll.
void DiscoveryServer::LogPushing(const PushRequest& request) const {
  if (!options_.log || request.push == nullptr) return;
  const std::string& version = request.push->version();
  options_.log({.scope = "ads",
                .text = request.full
                            ? fmt::format("XDS: Pushing:{} Services:{} ConnectedEndpoints:{} Version:{}", version,
                                          request.push->GetAllServices().size(), clients_.size(), version)
                            : fmt::format("XDS: Incremental Pushing:{} ConnectedEndpoints:{} Version:{}", version,
                                          clients_.size(), version)});
}

void DiscoveryServer::Push(PushRequest request, Callback done) {
  observer().OnPush(request);
  LogDebounced(request);
  host_.Emit({TraceKind::kDebounced, trace_name_, kNoName, request.events, request.full ? 1 : 0, {}});
  if (!request.full) {
    request.push = push_context();
    DropCache(request);
    return host_.Spend({WorkKind::kPushContextInit, 0}, [this, request = std::move(request), done = std::move(done),
                                                         alive = std::weak_ptr<char>(alive_)]() mutable {
      if (!alive.expired()) StartPush(std::move(request), std::move(done));
    });
  }
  const uint64_t number = ++pushes_;
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(host_.Now().time_since_epoch()).count();
  const PushContextRef made =
      PushContext::Create(CurrentEnvironment(), push_context_.get(), request,
                          fmt::format("{}/{}", kube::FormatRfc3339(kWorldEpochUnixSeconds + seconds), number));
  made->AddConcrete(request.configs_updated);
  const Work work{WorkKind::kPushContextInit, static_cast<int64_t>(made->GetAllServices().size()),
                  static_cast<int64_t>(endpoints_.EndpointCount())};
  host_.Spend(work, [this, number, made, request = std::move(request), done = std::move(done),
                     alive = std::weak_ptr<char>(alive_)]() mutable {
    if (alive.expired()) return;
    // istiod reads its push number as a version: an older context never replaces a newer one.
    WAVETANK_ASSERT(number <= pushes_, number, pushes_);
    push_context_ = made;
    DropCache(request);
    host_.Emit({TraceKind::kPushContextReady, trace_name_, kNoName, static_cast<int64_t>(number), 0, {}});
    request.push = made;
    StartPush(std::move(request), std::move(done));
  });
}

std::vector<DiscoveryServer::ConnectionRef> DiscoveryServer::InPushOrder() {
  std::vector<ConnectionRef> out;
  out.reserve(clients_.size());
  for (const auto& [number, connection] : clients_) out.push_back(connection);
  if (push_order_) {
    for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[push_order_->Below(i)]);
  }
  if (BuggifyFires(BuggifyPoint::kPushOrder)) {
    for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[BuggifyBelow(BuggifyPoint::kPushOrder, i)]);
  }
  return out;
}

void DiscoveryServer::StartPush(PushRequest request, Callback done) {
  host_.Spend(
      {WorkKind::kPushStart, static_cast<int64_t>(clients_.size())},
      [this, request = std::move(request), done = std::move(done), alive = std::weak_ptr<char>(alive_)]() mutable {
        if (alive.expired()) return;
        request.start = host_.Now();
        LogPushing(request);
        const auto shared = std::make_shared<const PushRequest>(std::move(request));
        const std::vector<ConnectionRef> connections = InPushOrder();
        for (const ConnectionRef& connection : connections) NoteQueued(*connection);
        queue_.Enqueue(connections, shared);
        done();
        SendPushes();
      });
}

void DiscoveryServer::NoteQueued(const Connection& connection) {
  host_.Emit({TraceKind::kPushQueued, connection.trace_name(), kNoName, 0, 0, {}});
}

// One proxy after the other leaves the queue, and every change that was merged into its push is counted in a metric
// before the next one may leave. istiod: pilot/pkg/xds/discovery.go, doSendPushes; monitoring.go, recordPushTriggers.
void DiscoveryServer::SendPushes() {
  if (sending_ || in_flight_ >= options_.push_throttle || queue_.empty()) return;
  sending_ = true;
  ++in_flight_;
  auto [connection, request] = queue_.Dequeue();
  const ScopedCause cause(host_, request->cause);
  const Work work{WorkKind::kPushStart, 0, request->events};
  host_.Spend(work, [this, connection = std::move(connection), request = std::move(request),
                     alive = std::weak_ptr<char>(alive_)]() mutable {
    if (alive.expired()) return;
    host_.Emit({TraceKind::kPushDequeued,
                connection->trace_name(),
                kNoName,
                (host_.Now() - connection->slot.queued).count(),
                0,
                {}});
    sending_ = false;
    SendPushes();  // goes on at once; the connection's own goroutine takes its turn
    connection->Push(std::move(request));
  });
}

void DiscoveryServer::OnPushDone(const ConnectionRef& connection) {
  WAVETANK_ASSERT(in_flight_ > 0, in_flight_);
  WAVETANK_ASSERT(in_flight_ <= options_.push_throttle, in_flight_, options_.push_throttle);
  --in_flight_;
  queue_.MarkDone(connection);
  SendPushes();
}

// Connections.

std::string DiscoveryServer::NewConnectionId(std::string_view proxy_id) {
  return fmt::format("{}-{}", proxy_id, next_connection_++);
}

std::string DiscoveryServer::NewNonce() { return absl::StrCat(nonce_prefix_, "-", next_nonce_++); }

NameId DiscoveryServer::ProxyTraceName(const Proxy& proxy) {
  if (options_.proxy_name) return host_.Intern(options_.proxy_name(proxy));
  return host_.Intern(fmt::format("{}@{}", proxy.id, proxy.cluster().str()));
}

void DiscoveryServer::OnConnected(const ConnectionRef& connection) {
  WAVETANK_ASSERT(!connection->proxy().ip_addresses.empty());
  WAVETANK_ASSERT(streams_.contains(connection->number()), connection->number());
  const bool fresh = clients_.emplace(connection->number(), connection).second;
  WAVETANK_ASSERT(fresh, connection->number());
  clients_by_ip_[connection->proxy().ip_addresses.front()].insert(connection->number());
}

void DiscoveryServer::OnInitialized(const Connection& connection) {
  host_.Emit({TraceKind::kXdsConnected, connection.trace_name(), trace_name_, 0, 0, connection.id()});
  on_connection_event.Tell({ConnectionEvent::Kind::kConnect, connection});
}

void DiscoveryServer::OnClosed(const ConnectionRef& connection) {
  streams_.erase(connection->number());
  if (clients_.erase(connection->number()) == 0) return;
  if (const auto at_ip = clients_by_ip_.find(connection->proxy().ip_addresses.front()); at_ip != clients_by_ip_.end()) {
    at_ip->second.erase(connection->number());
    if (at_ip->second.empty()) clients_by_ip_.erase(at_ip);
  }
  host_.Emit({TraceKind::kXdsDisconnected, connection->trace_name(), trace_name_, 0, 0, connection->id()});
  on_connection_event.Tell({ConnectionEvent::Kind::kDisconnect, *connection});
}

std::vector<const Connection*> DiscoveryServer::Clients() const {
  std::vector<const Connection*> out;
  for (const auto& [number, connection] : clients_) out.push_back(connection.get());
  return out;
}

}  // namespace wavetank::pilot
