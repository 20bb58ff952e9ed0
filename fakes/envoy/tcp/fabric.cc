#include "fakes/envoy/tcp/fabric.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace wavetank::envoysim {
namespace {

constexpr int Index(Fabric::End end) { return static_cast<int>(end); }
constexpr Fabric::End Other(Fabric::End end) {
  return end == Fabric::End::kClient ? Fabric::End::kServer : Fabric::End::kClient;
}
const AcceptInfo kNoInfo;

}  // namespace

Fabric::Fabric(Host& host, Network& network, const Options& options)
    : host_(host), network_(network), options_(options) {}

Fabric::~Fabric() = default;

Duration Fabric::RetryDelay(int tries) const {
  return std::min(options_.rto_max, options_.rto_min * (int64_t{1} << std::min(tries, 30)));
}

bool Fabric::Cross(Connection& connection, End to, Time* when, bool* local) {
  if (connection.first != kNoConnection) return CrossTunnel(connection, to, when, local);
  WAVETANK_ASSERT(connection.path != nullptr, connection.state);
  WAVETANK_ASSERT(*when >= host_.Now(), *when, host_.Now());
  connection.last_used = host_.Now();
  if (connection.path->local()) {
    // Both directions are charged on the way there, so that an answer is complete when it arrives.
    if (to == End::kServer) *when += 2 * connection.path->LocalLatency();
    return true;
  }
  *local = false;
  if (connection.vanished[Index(to)] || connection.cut) return false;
  const std::optional<Duration> transit = connection.path->Transit(host_.Now());
  if (!transit.has_value()) return false;
  Time& last = connection.last_arrival[Index(to)];
  last = *when = std::max(*when + *transit, last);
  return true;
}

bool Fabric::CrossTunnel(const Connection& tunnel, End to, Time* when, bool* local) {
  const bool forth = to == End::kServer;
  const ConnectionId end = forth ? tunnel.last : tunnel.first;
  for (ConnectionId at = forth ? tunnel.first : tunnel.last;;) {
    Connection* const c = connections_.Get(at);
    if (c == nullptr) return *local = false;  // whoever stood there is being told
    if (!Cross(*c, to, when, local)) return false;
    if (at == end) return true;
    *when += options_.tcp_hop;
    at = forth ? c->next : c->prev;
  }
}

void Fabric::Free(ConnectionId id) {
  Connection* c = connections_.Get(id);
  if (c == nullptr) return;
  Unsplice(*c);
  WAVETANK_ASSERT(counters_.open_connections == connections_.in_use(), counters_.open_connections,
                  connections_.in_use());
  connections_.Free(id);
  --counters_.open_connections;
}

void Fabric::Unsplice(Connection& connection) {
  if (Connection* next = connections_.Get(connection.next)) next->prev = kNoConnection;
  if (Connection* prev = connections_.Get(connection.prev)) prev->next = kNoConnection;
  connection.next = connection.prev = kNoConnection;
}

// --- opening

ConnectionId Fabric::Connect(const Origin& origin, const SocketAddress& destination, ConnectionHandler* client,
                             Duration lead) {
  WAVETANK_ASSERT(client != nullptr);
  WAVETANK_ASSERT(lead >= Duration::zero(), lead);
  const ConnectionId id = connections_.Allocate();
  Connection& c = *connections_.Get(id);
  c.state = State::kConnecting;
  c.handler[Index(End::kClient)] = client;
  c.origin = origin;
  c.dialled = destination;
  ++counters_.connections;
  ++counters_.open_connections;
  SendSyn(id, lead);
  return id;
}

