#include "fakes/envoy/apps/app.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/assert.h"
#include "fakes/envoy/apps/client_record.h"
#include "fakes/envoy/apps/client_streams.h"
#include "fakes/envoy/tls/tls.h"

namespace wavetank::envoysim {

// --- AppServer

namespace {

// Service times up to this long are accounted for within the request's own event; longer ones get an event, so that a
// failure in the meantime is noticed when it happens.
constexpr Duration kInlineService = 1ms;

}  // namespace

struct AppServer::State {
  Fabric& fabric;
  Host& host;
  Application& application;
  class ServerConnection* connections = nullptr;
};

class ServerConnection final : public ConnectionHandler {
 public:
  ServerConnection(AppServer::State* state, ConnectionId id) : state_(state), id_(id) {
    next_ = state->connections;
    if (next_ != nullptr) next_->prev_ = this;
    state->connections = this;
  }
  ~ServerConnection() override {
    if (prev_ != nullptr) prev_->next_ = next_;
    if (next_ != nullptr) next_->prev_ = prev_;
    if (state_->connections == this) state_->connections = next_;
  }

  void Close(CloseKind kind) {
    state_->fabric.Close(id_, Fabric::End::kServer, kind);
    delete this;
  }

 private:
  class LaterAnswer final : public Deferral {
   public:
    LaterAnswer(ServerConnection& connection, ExchangeId exchange, const RequestSpec& spec)
        : connection_(connection), exchange_(exchange), spec_(spec) {}
    std::function<void(const AppReply&)> Later() override;

   private:
    ServerConnection& connection_;
    ExchangeId exchange_;
    const RequestSpec& spec_;
  };

  static Reply ReplyOf(const AppReply& app, bool may_have_body) {
    Reply reply;
    reply.code = app.code;
    reply.server = app.server;
    reply.body = app.body;
    // An application says something unless that must not be.
    reply.has_body = app.code >= 200 && app.code != 204 && app.code != 304 && may_have_body;
    reply.headers = app.headers;
    reply.trailers = app.trailers;
    reply.grpc_status = app.grpc_status;
    reply.check_denied = app.check_denied;
    return reply;
  }

  void OnConnected(ConnectionId) override {}
  void OnTls(ConnectionId, const TlsOutcome&) override {}
  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>& flight, Duration lead) override {
    announced_ = flight->announced;
    speaks_tls_ = state_->application.SpeaksTls(state_->fabric.info(id_));
    if (flight->kind != FirstFlight::Kind::kTls) return;
    if (speaks_tls_ && !in_tls_) return ShakeHands(*flight, lead);
    // A server in plain text, or within its session, that is spoken to in TLS.
    TlsOutcome outcome;
    outcome.error = kAnsweredInPlainText;
    state_->fabric.AnswerTls(id_, outcome, lead);
    if (!in_tls_) Close(CloseKind::kFin);  // else the client closes, behind what it has read
  }
  void ShakeHands(const FirstFlight& hello, Duration lead) {
    const HandshakeResult result = state_->application.ShakeHands(state_->fabric.info(id_), hello);
    state_->fabric.AnswerTls(id_, result.client, lead);
    if (result.client.local) return;  // the client closes
    // Under TLS 1.3 the client believes to be connected until it says something.
    refused_ = result.client.refused;
    in_tls_ = result.server_ok;
    if (!in_tls_ && !refused_) Close(CloseKind::kTlsFailed);
  }
  // It reads a request to its end before it looks at it.
  void OnRequest(ConnectionId, ExchangeId exchange, const RequestSpec& spec, Duration lead) override {
    if (refused_) return Close(CloseKind::kTlsFailed);
    if (speaks_tls_ && !in_tls_) {
      // In plain text, as nginx and Go's servers have it: 400 and no more.
      Reply reply;
      reply.code = 400;
      reply.has_body = reply.close = true;
      return state_->fabric.Answer(exchange, reply, lead);
    }
    const Duration rest = state_->fabric.pace(exchange).takes;
    if (rest <= Duration::zero()) return Serve(exchange, spec, lead);
    state_->host.RunAfter(lead + rest, [weak = std::weak_ptr<ServerConnection*>(Self()), exchange, &spec] {
      const auto alive = weak.lock();
      if (alive == nullptr || !(*alive)->state_->fabric.pending(exchange)) return;  // nor is there a `spec` any more
      (*alive)->Serve(exchange, spec, Duration::zero());
    });
  }
  void Serve(ExchangeId exchange, const RequestSpec& spec, Duration lead) {
    LaterAnswer later(*this, exchange, spec);
    const AppReply app = state_->application.Serve({spec, state_->fabric.info(id_), lead, &later, announced_.get()});
    if (app.later) return;
    if (app.unheard) {
      Reply reply;
      reply.code = 0;
      reply.garbled = reply.close = spec.protocol != HttpProtocol::kHttp2;
      return state_->fabric.Answer(exchange, reply, lead);
    }
    if (app.code == 0) {
      if (app.delay <= kInlineService) return Close(CloseKind::kReset);
      state_->host.RunAfter(lead + app.delay, [weak = std::weak_ptr<ServerConnection*>(Self())] {
        if (const auto alive = weak.lock()) (*alive)->Close(CloseKind::kReset);
      });
      return;
    }
    const Reply reply = ReplyOf(app, spec.method != "HEAD");
    if (reply.has_body && app.body_pace.takes > Duration::zero()) {
      state_->host.RunAfter(lead + app.delay,
                            [weak = std::weak_ptr<ServerConnection*>(Self()), exchange, reply, pace = app.body_pace] {
                              if (const auto alive = weak.lock()) (*alive)->AnswerOver(exchange, reply, pace);
                            });
      return;
    }
    if (app.delay <= kInlineService) {
      state_->fabric.Answer(exchange, reply, lead + app.delay);
      return;
    }
    Fabric* fabric = &state_->fabric;  // an answer of a server that is gone meanwhile finds its connection closed
    state_->host.RunAfter(lead + app.delay,
                          [fabric, exchange, reply] { fabric->Answer(exchange, reply, Duration::zero()); });
  }
  // The head, and later the last byte.
  void AnswerOver(ExchangeId exchange, const Reply& reply, const BodyPace& pace) {
    Reply head = reply;
    head.pace = pace;
    state_->fabric.AnswerBegins(exchange, head);
    Fabric* fabric = &state_->fabric;
    state_->host.RunAfter(pace.takes, [fabric, exchange, reply] { fabric->Answer(exchange, reply, Duration::zero()); });
  }
  void OnClose(ConnectionId, CloseKind, std::string_view) override { delete this; }

