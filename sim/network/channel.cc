#include "sim/network/channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "sim/network/go_words.h"

namespace wavetank::sim {

using envoysim::AcceptInfo;
using envoysim::CloseKind;
using envoysim::ConnectionHandler;
using envoysim::ConnectionId;
using envoysim::ExchangeId;
using envoysim::Fabric;
using envoysim::FirstFlight;
using envoysim::kNoConnection;
using envoysim::RequestSpec;
using envoysim::TlsOutcome;

namespace {

constexpr Duration kFirstRetry = 200ms;

std::string_view Describe(CloseKind kind) {
  switch (kind) {
    case CloseKind::kFin:
      return "connection closed";
    case CloseKind::kReset:
      return "connection reset by peer";
    case CloseKind::kRefused:
      return "connection refused";
    case CloseKind::kTimeout:
      return "i/o timeout";
    case CloseKind::kTlsFailed:
      return "TLS handshake failed";
  }
  return "connection closed";
}

absl::Status Unavailable(CloseKind kind, std::string_view detail) {
  if (kind == CloseKind::kTlsFailed) return absl::UnavailableError(GrpcHandshakeFailure(detail));
  return absl::UnavailableError(detail.empty() ? std::string(Describe(kind))
                                               : absl::StrCat(std::string(Describe(kind)), ": ", std::string(detail)));
}

}  // namespace

void Channel::ClientHandler::OnConnected(ConnectionId connection) {
  channel_.owner_.by_flight_[channel_.flight_.get()] = channel_.weak_from_this();
  channel_.owner_.fabric_.SetFlight(connection, channel_.flight_);
}

void Channel::ClientHandler::OnTls(ConnectionId connection, const TlsOutcome& outcome) {
  const ChannelRef channel = channel_.shared_from_this();
  channel->owner_.by_flight_.erase(channel->flight_.get());
  if (!outcome.ok) {
    channel->owner_.fabric_.Close(connection, Fabric::End::kClient, CloseKind::kTlsFailed, outcome.error);
    channel->DropClient();
    channel->Tell(End::kClient, Unavailable(CloseKind::kTlsFailed, outcome.error));
    return;
  }
  if (channel->closed_) return;
  WAVETANK_ASSERT(channel->istiod_ != nullptr || channel->csr_ != nullptr);  // the server's handshake came first
  channel->open_ = true;
  if (channel->on_open_ != nullptr) std::exchange(channel->on_open_, nullptr)(absl::OkStatus());
}

void Channel::ClientHandler::OnClose(ConnectionId, CloseKind kind, std::string_view detail) {
  const ChannelRef channel = channel_.shared_from_this();
  channel->owner_.by_flight_.erase(channel->flight_.get());
  channel->DropClient();
  // A TCP connection that never stood.
  if (channel->on_open_ != nullptr && (kind == CloseKind::kRefused || kind == CloseKind::kTimeout)) {
    const std::string what = kind == CloseKind::kRefused ? "connect: connection refused" : "i/o timeout";
    return channel->Tell(End::kClient, absl::UnavailableError(GrpcDialFailure(channel->to_, what)));
  }
  channel->Tell(End::kClient, Unavailable(kind, detail));
}

void Channel::DropClient() {
  connections_[Index(End::kClient)] = kNoConnection;
  // Not while the table is at it: this may be the last reference, and what it lets go of may close other channels.
  const auto held = owner_.held_.extract(this);
}

void Channel::Forget() {
  open_ = false;
  closed_ = true;
  for (Direction& direction : directions_) direction.waiting.clear();
  on_open_ = nullptr;
  for (auto& on_close : on_close_) on_close = nullptr;
  session_ = nullptr;
}

// One accepted connection. Its server owns it.
class ChannelServer::Handler final : public ConnectionHandler {
 public:
  explicit Handler(ChannelServer& server) : server_(server) {}

