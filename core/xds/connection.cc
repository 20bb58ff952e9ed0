#include "core/xds/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/status.h"
#include "core/model/proxyless.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "core/security/authenticator.h"
#include "core/xds/discovery_server.h"
#include "core/xds/generation_gate.h"
#include "core/xds/proxy_state.h"

namespace wavetank::pilot {
namespace {

// What gRPC takes of a stream before the sender must wait for the wire, while others work. gRPC-Go:
// internal/transport/defaults.go, defaultWriteQuota.
constexpr int64_t kWriteQuota = 64 * 1024;

// By the protocol, or by istiod's own convention for its own types: no names means everything.
bool IsWildcardType(XdsType type) {
  return type == XdsType::kCds || type == XdsType::kLds || type == XdsType::kNds || type == XdsType::kPcds;
}

std::vector<std::string> SortedUnique(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The same, without a copy of names that are so already, as Envoys send them.
SharedVector<std::string> SortedUnique(const SharedVector<std::string>& names) {
  const bool is = std::adjacent_find(names.begin(), names.end(), std::greater_equal<>()) == names.end();
  return is ? names : SharedVector<std::string>(SortedUnique(names.list()));
}

std::set<std::string> Difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::set<std::string> out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

// What a delta request leaves subscribed. istiod: deltaWatchedResources.
std::vector<std::string> DeltaNames(const std::vector<std::string>& before, const DeltaDiscoveryRequest& request) {
  std::set<std::string> names(before.begin(), before.end());
  names.insert(request.resource_names_subscribe.begin(), request.resource_names_subscribe.end());
  for (const auto& [name, version] : request.initial_resource_versions) names.insert(name);
  for (const std::string& name : request.resource_names_unsubscribe) names.erase(name);
  names.erase("*");
  return {names.begin(), names.end()};
}

Work GenerationWork(XdsType type, const GeneratedResources& generated, int64_t bytes) {
  const auto resources = static_cast<int64_t>(generated.resources.size());
  Work work{.kind = WorkKind::kGenerateRds, .units = resources, .extra = bytes};
  switch (type) {
    case XdsType::kCds:
      work.kind = WorkKind::kGenerateCds;
      break;
    case XdsType::kEds:
      work.kind = WorkKind::kGenerateEds;
      work.extra = generated.endpoints;
      break;
    case XdsType::kLds:
    case XdsType::kEcds:
      work.kind = WorkKind::kGenerateLds;
      break;
    case XdsType::kSds:
      work = {.kind = WorkKind::kGenerateSds, .units = resources};
      break;
    case XdsType::kRds:
    case XdsType::kNds:
    case XdsType::kPcds:
      break;
  }
  work.cached = generated.cached > 0 && generated.cached * 2 >= resources;
  return work;
}

bool ReportsHealth(const Connection::Request& request) {
  return std::visit([](const auto& r) { return r.type; }, request) == kHealthReport;
}

int64_t NameCount(const Connection::Request& request) {
  if (const auto* sotw = std::get_if<DiscoveryRequest>(&request)) {
    return static_cast<int64_t>(sotw->resource_names.size());
  }
  const auto& delta = std::get<DeltaDiscoveryRequest>(request);
  return static_cast<int64_t>(delta.resource_names_subscribe.size() + delta.resource_names_unsubscribe.size());
}

}  // namespace

Connection::Connection(DiscoveryServer& server, uint64_t number, Peer peer, AuthenticatePeer authenticate,
                       AdsStream& stream)
    : server_(&server),
      server_life_(server.life()),
      number_(number),
      peer_(std::move(peer)),
      authenticate_(std::move(authenticate)),
      stream_(stream),
      connected_at_(server.host().Now()) {}

void Connection::Open() {
  if (closed()) return;
  if (!authenticate_ || !server_->options().xds_auth) return Authenticated();
  authenticate_([self = shared_from_this()](absl::StatusOr<std::vector<std::string>> identities) {
    if (self->closed()) return;
    self->peer_.authenticated = true;
    self->peer_.identities.clear();
    if (identities.ok()) self->peer_.identities = *std::move(identities);
    // The answer may come at once, from inside a call of the transport.
    self->server_->host().Post([self] {
      if (!self->closed()) self->Authenticated();
    });
  });
}

void Connection::Authenticated() {
  authenticate_ = nullptr;
  if (server_->options().xds_auth && peer_.authenticated && peer_.identities.empty()) {
    return Close(absl::UnauthenticatedError("authentication failure"));
  }
  open_ = true;
  Next();
}

void Connection::Receive(Request request) {
  if (closed()) return;
  incoming_.push_back({std::move(request), server_->host().cause()});
  Next();
}

void Connection::Push(PushRequestRef request) {
  WAVETANK_ASSERT(request != nullptr, id_);
  WAVETANK_ASSERT(event_ == nullptr, id_);  // the queue gives the next one when this one is done
  event_ = std::move(request);
  if (closed()) return FinishPush();
  Next();
}

void Connection::Close(const absl::Status& status) {
  if (closed()) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  stream_.Close(status);
  HangUp();
}

void Connection::HangUp() {
  if (closed()) return;
  closed_ = true;
  incoming_.clear();
  if (registered_ && server_->registrar() != nullptr) server_->registrar()->Unregister(proxy_, connected_at_);
  server_->OnClosed(shared_from_this());
  if (event_ != nullptr && !pushing_) FinishPush();
}

template <class Fn>
void Connection::Work(const wavetank::Work& work, Fn fn) {
  auto done = [self = shared_from_this(), fn = std::move(fn)]() mutable {
    if (self->Orphaned()) return;
    if (self->closed_) {
      if (self->pushing_) self->FinishPush();
      return;
    }
    fn();
  };
  // As if its goroutine had not got its turn.
  const Duration late = BuggifyDelay(BuggifyPoint::kGenerationLate);
  if (late == Duration::zero()) return server_->host().Spend(work, std::move(done));
  server_->host().RunAfter(late, [self = shared_from_this(), work, done = std::move(done)]() mutable {
    if (!self->Orphaned()) self->server_->host().Spend(work, std::move(done));
  });
}

void Connection::Next() {
  if (closed() || !open_ || busy_) return;
  WAVETANK_ASSERT(!pushing_, id_);  // a push keeps it busy from its beginning to its end
  if (!incoming_.empty()) {
    busy_ = true;
    Incoming incoming = std::move(incoming_.front());
    incoming_.pop_front();
    const ScopedCause cause(server_->host(), incoming.cause);
    // Before the request is moved: arguments are worked out in any order.
    const int64_t names = NameCount(incoming.request);
    Work({WorkKind::kReceiveRequest, names}, [this, request = std::move(incoming.request)]() mutable {
      const bool delta = std::holds_alternative<DeltaDiscoveryRequest>(request);
      const auto handle = [this](const Request& r) { std::visit([this](const auto& q) { Handle(q); }, r); };
      if (ReportsHealth(request)) {
        // Before the proxy said who it is, nobody's (istiod: ads.go, receive).
        if (first_ || !registered_ || server_->registrar() == nullptr) return Idle();
        const auto error = std::visit([](const auto& r) { return r.error_detail; }, request);
        server_->registrar()->OnHealth(proxy_, !error, error ? error->message : std::string());
        return Idle();
      }
      if (!first_) {
        if (delta != delta_) return Close(absl::InvalidArgumentError("a stream cannot change its protocol"));
        return handle(request);
      }
      first_ = false;
      delta_ = delta;
      const absl::Status status = Initialize(std::visit([](const auto& r) { return r.node; }, request));
      if (!status.ok()) return Close(status);
      auto go_on = [this, handle, request = std::move(request)]() mutable {
        Work({WorkKind::kConnect}, [this, handle, request = std::move(request)] {
          initialized_ = true;
          server_->OnInitialized(*this);
          handle(request);
        });
      };
      WorkloadRegistrar* const registrar = server_->registrar();
      if (registrar == nullptr || !registrar->Wants(proxy_)) return go_on();
      // istiod: ads.go, initializeProxy: what cannot be registered is not served.
      registered_ = true;
      registrar->Register(proxy_, node_locality_, connected_at_,
                          [self = shared_from_this(), go_on = std::move(go_on)](const absl::Status& done) mutable {
                            if (self->closed()) return;
                            done.ok() ? go_on() : self->Close(done);
                          });
    });
  } else if (event_ != nullptr && initialized_) {
    busy_ = true;
    HandlePush();
  }
}

void Connection::Idle() {
  WAVETANK_ASSERT(!pushing_, id_);
  busy_ = false;
  Next();
}

// istiod: initConnection.
absl::Status Connection::Initialize(const std::shared_ptr<const Node>& node) {
  if (node == nullptr || node->id.empty()) return absl::InvalidArgumentError("missing node information");
  absl::StatusOr<Proxy> proxy = ParseServiceNode(node->id, SharedJson(node, node->metadata));
  if (!proxy.ok()) return proxy.status();
  proxy_ = *std::move(proxy);
  // istiod: ads.go, initProxyMetadata.
  if (const auto alias = server_->options().cluster_aliases.find(proxy_.metadata.cluster_id);
      alias != server_->options().cluster_aliases.end()) {
    proxy_.metadata.cluster_id = alias->second;
  }
  proxy_.service_cluster = node->cluster;
  node_locality_ = node->locality;
  last_push_ = server_->push_context();
  if (peer_.authenticated && server_->options().xds_auth && server_->options().identity_check) {
    const auto identity =
        security::CheckConnectionIdentity(peer_.identities, proxy_.config_namespace, proxy_.metadata.service_account);
    if (!identity.ok()) {
      return absl::PermissionDeniedError(fmt::format("authorization failed: {}", Message(identity.status())));
    }
    proxy_.verified_identity = identity->ToString();
  }
  id_ = server_->NewConnectionId(proxy_.id);
  trace_name_ = server_->ProxyTraceName(proxy_);
  // Registered before its state is computed, so that no push context gets lost in between.
  server_->OnConnected(shared_from_this());
  ComputeProxyState(proxy_, *last_push_, nullptr, node_locality_);
  return absl::OkStatus();
}

bool Connection::Rejected(const DiscoveryRequest& request) {
  if (!request.error_detail) return false;
  Trace(TraceKind::kXdsNack, request.type, request.error_detail->code, 0, request.error_detail->message);
  server_->on_connection_event.Tell({ConnectionEvent::Kind::kNack, *this, &request});
  if (const auto it = proxy_.watched_resources.find(request.type); it != proxy_.watched_resources.end()) {
    it->second.nonce_nacked = request.response_nonce;
    it->second.last_error = request.error_detail->message;
  }
  return true;
}

// A client that asks for clusters will warm them, and then needs an answer to its next request for endpoints even if
// that looks like an ACK. istiod: warmingDependencies; envoy#13009.
void Connection::ForceDependents(XdsType type) {
  if (type != XdsType::kCds) return;
  const auto it = proxy_.watched_resources.find(XdsType::kEds);
  if (it != proxy_.watched_resources.end()) it->second.always_respond = true;
}

bool Connection::ShouldRespond(const DiscoveryRequest& request, ResourceDelta* delta) {
  if (Rejected(request)) return false;
  if (request.resource_names.empty() && !IsWildcardType(request.type)) {
    proxy_.watched_resources.erase(request.type);
    return false;
  }
  const auto it = proxy_.watched_resources.find(request.type);
  if (request.response_nonce.empty() || it == proxy_.watched_resources.end()) {
    SharedVector<std::string> names = SortedUnique(request.resource_names);
    WatchedResource& watched = proxy_.watched_resources[request.type];
    watched = {.type = request.type, .wildcard = names.empty(), .resource_names = std::move(names)};
    ForceDependents(request.type);
    return true;
  }
  WatchedResource& watched = it->second;
  if (request.response_nonce != watched.nonce_sent) return false;  // stale
  Trace(TraceKind::kXdsAck, request.type);
  watched.last_error.clear();
  watched.nonce_acked = request.response_nonce;
  const bool always_respond = std::exchange(watched.always_respond, false);
  if (request.resource_names == watched.resource_names) return always_respond;  // as in nearly every ACK
  SharedVector<std::string> names = SortedUnique(request.resource_names);
  delta->subscribed = Difference(names, watched.resource_names);
  delta->unsubscribed = Difference(watched.resource_names, names);
  watched.resource_names = std::move(names);
  return !delta->empty() || always_respond;
}

bool Connection::ShouldRespondDelta(const DeltaDiscoveryRequest& request) {
  // istiod: delta.go, deltaToSotwRequest.
  if (request.error_detail) {
    DiscoveryRequest refused;
    refused.type = request.type;
    refused.response_nonce = request.response_nonce;
    refused.resource_names = request.resource_names_subscribe;
    refused.error_detail = request.error_detail;
    Rejected(refused);
    return false;
  }
  const auto it = proxy_.watched_resources.find(request.type);
  if (it == proxy_.watched_resources.end()) {
    WatchedResource& watched = proxy_.watched_resources[request.type];
    watched = {
        .type = request.type,
        .wildcard = request.resource_names_subscribe.empty() ||
                    std::ranges::find(request.resource_names_subscribe, "*") != request.resource_names_subscribe.end(),
        .resource_names = DeltaNames({}, request)};
    ForceDependents(request.type);
    return true;
  }
  WatchedResource& watched = it->second;
  if (!request.response_nonce.empty()) {
    if (request.response_nonce != watched.nonce_sent) return false;  // stale
    Trace(TraceKind::kXdsAck, request.type);
    watched.last_error.clear();
  }
  std::vector<std::string> names = DeltaNames(watched.resource_names, request);
  watched.nonce_acked = request.response_nonce;
  const bool always_respond = std::exchange(watched.always_respond, false);
  const bool changed = names != watched.resource_names.list();
  watched.resource_names = std::move(names);
  return changed || always_respond;
}

void Connection::Handle(const DiscoveryRequest& request) {
  ResourceDelta delta;
  if (!ShouldRespond(request, &delta)) return Idle();
  Answer(request.type, std::move(delta));
}

void Connection::Handle(const DeltaDiscoveryRequest& request) {
  if (!ShouldRespondDelta(request)) return Idle();
  ResourceDelta delta;
  delta.subscribed.insert(request.resource_names_subscribe.begin(), request.resource_names_subscribe.end());
  for (const auto& [name, version] : request.initial_resource_versions) delta.subscribed.insert(name);
  delta.unsubscribed.insert(request.resource_names_unsubscribe.begin(), request.resource_names_unsubscribe.end());
  delta.subscribed.erase("*");
  delta.unsubscribed.erase("*");
  Answer(request.type, std::move(delta));
}

void Connection::Answer(XdsType type, ResourceDelta delta) {
  WAVETANK_ASSERT(last_push_ != nullptr, id_);  // Initialize() took the one that was there
  auto request = std::make_shared<PushRequest>();
  request->full = true;
  request->push = last_push_;
  request->reasons = Reason(TriggerReason::kProxyRequest);
  request->cause = server_->host().cause();
  // Not now: what is made from an old push context must not enter the cache as if it were new.
  request->start = last_push_time_;
  request->delta = std::move(delta);
  // Pushes that did not touch the Sidecar scope left it at an older push context.
  if (proxy_.sidecar_scope != nullptr && proxy_.sidecar_scope->version != last_push_->version()) {
    ComputeProxyState(proxy_, *last_push_, request.get(), node_locality_);
  }
  PushXds(type, request, [this] { Idle(); });
}

void Connection::HandlePush() {
  WAVETANK_ASSERT(busy_, id_);
  WAVETANK_ASSERT(!pushing_, id_);
  WAVETANK_ASSERT(event_->push != nullptr, id_);
  pushing_ = true;
  const ScopedCause cause(server_->host(), event_->cause);
  if (!event_->full) return PushAfterState();
  // The proxy's instances are those of the registries when this work is done, not when it was asked for: of a cluster
  // that has just come back, the Services are handled meanwhile.
  Work({WorkKind::kProxyState}, [this] {
    ComputeProxyState(proxy_, *event_->push, event_.get(), node_locality_);
    last_push_ = event_->push;
    last_push_time_ = event_->start;
    PushAfterState();
  });
}

void Connection::PushAfterState() {
  const bool skipped = !ProxyNeedsPush(proxy_, *event_);
  server_->observer().OnPushEvent(proxy_, *event_, skipped);
  if (skipped) {
    server_->host().Emit({TraceKind::kPushSkipped, trace_name_, kNoName, 0, 0, {}});
    // Not from inside the queue's own call.
    return server_->host().Post([self = shared_from_this()] {
      if (!self->Orphaned()) self->FinishPush();
    });
  }
  event_ = RelevantTo(proxy_, event_);
  types_.clear();
  for (const auto& [type, watched] : proxy_.watched_resources) types_.push_back(type);  // in push order
  PushTypes(0);
}

void Connection::PushTypes(size_t index) {
  WAVETANK_ASSERT(pushing_, id_);
  WAVETANK_ASSERT(index <= types_.size(), index, types_.size(), id_);
  if (index == types_.size()) {
    server_->host().Emit({TraceKind::kPushDone, trace_name_, kNoName, 0, 0, {}});
    return server_->host().Post([self = shared_from_this()] {
      if (!self->Orphaned()) self->FinishPush();
    });
  }
  PushXds(types_[index], event_, [this, index] { PushTypes(index + 1); });
}

void Connection::FinishPush() {
  WAVETANK_ASSERT(event_ != nullptr, id_);  // each push ends once: the queue owes the proxy's place for it
  event_ = nullptr;
  pushing_ = false;
  busy_ = false;
  if (Orphaned()) return;
  const std::shared_ptr<Connection> self = shared_from_this();
  server_->OnPushDone(self);
  Next();
}

void Connection::PushXds(XdsType type, const PushRequestRef& request, Callback done) {
  const auto it = proxy_.watched_resources.find(type);
  Generator* const generator = server_->FindGenerator(type, proxy_);
  if (it == proxy_.watched_resources.end() || generator == nullptr) return done();
  const WatchedResource* watched = &it->second;
  WatchedResource filtered;
  if (!request->delta.empty() && (delta_ || !IsProxylessGrpc(proxy_))) {
    // A client that wants more gets what it did not have yet; gRPC's takes each answer for the whole.
    filtered.type = type;
    filtered.resource_names =
        std::vector<std::string>(request->delta.subscribed.begin(), request->delta.subscribed.end());
    watched = &filtered;
  }
  GeneratedResources generated =
      delta_ ? generator->GenerateDeltas(proxy_, *watched, *request) : generator->Generate(proxy_, *watched, *request);
  if (!generated.send) return done();

  std::vector<std::string> removed;
  if (delta_) {
    std::vector<std::string> names;
    for (const Resource& resource : generated.resources) names.emplace_back(resource.name);
    names = SortedUnique(std::move(names));
    if (generated.used_delta) {
      removed = SortedUnique(generated.removed);
    } else if (request->full) {
      const std::set<std::string> gone = Difference(watched->resource_names, names);
      removed.assign(gone.begin(), gone.end());
    }
    // What the client holds, as far as istiod remembers it. Before 1.22 the last push alone, even one of few resources,
    // and never an answer to a request: so it forgets to remove things. istiod: pushDeltaXds.
    const bool all = request->push->profile().Has(Change::kDeltaRemembersAll);
    if (IsWildcardType(type) && (all || !request->IsRequest())) {
      if (all && generated.used_delta) {
        std::set<std::string> held(watched->resource_names.begin(), watched->resource_names.end());
        for (const std::string& name : removed) held.erase(name);
        held.insert(names.begin(), names.end());
        names.assign(held.begin(), held.end());
      }
      it->second.resource_names = std::move(names);
    }
  }
  auto send = [self = shared_from_this(), type, request, generated = std::move(generated), removed = std::move(removed),
               done = std::move(done)]() mutable {
    const int64_t bytes = generated.resources.Bytes();
    const wavetank::Work work = GenerationWork(type, generated, bytes);
    self->Work(work, [self, type, request, bytes, generated = std::move(generated), removed = std::move(removed),
                      done = std::move(done)]() mutable {
      self->Work({WorkKind::kSendResponse, bytes}, [self, type, request, bytes, generated = std::move(generated),
                                                    removed = std::move(removed), done = std::move(done)]() mutable {
        if (self->delta_) {
          self->SendDelta(type, request, std::move(generated), std::move(removed), request->push->version());
        } else {
          self->Send(type, request, std::move(generated), request->push->version());
        }
        if (bytes <= kWriteQuota) return done();
        self->server_->host().Post([self, done = std::move(done)]() mutable {
          if (!self->Orphaned()) done();
        });
      });
    });
  };
  auto* const gate = dynamic_cast<GenerationGate*>(generator);
  if (gate == nullptr || !gate->MustWait()) return send();
  gate->Wait([self = shared_from_this(), send = std::move(send)]() mutable {
    if (!self->Orphaned()) send();
  });
}

WatchedResource& Connection::Sent(XdsType type, const std::string& nonce) {
  WatchedResource& watched = proxy_.watched_resources[type];
  watched.type = type;
  watched.nonce_sent = nonce;
  watched.last_sent = server_->host().WallClock();
  return watched;
}

void Connection::Send(XdsType type, const PushRequestRef& request, GeneratedResources generated, std::string version) {
  auto response = std::make_shared<DiscoveryResponse>();
  response->type = type;
  response->nonce = server_->NewNonce();
  response->bytes = generated.resources.Bytes();
  response->resources = std::move(generated.resources);
  response->version_info = std::move(version);
  const WatchedResource& watched = Sent(type, response->nonce);
  Trace(TraceKind::kXdsSent, type, static_cast<int64_t>(response->resources.size()), response->bytes);
  server_->observer().OnResponse(proxy_, *request, watched, *response);
  stream_.Send(std::move(response));
}

void Connection::SendDelta(XdsType type, const PushRequestRef& request, GeneratedResources generated,
                           std::vector<std::string> removed, std::string version) {
  auto response = std::make_shared<DeltaDiscoveryResponse>();
  response->type = type;
  response->nonce = server_->NewNonce();
  response->bytes = generated.resources.Bytes();
  response->resources = std::move(generated.resources);
  response->removed_resources = std::move(removed);
  response->system_version_info = std::move(version);
  const WatchedResource& watched = Sent(type, response->nonce);
  Trace(TraceKind::kXdsSent, type, static_cast<int64_t>(response->resources.size()), response->bytes);
  server_->observer().OnDeltaResponse(proxy_, *request, watched, *response);
  stream_.SendDelta(std::move(response));
}

void Connection::Trace(TraceKind kind, XdsType type, int64_t a, int64_t b, std::string_view detail) {
  server_->host().Emit({kind, trace_name_, server_->TypeTraceName(type), a, b, detail});
}

}  // namespace wavetank::pilot