  const std::shared_ptr<ServerConnection*>& Self() {
    if (self_ == nullptr) self_ = std::make_shared<ServerConnection*>(this);
    return self_;
  }

  AppServer::State* state_;
  ConnectionId id_;
  ServerConnection* next_ = nullptr;
  ServerConnection* prev_ = nullptr;
  std::shared_ptr<const AnnouncedAddresses> announced_;
  bool speaks_tls_ = false, in_tls_ = false, refused_ = false;
  std::shared_ptr<ServerConnection*> self_;  // made when an answer has to find it later
};

std::function<void(const AppReply&)> ServerConnection::LaterAnswer::Later() {
  return [weak = std::weak_ptr<ServerConnection*>(connection_.Self()), exchange = exchange_,
          may_have_body = spec_.method != "HEAD"](const AppReply& app) {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    ServerConnection& connection = **alive;
    if (app.code == 0) return connection.Close(CloseKind::kReset);
    const Reply reply = ReplyOf(app, may_have_body);
    if (reply.has_body && app.body_pace.takes > Duration::zero())
      return connection.AnswerOver(exchange, reply, app.body_pace);
    connection.state_->fabric.Answer(exchange, reply, Duration::zero());
  };
}

HandshakeResult Application::ShakeHands(const AcceptInfo& /*connection*/, const FirstFlight& /*hello*/) {
  WAVETANK_ASSERT(false, "an application that speaks TLS shakes hands");
  return {};
}

AppServer::AppServer(Fabric& fabric, Host& host, Application& application)
    : state_(std::make_unique<State>(State{fabric, host, application, nullptr})) {}

AppServer::~AppServer() {
  while (state_->connections != nullptr) state_->connections->Close(CloseKind::kReset);
}

ConnectionHandler* AppServer::Accept(ConnectionId connection, const AcceptInfo& /*info*/) {
  return new ServerConnection(state_.get(), connection);
}

// --- AppClient

struct AppClient::State final : ClientStreams::Owner {
  State(Fabric& fabric, Host& host, WorkloadId workload, std::string_view name, const IpAddress& source)
      : context{fabric, host, workload, host.Intern(name), source} {}