void Fabric::SendSyn(ConnectionId id, Duration lead) {
  Connection* c = connections_.Get(id);
  if (c == nullptr || c->handler[Index(End::kClient)] == nullptr) return;
  WAVETANK_ASSERT(c->state == State::kConnecting, c->state, c->tries);
  WAVETANK_ASSERT(c->handler[Index(End::kServer)] == nullptr, c->tries);  // no SYN of one that was accepted
  const Route route = network_.Resolve(c->origin, c->dialled, flows_++);
  c->path = route.path;
  c->info = route.info;
  c->cut = false;
  const bool same_pod = route.path != nullptr && route.path->local();
  Duration round_trip = lead;
  bool lost = route.outcome == Route::Outcome::kBlackholed;
  if (!lost && !same_pod && route.path != nullptr) {
    for (int leg = 0; leg < 2 && !lost; ++leg) {
      const std::optional<Duration> transit = route.path->Transit(host_.Now());
      lost = !transit.has_value();
      if (!lost) round_trip += *transit;
    }
  }
  if (lost) {
    if (c->tries >= options_.syn_retries) {
      SynFailed(id, CloseKind::kTimeout, options_.syn_retry * (int64_t{1} << c->tries));
      return;
    }
    ++counters_.retransmissions;
    host_.RunAfter(lead + options_.syn_retry * (int64_t{1} << c->tries++),
                   [this, id] { SendSyn(id, Duration::zero()); });
    return;
  }
  ConnectionHandler* server =
      route.outcome == Route::Outcome::kAccepting ? route.acceptor->Accept(id, route.info) : nullptr;
  if (server == nullptr) {
    ++counters_.refused;
    SynFailed(id, CloseKind::kRefused, round_trip);
    return;
  }
  c = connections_.Get(id);  // same object; Accept cannot free it, as closing from the server end is deferred
  WAVETANK_ASSERT(c != nullptr, same_pod);
  c->handler[Index(End::kServer)] = server;
  if (same_pod) {
    c->state = State::kConnected;
    return;
  }
  host_.RunAfter(round_trip, [this, id] { SynArrived(id, Duration::zero()); });
}

void Fabric::SynArrived(ConnectionId id, Duration /*round_trip*/) {
  Connection* c = connections_.Get(id);
  if (c == nullptr || c->state != State::kConnecting) return;
  ConnectionHandler* client = c->handler[Index(End::kClient)];
  if (client == nullptr) return;
  c->state = State::kConnected;
  client->OnConnected(id);
}

void Fabric::SynFailed(ConnectionId id, CloseKind kind, Duration after) {
  host_.RunAfter(after, [this, id, kind] {
    Connection* c = connections_.Get(id);
    if (c == nullptr) return;
    ConnectionHandler* client = c->handler[Index(End::kClient)];
    Free(id);
    if (client != nullptr) client->OnClose(id, kind, {});
  });
}

Fabric::State Fabric::state(ConnectionId connection) const {
  const Connection* c = connections_.Get(connection);
  return c == nullptr ? State::kGone : c->state;
}

const AcceptInfo& Fabric::info(ConnectionId connection) const {
  const Connection* c = connections_.Get(connection);
  return c == nullptr ? kNoInfo : c->info;
}

Time Fabric::last_used(ConnectionId connection) const {
  const Connection* c = connections_.Get(connection);
  return c == nullptr ? Time{} : c->last_used;
}

bool Fabric::local(ConnectionId connection) const {
  const Connection* c = connections_.Get(connection);
  return c != nullptr && c->path != nullptr && c->path->local();
}

// --- first flight and TLS

void Fabric::SetFlight(ConnectionId connection, std::shared_ptr<const FirstFlight> flight, Duration lead) {
  Connection* c = connections_.Get(connection);
  if (c == nullptr) return;
  WAVETANK_ASSERT(flight != nullptr);
  // One that follows the first goes within its session: what the client of a tcp_proxy says in TLS itself.
  if (flight->kind == FirstFlight::Kind::kTls) c->classified = false;
  c->flight = std::move(flight);
  switch (c->flight->kind) {
    case FirstFlight::Kind::kHttp1:
    case FirstFlight::Kind::kHttp10:
    case FirstFlight::Kind::kHttp2:
      return;  // in one packet with the first request
    case FirstFlight::Kind::kTls:
    case FirstFlight::Kind::kOpaque:
    case FirstFlight::Kind::kSilent:
      SendTlsFlight(connection, lead, 0);
  }
}

void Fabric::SendTlsFlight(ConnectionId id, Duration lead, int tries) {
  Connection* c = connections_.Get(id);
  if (c == nullptr || c->state != State::kConnected) return;
  Time when = host_.Now() + lead;
  bool local = true;
  if (!Cross(*c, End::kServer, &when, &local)) {
    if (tries >= options_.data_retries) {
      GiveUp(id);
      return;
    }
    ++counters_.retransmissions;
    host_.RunAfter(lead + RetryDelay(tries), [this, id, tries] { SendTlsFlight(id, Duration::zero(), tries + 1); });
    return;
  }
  // Even within a pod it is an event: the client's own bookkeeping for the connection comes first.
  host_.RunAfter(when - host_.Now(), [this, id] { DeliverFlight(id, Duration::zero()); });
}