  void OnConnected(ConnectionId) override {}
  void OnTls(ConnectionId, const TlsOutcome&) override {}
  void OnFirstFlight(ConnectionId connection, const std::shared_ptr<const FirstFlight>& flight,
                     Duration lead) override {
    Channels& channels = server_.channels_;
    const std::shared_ptr<const envoysim::TlsServer> tls = server_.tls_();
    const auto known = channels.by_flight_.find(flight.get());
    const ChannelRef channel = known == channels.by_flight_.end() ? nullptr : known->second.lock();
    // A server without a certificate speaks in clear text.
    const bool plaintext = tls != nullptr && tls->certificate == nullptr;
    if (tls == nullptr || channel == nullptr || (!plaintext && flight->kind != FirstFlight::Kind::kTls)) {
      Refuse(connection, CloseKind::kReset, {});
      return;
    }
    if (plaintext) {
      if (!AnswerInClear(connection, *flight, lead)) return;
    } else {
      envoysim::HandshakeResult result = channels.tls_.Handshake(*flight, *tls, server_.host_.WallClock());
      if (result.client.local) {
        const Time now = channel->hosts_[0]->WallClock();
        result.client.error = GoTlsRefusal(*tls, flight->sni, result.client.san_mismatch, now);
      }
      channels.fabric_.AnswerTls(connection, result.client, lead);
      if (!result.server_ok) {
        // A client that refuses closes by itself.
        if (!result.client.local) Refuse(connection, CloseKind::kTlsFailed, result.client.error);
        return;
      }
      channel->client_identity_ = result.client_identity;
    }
    channel_ = channel;
    channel->server_ = &server_;
    channel->connections_[1] = connection;
    channel->hosts_[1] = &server_.host_;
    const SiteId a = channels.network_.at(channel->client_workload_).site;
    const SiteId b = channels.network_.at(server_.workload_).site;
    channel->line_ = channel->client_workload_ == server_.workload_ ? nullptr : &channels.links_.Between(a, b);
    channel->istiod_ = server_.istiod_;
    channel->csr_ = server_.csr_;
    channel->speaks_grpc_ = server_.speaks_ == Speaks::kGrpc;
  }
  void OnRequest(ConnectionId connection, ExchangeId, const RequestSpec&, Duration) override {
    Refuse(connection, CloseKind::kReset, {});
  }
  void OnClose(ConnectionId connection, CloseKind kind, std::string_view detail) override {
    const ChannelRef channel = std::move(channel_);
    const absl::Status why = Unavailable(kind, detail);
    server_.handlers_.erase(connection);  // this
    if (channel == nullptr) return;
    channel->connections_[1] = kNoConnection;
    channel->Tell(Channel::End::kServer, why);
  }

  const ChannelRef& channel() const { return channel_; }

 private:
  // The first bytes of an HTTP/2 server, which a client that wants TLS cannot read (Go: crypto/tls, RecordHeaderError).
  bool AnswerInClear(ConnectionId connection, const FirstFlight& flight, Duration lead) {
    envoysim::TlsOutcome settings;
    settings.ok = flight.kind == FirstFlight::Kind::kOpaque;
    if (!settings.ok) {
      settings.local = true;
      settings.error = "tls: first record does not look like a TLS handshake";
    }
    server_.channels_.fabric_.AnswerTls(connection, settings, lead);
    return settings.ok;
  }

  void Refuse(ConnectionId connection, CloseKind kind, std::string_view detail) {
    server_.channels_.fabric_.Close(connection, Fabric::End::kServer, kind, detail);
    server_.handlers_.erase(connection);  // this
  }