  void SendOn(const SocketAddress& destination, const std::shared_ptr<const FirstFlight>& flight, bool given,
              ClientStreams::Request request);
  void SendElsewhere(const ClientStreams& streams, ClientStreams::Request request) override {
    SendOn(streams.destination(), streams.flight(), streams.given(), std::move(request));
  }
  void Ended(ClientStreams& streams) override {
    const auto at =
        std::find_if(shared.begin(), shared.end(), [&](const auto& each) { return each.get() == &streams; });
    WAVETANK_ASSERT(at != shared.end());
    const std::unique_ptr<ClientStreams> ended = std::move(*at);
    shared.erase(at);
  }

  const ClientContext context;
  class ClientConnection* connections = nullptr;  // list
  absl::flat_hash_map<SocketAddress, std::vector<class ClientConnection*>> idle;
  std::vector<std::unique_ptr<ClientStreams>> shared;  // HTTP/2, the oldest first
  std::shared_ptr<const RequestSpec> last_spec;        // that went out on one of them
};

class ClientConnection final : public ConnectionHandler, public ExchangeOwner {
 public:
  ClientConnection(AppClient::State* state, const SocketAddress& destination, std::shared_ptr<const FirstFlight> flight,
                   bool session, bool given = false)
      : state_(state), destination_(destination), session_(session), given_(given), flight_(std::move(flight)) {
    next_ = state->connections;
    if (next_ != nullptr) next_->prev_ = this;
    state->connections = this;
  }
  ~ClientConnection() override {
    state_->context.host.Cancel(timer_);
    state_->context.host.Cancel(timer_after_);
    if (prev_ != nullptr) prev_->next_ = next_;
    if (next_ != nullptr) next_->prev_ = prev_;
    if (state_->connections == this) state_->connections = next_;
    if (holder_ != nullptr) *holder_ = nullptr;
  }

  void Open() {
    id_ = state_->context.fabric.Connect({state_->context.workload, Origin::Who::kApplication, state_->context.source},
                                         destination_, this);
    if (state_->context.fabric.state(id_) == Fabric::State::kConnected) OnConnected(id_);
  }

  void Send(const RequestSpec& spec, const AppClient::Options& options, AppClient::Done done) {
    WAVETANK_ASSERT(!busy(), id_);  // one request at a time
    WAVETANK_ASSERT(exchange_ == kNoExchange, exchange_);
    WAVETANK_ASSERT(timer_ == kNoTimer);
    WAVETANK_ASSERT(done != nullptr);
    spec_ = &spec;
    done_ = std::move(done);
    keep_alive_ = options.keep_alive || session_;
    start_ = state_->context.host.Now();
    sent_ = false;
    if (options.timeout > Duration::zero()) {
      timer_ = state_->context.host.RunAfter(options.timeout, [this] {
        timer_ = kNoTimer;
        state_->context.fabric.Close(id_, Fabric::End::kClient, CloseKind::kReset);
        state_->context.host.Cancel(std::exchange(timer_after_, kNoTimer));  // the answer is not there yet
        Gone("client timeout");
      });
    }
    if (ready_) Dispatch();
  }

  // The flight that its maker wanted; null: that of the request's protocol.
  const FirstFlight* given() const { return given_ ? flight_.get() : nullptr; }
  bool busy() const { return spec_ != nullptr; }
  bool closed() const { return id_ == kNoConnection; }
  const SocketAddress& destination() const { return destination_; }

  // The owner goes: no callback any more.
  void Drop() {
    if (id_ != kNoConnection) state_->context.fabric.Close(id_, Fabric::End::kClient, CloseKind::kReset);
    if (exchange_ != kNoExchange) state_->context.fabric.Abandon(exchange_);
    delete this;
  }
  // Of a session: what is set to null when the connection goes first, with its client.
  void HeldBy(ClientConnection** holder) { holder_ = holder; }

  ClientConnection* next_ = nullptr;
  ClientConnection* prev_ = nullptr;

  static std::shared_ptr<const FirstFlight> FlightOf(FirstFlight::Kind kind) {
    auto flight = std::make_shared<FirstFlight>();
    flight->kind = kind;
    return flight;
  }