void Fabric::DeliverFlight(ConnectionId id, Duration lead) {
  Connection* c = connections_.Get(id);
  if (c == nullptr || c->classified) return;
  ConnectionHandler* server = c->handler[Index(End::kServer)];
  if (server == nullptr) return;
  c->classified = true;
  const std::shared_ptr<const FirstFlight> flight = c->flight;
  if (flight->kind == FirstFlight::Kind::kTls && c->next != kNoConnection) return SetFlight(c->next, flight, lead);
  server->OnFirstFlight(id, flight, lead);
}

void Fabric::AnswerTls(ConnectionId connection, const TlsOutcome& outcome, Duration lead) {
  SendTlsAnswer(connection, std::make_shared<const TlsOutcome>(outcome), lead, 0);
}

void Fabric::SendTlsAnswer(ConnectionId id, std::shared_ptr<const TlsOutcome> outcome, Duration lead, int tries) {
  Time when = host_.Now() + lead;
  ConnectionId at = id;
  bool local = true;
  while (true) {
    Connection* c = connections_.Get(at);
    if (c == nullptr) return;
    if (!Cross(*c, End::kClient, &when, &local)) {
      if (tries >= options_.data_retries) {
        GiveUp(at);
        return;
      }
      ++counters_.retransmissions;
      host_.RunAfter(lead + RetryDelay(tries), [this, id, outcome = std::move(outcome), tries] {
        SendTlsAnswer(id, outcome, Duration::zero(), tries + 1);
      });
      return;
    }
    if (c->prev == kNoConnection) break;
    when += options_.tcp_hop;
    at = c->prev;
  }
  host_.RunAfter(when - host_.Now(), [this, at, outcome = std::move(outcome)] {
    Connection* c = connections_.Get(at);
    if (c == nullptr) return;
    if (ConnectionHandler* client = c->handler[Index(End::kClient)]) client->OnTls(at, *outcome);
  });
}

// --- closing

void Fabric::Forget(ConnectionId id) {
  if (severed_.empty()) return;
  std::erase_if(severed_, [id](const auto& each) { return each.first == id; });
}

void Fabric::Close(ConnectionId connection, End end, CloseKind kind, std::string_view detail) {
  if (end == End::kServer) Forget(connection);
  Connection* c = connections_.Get(connection);
  if (c == nullptr) return;
  c->handler[Index(end)] = nullptr;
  Unsplice(*c);
  const End other = Other(end);
  if (c->handler[Index(other)] == nullptr) {
    Free(connection);
    return;
  }
  SendClose(connection, other, kind, std::string(detail), 0);
}

void Fabric::ResetDialled(const IpAddress& ip) {
  std::vector<ConnectionId> victims;
  connections_.ForEach([&](ConnectionId id, Connection& c) {
    if (c.dialled.ip == ip && c.state == State::kConnected) victims.push_back(id);
  });
  for (const ConnectionId id : victims) {
    Connection* c = connections_.Get(id);
    if (c == nullptr) continue;
    Unsplice(*c);
    // Neither end may answer the other any more; each hears of it a transit later.
    ConnectionHandler* server = std::exchange(c->handler[Index(End::kServer)], nullptr);
    SendClose(id, End::kClient, CloseKind::kReset, {}, 0);
    if (server == nullptr) continue;
    severed_.emplace_back(id, server);
    host_.Post([this, id] {
      const auto at =
          std::find_if(severed_.begin(), severed_.end(), [id](const auto& each) { return each.first == id; });
      if (at == severed_.end()) return;  // it has closed by itself
      ConnectionHandler* const told = at->second;
      severed_.erase(at);
      told->OnClose(id, CloseKind::kReset, {});
    });
  }
}

void Fabric::CutWhere(
    const std::function<bool(const Origin& origin, const SocketAddress& dialled, const AcceptInfo& info)>& cut) {
  connections_.ForEach([&](ConnectionId, Connection& c) {
    if (c.path != nullptr && !c.path->local()) c.cut = cut(c.origin, c.dialled, c.info);
  });
}