  ChannelServer& server_;
  ChannelRef channel_;
};

void Channel::Send(End from, Callback deliver) {
  WAVETANK_ASSERT(deliver != nullptr);
  WAVETANK_ASSERT(!(open_ && closed_));
  if (closed_) return;
  const End to = from == End::kClient ? End::kServer : End::kClient;
  // Both ends are known before either may speak: the server's in the handshake, the client's since it dialled.
  WAVETANK_ASSERT(hosts_[Index(to)] != nullptr, to);
  Direction& direction = directions_[Index(to)];
  direction.waiting.push_back(std::move(deliver));
  if (!direction.blocked) Pump(to);
  if (direction.waiting.empty()) return;  // on its way, with the cause in force now
  // The same must be in force there after a wait.
  Host& receiver = *hosts_[Index(to)];
  Callback& last = direction.waiting.back();
  last = [&receiver, cause = receiver.cause(), waited = std::move(last)]() mutable {
    ScopedCause scope(receiver, cause);
    waited();
  };
}

void Channel::Pump(End to) {
  Direction& direction = directions_[Index(to)];
  Host& receiver = *hosts_[Index(to)];
  while (!direction.waiting.empty() && !closed_) {
    const Time now = owner_.world_.Now();
    std::optional<Duration> transit = line_ == nullptr ? Duration::zero() : line_->Transit(now);
    if (owner_.fabric_.IsCut(connections_[Index(End::kClient)])) transit = std::nullopt;
    if (!transit) {
      if (!direction.blocked) {
        direction.blocked = true;
        direction.blocked_since = now;
        direction.tries = 0;
      } else if (now - direction.blocked_since >= kKeepaliveGiveUp) {
        Break(absl::UnavailableError("keepalive ping failed to receive ACK within timeout"));
        return;
      }
      const Duration wait = std::min<Duration>(kFirstRetry * (1 << std::min(direction.tries++, 6)), 10s);
      owner_.world_.RunAfter(wait, [self = shared_from_this(), to] { self->Pump(to); });
      return;
    }
    WAVETANK_ASSERT(*transit >= Duration::zero(), *transit);
    *transit += BuggifyDelay(BuggifyPoint::kMessageLate);
    // Those that are on their way never come; not from within the sender's call.
    if (open_ && BuggifyFires(BuggifyPoint::kStreamBroken)) {
      owner_.world_.Post([self = shared_from_this()] {
        if (!self->closed_) self->Break(absl::UnavailableError("error reading from server: connection reset by peer"));
      });
    }
    direction.blocked = false;
    direction.last_arrival = std::max(direction.last_arrival, now + *transit);
    WAVETANK_ASSERT(direction.last_arrival >= now, direction.last_arrival, now);  // messages stay in order
    receiver.RunAfter(direction.last_arrival - now,
                      [self = shared_from_this(), deliver = std::move(direction.waiting.front())]() mutable {
                        if (!self->closed_) deliver();
                      });
    direction.waiting.pop_front();
  }
}

void Channel::Close(End from) {
  const ChannelRef self = shared_from_this();
  closed_ = true;
  open_ = false;
  if (from == End::kClient) on_open_ = nullptr;
  if (from == End::kServer) EndSession();
  on_close_[Index(from)] = nullptr;
  Release(from,
          [this](ConnectionId connection, Fabric::End end) { owner_.fabric_.Close(connection, end, CloseKind::kFin); });
}

void Channel::Release(End end, const std::function<void(envoysim::ConnectionId, Fabric::End)>& how) {
  const ConnectionId connection = std::exchange(connections_[Index(end)], kNoConnection);
  if (connection == kNoConnection) return;
  how(connection, end == End::kClient ? Fabric::End::kClient : Fabric::End::kServer);
  if (end == End::kClient) {
    owner_.by_flight_.erase(flight_.get());
    DropClient();
  } else {
    server_->handlers_.erase(connection);
  }
}

void Channel::Tell(End end, const absl::Status& why) {
  open_ = false;
  closed_ = true;
  WAVETANK_ASSERT(connections_[Index(end)] == kNoConnection, end);  // that end has let go of its connection
  if (end == End::kServer) EndSession();
  if (end == End::kClient && on_open_ != nullptr) {
    std::exchange(on_open_, nullptr)(why);
    return;
  }
  if (auto handler = std::exchange(on_close_[Index(end)], nullptr); handler != nullptr) handler(why);
}

void Channel::EndSession() {
  istiod_ = nullptr;
  csr_ = nullptr;
  // A session may end itself from within its own calls.
  if (session_ != nullptr) owner_.world_.Post([session = std::exchange(session_, nullptr)] {});
}

void Channel::Break(const absl::Status& why) {
  // Each end finds out by itself, at about the same time.
  const ChannelRef self = shared_from_this();
  for (const End end : {End::kClient, End::kServer}) {
    Release(end, [this](ConnectionId connection, Fabric::End side) { owner_.fabric_.Vanish(connection, side); });
    Tell(end, why);
  }
}

ChannelServer::ChannelServer(Channels& channels, Host& host, WorkloadId workload,
                             std::function<std::shared_ptr<const envoysim::TlsServer>()> tls, IstiodProcess& istiod,
                             Speaks speaks)
    : channels_(channels), host_(host), workload_(workload), tls_(std::move(tls)), istiod_(&istiod), speaks_(speaks) {}

ChannelServer::ChannelServer(Channels& channels, Host& host, WorkloadId workload,
                             std::function<std::shared_ptr<const envoysim::TlsServer>()> tls, IstioCsr& csr)
    : channels_(channels), host_(host), workload_(workload), tls_(std::move(tls)), csr_(&csr) {}

ChannelServer::~ChannelServer() {
  for (const auto& [connection, handler] : handlers_) {
    if (const ChannelRef& channel = handler->channel(); channel != nullptr) {
      channel->connections_[1] = kNoConnection;
      channel->on_close_[1] = nullptr;
      channel->server_ = nullptr;
      channel->open_ = false;
      channel->closed_ = true;
      channel->EndSession();
    }
    channels_.fabric_.Close(connection, Fabric::End::kServer, CloseKind::kReset);
  }
}

ConnectionHandler* ChannelServer::Accept(ConnectionId connection, const AcceptInfo&) {
  if (tls_() == nullptr) return nullptr;
  const auto [handler, fresh] = handlers_.try_emplace(connection, std::make_unique<Handler>(*this));
  WAVETANK_ASSERT(fresh, connection);  // ids of connections are never used again
  return handler->second.get();
}

Channels::~Channels() {
  const auto held = std::exchange(held_, {});
  for (const auto& [unused, channel] : held) channel->Forget();
}

ChannelRef Channels::Dial(Dialling dialling, std::function<void(absl::Status)> on_open) {
  WAVETANK_ASSERT(dialling.host != nullptr);
  WAVETANK_ASSERT(on_open != nullptr);
  const ChannelRef channel(new Channel(*this));
  channel->client_workload_ = dialling.from;
  channel->hosts_[0] = dialling.host;
  channel->to_ = dialling.to;
  channel->on_open_ = std::move(on_open);
  auto flight = std::make_shared<FirstFlight>();
  // In clear text gRPC's preface goes out before any request, which is what an HTTP/2 flight here would wait for.
  flight->kind = dialling.tls == nullptr ? FirstFlight::Kind::kOpaque : FirstFlight::Kind::kTls;
  if (dialling.tls != nullptr) {
    flight->sni = std::move(dialling.sni);
    flight->alpn = {"h2"};
    flight->tls = std::move(dialling.tls);
    flight->client = dialling.host;
  }
  channel->flight_ = std::move(flight);
  channel->connections_[0] =
      fabric_.Connect({dialling.from, envoysim::Origin::Who::kProxy, {}}, dialling.to, &channel->client_);
  held_[channel.get()] = channel;
  // Over a local path the connection stands at once, and OnConnected is not called.
  if (fabric_.local(channel->connections_[0]) && fabric_.state(channel->connections_[0]) == Fabric::State::kConnected) {
    by_flight_[channel->flight_.get()] = channel;
    fabric_.SetFlight(channel->connections_[0], channel->flight_);
  }
  // While it dials it is held; one that has closed by then is not kept for its timeout.
  world_.RunAfter(dialling.timeout, [weak = channel->weak_from_this()] {
    const ChannelRef late = weak.lock();
    if (late == nullptr || late->open_ || late->closed_) return;
    auto on_open_now = std::exchange(late->on_open_, nullptr);
    late->Close(Channel::End::kClient);
    if (on_open_now != nullptr) on_open_now(absl::DeadlineExceededError(GrpcDialFailure(late->to_, "i/o timeout")));
  });
  return channel;
}

}  // namespace wavetank::sim
