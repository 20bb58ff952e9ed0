#include "serve/grpc/frontend.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "sim/inputs/kinds/outside.h"

namespace wavetank::serve {

namespace {

using RealClock = std::chrono::steady_clock;

// Of gRPC's "ipv4:127.0.0.1:4711", what stays the same from connection to connection.
std::string HostOf(const std::string& address) {
  return address.rfind("unix:", 0) == 0 ? "a Unix socket" : address.substr(0, address.rfind(':'));
}

// Two streams of one connection take turns as one client. All Unix sockets have one name; each stream counts there.
std::string ConnectionOf(const std::string& address, uint64_t number) {
  return address.rfind("unix:", 0) == 0 ? address + "#" + std::to_string(number) : address;
}

absl::Status Unwritten() { return absl::InternalError("the event log of this run cannot be written"); }

absl::Status GoingDown() { return absl::UnavailableError("the server is going down"); }

}  // namespace

Frontend::Frontend(Loop& loop, Limits limits) : loop_(loop), limits_(limits) {
  loop_.world().outside().set_listener(this);
}

Frontend::~Frontend() { loop_.world().outside().set_listener(nullptr); }

// An error is about the body, e.g. a certificate of a kind that nobody can read; what an istiod thinks of a request,
// the client hears from it.
void Frontend::Do(sim::World& world, uint64_t client, const sim::Input& input) {
  if (absl::Status status = world.Do(input); !status.ok()) {
    world.Do(sim::inputs::XdsClose{client}).IgnoreError();
    OnClosed(client, status);
  }
}

sim::OutsidePeer Frontend::Describe(sim::World& world, const TransportPeer& peer) {
  sim::OutsidePeer out;
  out.tls = peer.tls;
  // In plaintext a token is looked at where XDS_AUTH_PLAINTEXT says so.
  out.certificate_pem = peer.certificate_pem;
  out.cluster_id = peer.cluster_id;
  if (!peer.bearer_token.empty()) {
    out.token = sim::OutsidePeer::Token::kUnknown;
    for (const sim::WorldCluster& cluster : world.options().clusters) {
      absl::StatusOr<kube::TokenClaims> claims = world.tokens(cluster.name)->Read(peer.bearer_token);
      if (!claims.ok()) continue;
      out.token = sim::OutsidePeer::Token::kIssued;
      out.issuer = cluster.name;
      out.claims = *std::move(claims);
      break;
    }
  }
  return out;
}

absl::StatusOr<StreamPlaceRef> Frontend::Enter(const std::string& address, StreamPlace::Expire expire) {
  if (down_) return GoingDown();
  if (open_.fetch_add(1) >= limits_.streams) {
    --open_;
    return absl::ResourceExhaustedError("too many streams");
  }
  const std::string host = HostOf(address);
  const auto leave = [this, host] {
    --open_;
    const std::lock_guard<std::mutex> lock(peers_mutex_);
    if (--peers_[host] == 0) peers_.erase(host);
  };
  bool room = false;
  {
    const std::lock_guard<std::mutex> lock(peers_mutex_);
    room = ++peers_[host] <= limits_.streams_per_peer;
  }
  if (!room) {
    leave();
    return absl::ResourceExhaustedError("too many streams from " + host);
  }
  auto place = std::make_shared<StreamPlace>(leave, std::move(expire));
  if (limits_.first_request > Duration::zero() || limits_.idle > Duration::zero()) Watch(place, Duration::zero());
  return place;
}

// A place is watched by one timer at a time, which looks again when the client could have been silent for too long.
void Frontend::Watch(const std::weak_ptr<StreamPlace>& place, Duration delay) {
  loop_.PostAfter(delay, [this, place](sim::World&) {
    const StreamPlaceRef held = place.lock();
    if (held == nullptr) return;
    const RealClock::time_point now = RealClock::now();
    const int64_t heard = held->heard_;
    const bool waits_for_first = heard == 0 && limits_.first_request > Duration::zero();
    if (!waits_for_first && limits_.idle <= Duration::zero()) return;
    const Duration limit = waits_for_first ? limits_.first_request : limits_.idle;
    const auto since = heard == 0 ? held->opened_ : RealClock::time_point(RealClock::duration(heard));
    const Duration left = limit - (now - since);
    if (left <= Duration::zero()) {
      return held->expire_(absl::DeadlineExceededError(
          fmt::format("{} {} ms", waits_for_first ? "no request came within" : "nothing was said for", limit / 1ms)));
    }
    Watch(place, limits_.idle > Duration::zero() ? std::min(left, limits_.idle) : left);
  });
}

OutsideClient Frontend::Open(std::string cluster, TransportPeer peer, std::shared_ptr<StreamSink> sink) {
  const uint64_t client = next_++;
  OutsideClient out{client, ConnectionOf(peer.address, client)};
  loop_.PostFor(out.connection, [this, client, cluster = std::move(cluster), peer = std::move(peer),
                                 sink = std::move(sink)](sim::World& world) mutable {
    if (down_) return sink->Closed(GoingDown());
    sinks_[client] = std::move(sink);
    Do(world, client, sim::inputs::XdsOpen{client, cluster, peer.address, Describe(world, peer)});
  });
  return out;
}

bool Frontend::Post(const TransportPeer& peer, Loop::Task task) {
  return loop_.PostFor(ConnectionOf(peer.address, next_++), std::move(task));
}

bool Frontend::TakesTooMuch(int64_t waiting) const {
  const int64_t all = unread_;
  return all > limits_.unread_bytes_total && waiting > all / std::max<int64_t>(open_, 1);
}

void Frontend::Request(const OutsideClient& from, pilot::DiscoveryRequest request, Taken taken) {
  loop_.PostFor(from.connection, [this, client = from.number, request = std::move(request),
                                  taken = std::move(taken)](sim::World& world) mutable {
    if (!sinks_.contains(client)) return;
    Do(world, client, sim::inputs::XdsRequest{client, request});
    taken();
  });
}

void Frontend::Request(const OutsideClient& from, pilot::DeltaDiscoveryRequest request, Taken taken) {
  loop_.PostFor(from.connection, [this, client = from.number, request = std::move(request),
                                  taken = std::move(taken)](sim::World& world) mutable {
    if (!sinks_.contains(client)) return;
    Do(world, client, sim::inputs::XdsDeltaRequest{client, request});
    taken();
  });
}

void Frontend::Close(const OutsideClient& from) {
  loop_.PostFor(from.connection, [this, client = from.number](sim::World& world) {
    if (sinks_.erase(client) > 0) Do(world, client, sim::inputs::XdsClose{client});
  });
}

void Frontend::CreateCertificate(std::string cluster, TransportPeer peer, security::CertificateRequestMessage request,
                                 Certificates done) {
  // Whether the task runs or the loop drops it, somebody answers.
  auto answer = std::make_shared<Certificates>(std::move(done));
  const std::string connection = ConnectionOf(peer.address, next_++);
  const bool posted = !down_ && loop_.PostFor(connection, [this, cluster = std::move(cluster), peer = std::move(peer),
                                                           request = std::move(request), answer](sim::World& world) {
    CreateCertificate(world, cluster, Describe(world, peer), request, std::move(*answer));
  });
  if (!posted) (*answer)(GoingDown());
}

void Frontend::CreateCertificate(sim::World& world, const std::string& cluster, const sim::OutsidePeer& peer,
                                 const security::CertificateRequestMessage& request, Certificates done) {
  if (down_) return done(GoingDown());
  const uint64_t client = next_++;
  certificates_[client] = std::move(done);
  const absl::Status status = world.Do(sim::inputs::CertificateRequest{client, cluster, peer, request});
  if (!status.ok()) OnCertificate(client, status);
}

void Frontend::ShutDown() {
  down_ = true;
  loop_.Call([this](sim::World&) {
    for (auto& [client, sink] : std::exchange(sinks_, {})) sink->Closed(GoingDown());
    for (auto& [client, done] : std::exchange(certificates_, {})) done(GoingDown());
    return 0;
  });
}

void Frontend::OnResponse(uint64_t client, std::shared_ptr<const pilot::DiscoveryResponse> response) {
  const auto it = sinks_.find(client);
  if (it == sinks_.end()) return;
  loop_.WhenDurable([sink = it->second, response = std::move(response)](const absl::Status& logged) {
    logged.ok() ? sink->Response(*response) : sink->Closed(Unwritten());
  });
}

void Frontend::OnDeltaResponse(uint64_t client, std::shared_ptr<const pilot::DeltaDiscoveryResponse> response) {
  const auto it = sinks_.find(client);
  if (it == sinks_.end()) return;
  loop_.WhenDurable([sink = it->second, response = std::move(response)](const absl::Status& logged) {
    logged.ok() ? sink->DeltaResponse(*response) : sink->Closed(Unwritten());
  });
}

void Frontend::OnClosed(uint64_t client, const absl::Status& status) {
  const auto it = sinks_.find(client);
  if (it == sinks_.end()) return;
  const std::shared_ptr<StreamSink> sink = std::move(it->second);
  sinks_.erase(it);
  // Behind the answers that were given before.
  loop_.WhenDurable([sink, status](const absl::Status&) { sink->Closed(status); });
}

void Frontend::OnCertificate(uint64_t client, absl::StatusOr<std::vector<std::string>> chain) {
  const auto it = certificates_.find(client);
  if (it == certificates_.end()) return;
  Certificates done = std::move(it->second);
  certificates_.erase(it);
  loop_.WhenDurable([done = std::move(done), chain = std::move(chain)](const absl::Status& logged) mutable {
    logged.ok() ? done(std::move(chain)) : done(Unwritten());
  });
}

}  // namespace wavetank::serve