bool Fabric::IsCut(ConnectionId connection) const {
  for (const Connection* c = connections_.Get(connection); c != nullptr; c = connections_.Get(c->next)) {
    if (c->cut || (c->first != kNoConnection && IsCut(c->first))) return true;
  }
  return false;
}

void Fabric::SendClose(ConnectionId id, End to, CloseKind kind, std::string detail, int tries) {
  Connection* c = connections_.Get(id);
  if (c == nullptr) return;
  if (c->path == nullptr || c->vanished[Index(to)]) {
    // Never answered, or nobody is left to be told.
    if (c->handler[Index(to)] == nullptr || c->vanished[Index(to)]) Free(id);
    return;
  }
  Time when = host_.Now();
  bool local = true;
  if (!Cross(*c, to, &when, &local)) {
    if (tries >= options_.data_retries) {
      DeliverClose(id, to, CloseKind::kTimeout, {});
      return;
    }
    ++counters_.retransmissions;
    host_.RunAfter(RetryDelay(tries), [this, id, to, kind, detail = std::move(detail), tries]() mutable {
      SendClose(id, to, kind, std::move(detail), tries + 1);
    });
    return;
  }
  host_.RunAfter(when - host_.Now(),
                 [this, id, to, kind, detail = std::move(detail)] { DeliverClose(id, to, kind, detail); });
}

void Fabric::DeliverClose(ConnectionId id, End to, CloseKind kind, std::string_view detail) {
  Connection* c = connections_.Get(id);
  if (c == nullptr) return;
  ConnectionHandler* handler = c->handler[Index(to)];
  Free(id);
  if (handler != nullptr) handler->OnClose(id, kind, detail);
}

void Fabric::Vanish(ConnectionId connection, End end) {
  if (end == End::kServer) Forget(connection);
  Connection* c = connections_.Get(connection);
  if (c == nullptr) return;
  c->handler[Index(end)] = nullptr;
  c->vanished[Index(end)] = true;
  Unsplice(*c);
  if (c->handler[Index(Other(end))] == nullptr) Free(connection);
}

void Fabric::GiveUp(ConnectionId id) {
  Connection* c = connections_.Get(id);
  if (c == nullptr) return;
  if (c->first != kNoConnection) return GiveUp(c->first);
  ConnectionHandler* client = c->handler[Index(End::kClient)];
  ConnectionHandler* server = c->handler[Index(End::kServer)];
  Free(id);
  if (client != nullptr) client->OnClose(id, CloseKind::kTimeout, {});
  if (server != nullptr) server->OnClose(id, CloseKind::kTimeout, {});
}

void Fabric::Splice(ConnectionId downstream, ConnectionId upstream) {
  Connection* d = connections_.Get(downstream);
  Connection* u = connections_.Get(upstream);
  if (d == nullptr || u == nullptr) return;
  WAVETANK_ASSERT(d != u);
  WAVETANK_ASSERT(d->next == kNoConnection);
  WAVETANK_ASSERT(u->prev == kNoConnection);
  d->next = upstream;
  u->prev = downstream;
}

ConnectionId Fabric::OpenTunnel(ExchangeId exchange, ConnectionHandler* server) {
  const Exchange* const x = exchanges_.Get(exchange);
  const Connection* const at = x == nullptr ? nullptr : connections_.Get(x->terminal);
  if (at == nullptr) return kNoConnection;
  const ConnectionId id = connections_.Allocate();
  Connection& c = *connections_.Get(id);
  c.state = State::kConnected;
  c.classified = true;  // its bytes are no first flight
  c.handler[Index(End::kServer)] = server;
  c.first = x->connection;
  c.last = x->terminal;
  c.origin = at->origin;
  c.info = at->info;
  ++counters_.open_connections;
  return id;
}

void Fabric::CloseTunnel(ConnectionId tunnel) { Free(tunnel); }

uint16_t Fabric::proxies(ConnectionId connection) const {
  const Connection* const c = connections_.Get(connection);
  return c == nullptr ? uint16_t{0} : c->origin.proxies;
}

// --- requests

ExchangeId Fabric::root(ExchangeId exchange) const {
  const Exchange* x = exchanges_.Get(exchange);
  return x == nullptr || x->root == kNoExchange ? exchange : x->root;
}