 private:
  void OnConnected(ConnectionId) override {
    state_->context.fabric.SetFlight(id_, flight_);
    if (flight_->kind != FirstFlight::Kind::kTls) Ready();  // else when the session stands
  }
  void OnTls(ConnectionId, const TlsOutcome& outcome) override {
    finding_ = outcome.finding;
    if (outcome.ok) return Ready();
    const std::string why = outcome.error;
    state_->context.fabric.Close(id_, Fabric::End::kClient, CloseKind::kTlsFailed, "alert");
    Gone("TLS handshake failed", why);
  }
  void Ready() {
    ready_ = true;
    if (busy() && !sent_) Dispatch();
  }
  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId, ExchangeId, const RequestSpec&, Duration) override {}
  void OnHttp2Notice(ConnectionId, const Http2Notice& notice) override {
    if (!notice.goes_away) return;
    keep_alive_ = false;
    if (busy() || session_) return;  // it ends with its request
    state_->context.fabric.Close(id_, Fabric::End::kClient, CloseKind::kFin);
    Gone("connection closed");
  }

  void Dispatch() {
    WAVETANK_ASSERT(ready_, id_);
    WAVETANK_ASSERT(busy(), id_);
    WAVETANK_ASSERT(!sent_, id_);  // each request goes out once
    sent_ = true;
    exchange_ = state_->context.fabric.NewExchange(id_, *spec_, this, 0);
    dispatching_ = true;
    state_->context.fabric.Dispatch(exchange_, Duration::zero());
    dispatching_ = false;
  }

  void OnReply(uint64_t /*cookie*/, const Reply& reply, Duration lead) override {
    WAVETANK_ASSERT(busy(), id_);
    WAVETANK_ASSERT(timer_after_ == kNoTimer, id_);  // a request is answered once
    WAVETANK_ASSERT(lead >= Duration::zero(), lead);
    exchange_ = kNoExchange;
    if (reply.close) keep_alive_ = false;
    const RequestRecord record = RecordOf(state_->context, *spec_, destination_, id_, start_, reply, lead);
    if (lead == Duration::zero() && !dispatching_) {
      Finish(record);
      return;
    }
    // Answered within the pod, ahead of the clock: the client goes on when the clock is there.
    auto kept = std::make_shared<KeptRecord>(record);
    timer_after_ = state_->context.host.RunAfter(lead, [this, kept] {
      timer_after_ = kNoTimer;
      Finish(kept->record);
    });
  }

  void Finish(const RequestRecord& record) {
    WAVETANK_ASSERT(busy(), id_);
    WAVETANK_ASSERT(exchange_ == kNoExchange, exchange_);
    state_->context.host.Cancel(timer_);
    timer_ = kNoTimer;
    spec_ = nullptr;
    AppClient::Done done = std::move(done_);
    if (session_) {
      done(record);
      return;
    }
    if (keep_alive_ && id_ != kNoConnection) {
      state_->idle[destination_].push_back(this);
      done(record);
      return;
    }
    if (id_ == kNoConnection) {
      delete this;
      done(record);
      return;
    }
    // Hops are asked for during the callback, so the connection lives until then; the client may end with it.
    const ConnectionId id = id_;
    Fabric& fabric = state_->context.fabric;
    delete this;
    done(record);
    fabric.Close(id, Fabric::End::kClient, CloseKind::kFin);
  }

  void OnClose(ConnectionId, CloseKind kind, std::string_view detail) override {
    switch (kind) {
      case CloseKind::kRefused:
        Gone("connection refused", detail);
        return;
      case CloseKind::kTimeout:
        Gone("connection timed out", detail);
        return;
      default:
        Gone("connection reset", detail);
        return;
    }
  }

  // `closer`: what the proxy that closed it says of that.
  void Gone(std::string_view why, std::string_view closer = {}) {
    const std::string finding = finding_;  // the record is told of when this connection is gone
    id_ = kNoConnection;
    state_->context.host.Cancel(timer_);
    timer_ = kNoTimer;
    if (exchange_ != kNoExchange) state_->context.fabric.Abandon(exchange_);
    exchange_ = kNoExchange;
    if (!busy()) {
      std::vector<ClientConnection*>& idle = state_->idle[destination_];
      idle.erase(std::remove(idle.begin(), idle.end(), this), idle.end());
      if (!session_) delete this;
      return;
    }
    if (timer_after_ != kNoTimer) return;  // answered already
    Finish(RecordOfNone(state_->context, *spec_, destination_, start_, why, closer, finding));
  }

  AppClient::State* state_;
  SocketAddress destination_;
  const bool session_;
  ClientConnection** holder_ = nullptr;
  const bool given_;
  const std::shared_ptr<const FirstFlight> flight_;
  ConnectionId id_ = kNoConnection;
  bool ready_ = false;
  bool sent_ = false;
  bool keep_alive_ = true;
  bool dispatching_ = false;
  const RequestSpec* spec_ = nullptr;
  std::string finding_;  // TlsOutcome::finding
  AppClient::Done done_;
  ExchangeId exchange_ = kNoExchange;
  Time start_{};
  TimerId timer_ = kNoTimer;
  TimerId timer_after_ = kNoTimer;
};