ExchangeId Fabric::NewExchange(ConnectionId connection, const RequestSpec& spec, ExchangeOwner* owner, uint64_t cookie,
                               ExchangeId of, uint16_t proxies, std::shared_ptr<const void> keeper) {
  WAVETANK_ASSERT(owner != nullptr, cookie);
  const ExchangeId first = of == kNoExchange ? kNoExchange : root(of);
  const ExchangeId id = exchanges_.Allocate();
  Exchange& x = *exchanges_.Get(id);
  x.connection = x.terminal = connection;
  x.spec = &spec;
  x.pace = spec.pace;
  x.owner = owner;
  x.cookie = cookie;
  x.root = first;
  x.proxies = proxies;
  x.keeper = std::move(keeper);
  ++counters_.exchanges;
  ++counters_.open_exchanges;
  return id;
}

uint16_t Fabric::proxies(ExchangeId exchange) const {
  const Exchange* const x = exchanges_.Get(exchange);
  return x == nullptr ? uint16_t{0} : x->proxies;
}

std::shared_ptr<const void> Fabric::keeper(ExchangeId exchange) const {
  const Exchange* const x = exchanges_.Get(exchange);
  return x == nullptr ? nullptr : x->keeper;
}

BodyPace Fabric::pace(ExchangeId exchange) const {
  const Exchange* const x = exchanges_.Get(exchange);
  return x == nullptr ? BodyPace() : x->pace;
}

const PeerInfo* Fabric::peer(ExchangeId exchange) const {
  const Exchange* const x = exchanges_.Get(exchange);
  return x == nullptr ? nullptr : x->peer;
}

void Fabric::SetPeer(ExchangeId exchange, const PeerInfo* peer) {
  if (Exchange* const x = exchanges_.Get(exchange)) x->peer = peer;
}

void Fabric::SetPace(ExchangeId exchange, const BodyPace& pace) {
  if (Exchange* const x = exchanges_.Get(exchange)) x->pace = pace;
}

void Fabric::SetCookie(ExchangeId exchange, uint64_t cookie) {
  if (Exchange* const x = exchanges_.Get(exchange)) x->cookie = cookie;
}

void Fabric::Dispatch(ExchangeId exchange, Duration lead) { Resume(exchange, lead); }

template <typename Message>
void Fabric::TellPassed(ConnectionId first, ConnectionId last, const Message& message) {
  for (ConnectionId at = first; at != last;) {
    const Connection* const c = connections_.Get(at);
    if (c == nullptr) return;
    if (c->first != kNoConnection) TellPassed(c->first, c->last, message);
    if (ConnectionHandler* const proxy = c->handler[Index(End::kServer)]) proxy->OnPassed(message);
    at = c->next;
  }
}

void Fabric::Resume(ExchangeId exchange, Duration lead) {
  Exchange* x = exchanges_.Get(exchange);
  if (x == nullptr || x->answered) return;
  Time when = host_.Now() + lead;
  bool local = true;
  // x->terminal is where the request stands: at the server end of that connection if it was delivered there already.
  ConnectionId at = x->terminal;
  Connection* c = connections_.Get(at);
  if (c == nullptr) return;
  const bool held = x->tries == 0xff;
  if (held) {
    x->tries = 0;
    if (c->next == kNoConnection) return;  // nowhere to go: its holder closes
    when += options_.tcp_hop;
    at = c->next;
    c = connections_.Get(at);
  }
  const ConnectionId start = at, from = x->terminal;
  while (c != nullptr) {
    if (!Cross(*c, End::kServer, &when, &local)) {
      if (x->tries >= options_.data_retries) {
        GiveUp(at);
        return;
      }
      ++counters_.retransmissions;
      if (held) TellPassed(x->terminal, start, *x->spec);
      x->terminal = start;
      host_.RunAfter(lead + RetryDelay(x->tries++), [this, exchange] { Resume(exchange, Duration::zero()); });
      return;
    }
    if (c->next == kNoConnection) break;
    when += options_.tcp_hop;
    at = c->next;
    c = connections_.Get(at);
  }
  x->terminal = at;
  TellPassed(from, at, *x->spec);
  if (local) {
    DeliverRequest(exchange, when - host_.Now());
  } else {
    host_.RunAfter(when - host_.Now(), [this, exchange] { DeliverRequest(exchange, Duration::zero()); });
  }
}

void Fabric::DeliverRequest(ExchangeId id, Duration lead) {
  Exchange* x = exchanges_.Get(id);
  if (x == nullptr) return;
  const ConnectionId at = x->terminal;
  Connection* c = connections_.Get(at);
  if (c == nullptr) return;
  x->tries = 0xff;  // held at the server end
  if (!c->classified) {
    DeliverFlight(at, lead);
    c = connections_.Get(at);
    x = exchanges_.Get(id);
    if (c == nullptr || x == nullptr) return;
  }
  if (c->next != kNoConnection) {  // a tcp_proxy that was ready at once, or became so meanwhile
    Resume(id, lead);
    return;
  }
  ConnectionHandler* server = c->handler[Index(End::kServer)];
  if (server != nullptr) server->OnRequest(at, id, *x->spec, lead);
}

void Fabric::Answer(ExchangeId exchange, const Reply& reply, Duration delay) {
  Exchange* x = exchanges_.Get(exchange);
  if (x == nullptr || x->answered) return;
  WAVETANK_ASSERT(delay >= Duration::zero(), delay);
  x->reply = reply;
  x->answered = true;
  x->tries = 0;
  SendReply(exchange, delay);
}

void Fabric::SendReply(ExchangeId id, Duration delay) {
  Exchange* x = exchanges_.Get(id);
  if (x == nullptr) return;
  Time when = host_.Now() + delay;
  bool local = true;
  ConnectionId at = x->terminal;
  while (true) {
    Connection* c = connections_.Get(at);
    if (c == nullptr) return;  // broken on the way; the owner hears of it by OnClose
    if (!Cross(*c, End::kClient, &when, &local)) {
      if (x->tries >= options_.data_retries) {
        GiveUp(at);
        return;
      }
      ++counters_.retransmissions;
      host_.RunAfter(delay + RetryDelay(x->tries++), [this, id] { SendReply(id, Duration::zero()); });
      return;
    }
    if (at == x->connection) break;
    if (c->prev == kNoConnection) return;
    when += options_.tcp_hop;
    at = c->prev;
  }
  TellPassed(x->connection, x->terminal, x->reply);
  if (local) {
    DeliverReply(id, when - host_.Now());
  } else {
    x->reply.record = nullptr;
    host_.RunAfter(when - host_.Now(), [this, id] { DeliverReply(id, Duration::zero()); });
  }
}

void Fabric::AnswerBegins(ExchangeId exchange, const Reply& head) {
  const Exchange* const x = exchanges_.Get(exchange);
  if (x == nullptr || x->answered) return;
  auto sent = std::make_shared<Reply>(head);
  sent->record = nullptr;
  SendHead(exchange, std::move(sent), Duration::zero(), 0);
}

void Fabric::SendHead(ExchangeId id, std::shared_ptr<const Reply> head, Duration delay, int tries) {
  const Exchange* const x = exchanges_.Get(id);
  if (x == nullptr || x->answered) return;  // its end has overtaken it
  Time when = host_.Now() + delay;
  bool local = true;
  for (ConnectionId at = x->terminal;;) {
    Connection* const c = connections_.Get(at);
    if (c == nullptr) return;
    if (!Cross(*c, End::kClient, &when, &local)) {
      if (tries >= options_.data_retries) return;
      ++counters_.retransmissions;
      host_.RunAfter(RetryDelay(tries),
                     [this, id, head = std::move(head), tries] { SendHead(id, head, Duration::zero(), tries + 1); });
      return;
    }
    if (at == x->connection) break;
    if (c->prev == kNoConnection) return;
    when += options_.tcp_hop;
    at = c->prev;
  }
  host_.RunAfter(when - host_.Now(), [this, id, head = std::move(head)] {
    const Exchange* const begun = exchanges_.Get(id);
    if (begun == nullptr) return;
    const Connection* const c = connections_.Get(begun->connection);
    if (c == nullptr || c->handler[Index(End::kClient)] == nullptr) return;
    begun->owner->OnReplyHead(begun->cookie, *head);
  });
}