AppClient::AppClient(Fabric& fabric, Host& host, WorkloadId workload, std::string_view name, const IpAddress& source)
    : state_(std::make_unique<State>(fabric, host, workload, name, source)) {}

AppClient::~AppClient() {
  while (state_->connections != nullptr) state_->connections->Drop();
  state_->shared.clear();
}

void AppClient::State::SendOn(const SocketAddress& destination, const std::shared_ptr<const FirstFlight>& flight,
                              bool given, ClientStreams::Request request) {
  for (const std::unique_ptr<ClientStreams>& streams : shared) {
    if (streams->Takes(destination, given ? flight.get() : nullptr)) return streams->Send(std::move(request));
  }
  ClientStreams& made =
      *shared.emplace_back(std::make_unique<ClientStreams>(context, destination, flight, given, *this));
  made.Send(std::move(request));
  made.Open();
}

void AppClient::Send(const SocketAddress& destination, const RequestSpec& spec, const Options& options, Done done) {
  const bool http2 = spec.protocol == HttpProtocol::kHttp2;
  const auto flight_of = [&] {
    if (options.flight != nullptr) return options.flight;
    return ClientConnection::FlightOf(http2                                    ? FirstFlight::Kind::kHttp2
                                      : spec.protocol == HttpProtocol::kHttp10 ? FirstFlight::Kind::kHttp10
                                                                               : FirstFlight::Kind::kHttp1);
  };
  if (http2 && options.multiplex) {
    WAVETANK_ASSERT(options.keep_alive, destination.port);
    std::shared_ptr<const RequestSpec>& own = state_->last_spec;
    if (own == nullptr || own->id() != spec.id()) own = std::make_shared<RequestSpec>(spec);
    ClientStreams::Request request{own, std::move(done), state_->context.host.Now(), std::nullopt};
    if (options.timeout > Duration::zero()) request.deadline = request.start + options.timeout;
    return state_->SendOn(destination, flight_of(), options.flight != nullptr, std::move(request));
  }
  if (options.keep_alive) {
    std::vector<ClientConnection*>& idle = state_->idle[destination];
    const auto usable = std::find_if(idle.rbegin(), idle.rend(),
                                     [&](const ClientConnection* c) { return c->given() == options.flight.get(); });
    if (usable != idle.rend()) {
      ClientConnection* connection = *usable;
      WAVETANK_ASSERT(!connection->closed(), destination.port);  // what has gone is not idle
      idle.erase(std::next(usable).base());
      connection->Send(spec, options, std::move(done));
      return;
    }
  }
  auto* connection = new ClientConnection(state_.get(), destination, flight_of(), /*session=*/false,
                                          /*given=*/options.flight != nullptr);
  connection->Send(spec, options, std::move(done));
  connection->Open();
}

namespace {

class SessionImpl final : public AppClient::Session {
 public:
  SessionImpl(Host& host, ClientConnection* connection) : host_(host), connection_(connection) {
    connection_->HeldBy(&connection_);
  }
  ~SessionImpl() override {
    if (connection_ != nullptr) connection_->Drop();
  }
  bool open() const override { return connection_ != nullptr && !connection_->closed(); }
  void Send(const RequestSpec& spec, AppClient::Done done) override {
    if (open()) return connection_->Send(spec, AppClient::Options{}, std::move(done));
    host_.Post([done = std::move(done)]() mutable {
      RequestRecord record;
      record.details = "connection closed";
      done(record);
    });
  }

 private:
  Host& host_;
  ClientConnection* connection_;  // null: it went with its client
};

}  // namespace

std::unique_ptr<AppClient::Session> AppClient::OpenSession(const SocketAddress& destination, FirstFlight::Kind kind,
                                                           std::shared_ptr<const FirstFlight> flight) {
  if (flight == nullptr) flight = ClientConnection::FlightOf(kind);
  auto* connection = new ClientConnection(state_.get(), destination, std::move(flight), /*session=*/true);
  connection->Open();
  return std::make_unique<SessionImpl>(state_->context.host, connection);
}

}  // namespace wavetank::envoysim