void Fabric::DeliverReply(ExchangeId id, Duration lead) {
  Exchange* x = exchanges_.Get(id);
  if (x == nullptr) return;
  Connection* c = connections_.Get(x->connection);
  if (c == nullptr || c->handler[Index(End::kClient)] == nullptr) return;
  WAVETANK_ASSERT(x->answered, x->cookie);
  WAVETANK_ASSERT(counters_.open_exchanges == exchanges_.in_use(), counters_.open_exchanges, exchanges_.in_use());
  ExchangeOwner* owner = x->owner;
  const uint64_t cookie = x->cookie;
  const Reply reply = x->reply;
  exchanges_.Free(id);
  --counters_.open_exchanges;
  owner->OnReply(cookie, reply, lead);
}

void Fabric::Abandon(ExchangeId exchange) {
  if (exchanges_.Get(exchange) == nullptr) return;
  WAVETANK_ASSERT(counters_.open_exchanges > 0);
  exchanges_.Free(exchange);
  --counters_.open_exchanges;
}

void Fabric::ResetRequest(ExchangeId exchange) {
  Exchange* x = exchanges_.Get(exchange);
  if (x == nullptr) return;
  const RequestReset reset{x->connection, x->terminal, exchange, std::move(x->keeper)};
  const bool with_server = x->tries == 0xff && !x->answered;
  Abandon(exchange);
  if (with_server) SendReset(reset, 0);
}

void Fabric::SendReset(const RequestReset& reset, int tries) {
  Time when = host_.Now();
  bool local = true;
  for (ConnectionId at = reset.first;;) {
    Connection* c = connections_.Get(at);
    if (c == nullptr) return;  // broken on the way: the server end hears of that
    if (!Cross(*c, End::kServer, &when, &local)) {
      if (tries >= options_.data_retries) return GiveUp(at);
      ++counters_.retransmissions;
      host_.RunAfter(RetryDelay(tries), [this, reset, tries] { SendReset(reset, tries + 1); });
      return;
    }
    if (at == reset.last) break;
    when += options_.tcp_hop;
    at = c->next;
  }
  host_.RunAfter(when - host_.Now(), [this, reset] {
    const Connection* c = connections_.Get(reset.last);
    ConnectionHandler* server = c == nullptr ? nullptr : c->handler[Index(End::kServer)];
    if (server != nullptr) server->OnRequestReset(reset.last, reset.exchange);
  });
}

void Fabric::Notify(ConnectionId connection, const Http2Notice& notice, Duration lead) {
  SendNotice(connection, notice, lead, 0);
}

void Fabric::SendNotice(ConnectionId id, const Http2Notice& notice, Duration lead, int tries) {
  Time when = host_.Now() + lead;
  bool local = true;
  ConnectionId at = id;
  while (true) {
    Connection* c = connections_.Get(at);
    if (c == nullptr) return;
    if (!Cross(*c, End::kClient, &when, &local)) {
      if (tries >= options_.data_retries) return GiveUp(at);
      ++counters_.retransmissions;
      host_.RunAfter(lead + RetryDelay(tries),
                     [this, id, notice, tries] { SendNotice(id, notice, Duration::zero(), tries + 1); });
      return;
    }
    if (c->prev == kNoConnection) break;
    when += options_.tcp_hop;
    at = c->prev;
  }
  host_.RunAfter(when - host_.Now(), [this, at, notice] {
    const Connection* c = connections_.Get(at);
    ConnectionHandler* client = c == nullptr ? nullptr : c->handler[Index(End::kClient)];
    if (client != nullptr) client->OnHttp2Notice(at, notice);
  });
}

bool Fabric::pending(ExchangeId exchange) const {
  const Exchange* x = exchanges_.Get(exchange);
  return x != nullptr && !x->answered;
}

void Fabric::DescribeHops(ConnectionId connection, std::vector<Hop>* hops) const {
  for (ConnectionId at = connection; at != kNoConnection;) {
    const Connection* c = connections_.Get(at);
    if (c == nullptr) return;
    if (c->first != kNoConnection) {
      DescribeHops(c->first, hops);
    } else {
      Hop& hop = hops->emplace_back();
      hop.from = c->info.workload;
      hop.to = c->info.acceptor;
      hop.destination = c->info.destination;
      if (c->flight != nullptr) {
        hop.sni = c->flight->sni;
        if (!c->flight->alpn.empty()) hop.alpn = c->flight->alpn.front();
      }
    }
    const ConnectionHandler* const server = c->handler[Index(End::kServer)];
    if (server != nullptr && !hops->empty()) server->Describe(&hops->back());
    at = c->next;
  }
}

}  // namespace wavetank::envoysim
