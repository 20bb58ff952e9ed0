#include "fakes/envoy/proxy/downstream.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/config/alpn_offers.h"
#include "fakes/envoy/http/http2_options.h"
#include "fakes/envoy/http/message_size.h"
#include "fakes/envoy/lb/consistent_hash.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/tls/tls.h"
#include "fmt/format.h"

namespace wavetank::envoysim {

// The upstream side of a tcp_proxy: one connection, for as long as the downstream one.
class TcpUpstream final : public ConnectionHandler, public HostUser {
 public:
  TcpUpstream(DownstreamConnection& downstream, ClusterRuntime& cluster, HostRuntime& host,
              std::shared_ptr<const FirstFlight> flight)
      : downstream_(&downstream),
        cluster_(cluster),
        host_(host),
        flight_(std::move(flight)),
        dial_(cluster.process(), this) {
    ++cluster_.connections;
    ++host_.connections;
    cluster_.BeginRequest(host_);
    cluster_.Count(ClusterStat::kCxTotal);
    cluster_.Count(ClusterStat::kRqPendingTotal);
    if (cluster_.config().close_on_health_failure) host_.users.push_back(this);
  }

  void Start(Duration lead) {
    Process& envoy = cluster_.process();
    const auto proxies = static_cast<uint16_t>(envoy.fabric().proxies(downstream_->id()) + 1);
    const Origin origin{envoy.options().workload, Origin::Who::kProxy, cluster_.config().bind_source, proxies};
    if (dial_.Start(origin, host_.address, host_.more_addresses, lead)) return OnConnected(dial_.id());
    timer_ = envoy.host().RunAfter(lead + cluster_.config().connect_timeout, [this] {
      timer_ = kNoTimer;
      cluster_.Count(ClusterStat::kCxConnectTimeout);
      Fail(CloseKind::kReset, "connection timeout");
    });
  }

  ConnectionId id() const { return dial_.id(); }
  uint64_t number() const { return dial_.number(); }
  const HostRuntime& host() const { return host_; }
  std::string_view cluster_name() const { return cluster_.config().name; }
  const TlsOutcome& tls() const { return tls_; }
  UpstreamSession session() const {
    const bool shown = !tls_.terms.client_signature.empty();
    return {tls_.terms, tls_.server_certificate, shown ? flight_->tls->certificate : nullptr, NumberOfSession(tls_)};
  }

  // The downstream side goes; this closes and deletes itself.
  void Close(CloseKind kind) {
    dial_.Close(kind);
    delete this;
  }
  void Vanish() {
    dial_.Vanish();
    delete this;
  }

 private:
  ~TcpUpstream() override {
    cluster_.process().host().Cancel(timer_);
    host_.users.erase(std::remove(host_.users.begin(), host_.users.end(), this), host_.users.end());
    cluster_.EndRequest(host_);
    cluster_.ConnectionClosed(host_);
  }

  void OnConnected(ConnectionId connection) override {
    const bool originates = cluster_.Socket(host_).tls != nullptr;
    if (originates) {
      if (!flight_->tls->complete()) {
        Fail(CloseKind::kReset, "TLS error: Secret is not supplied by SDS");
        return;
      }
      Process& process = cluster_.process();
      process.fabric().SetFlight(connection, Resuming(flight_, process.host().Now()),
                                 process.latencies().tls_handshake);
      shaking_hands_ = true;
      return;
    }
    dial_.Settle(connection);
    Ready();
    // What the client said goes on as it is; a ClientHello that passes through is answered by the far end.
  }

  void OnTls(ConnectionId connection, const TlsOutcome& outcome) override {
    tls_ = outcome;
    cluster_.CountHandshake(outcome);
    if (flight_->tls->sessions != nullptr) flight_->tls->sessions->Keep(outcome);
    if (outcome.ok) {
      dial_.Settle(connection);
      Ready();
      return;
    }
    if (!dial_.alone()) {
      cluster_.process().fabric().Close(connection, Fabric::End::kClient, CloseKind::kTlsFailed, "alert");
      dial_.Failed(connection);
      return;
    }
    Fail(CloseKind::kTlsFailed, cluster_.Worded(outcome.error), outcome.finding);
  }

  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId, ExchangeId, const RequestSpec&, Duration) override {}

  void OnClose(ConnectionId connection, CloseKind kind, std::string_view detail) override {
    DownstreamConnection* downstream = downstream_;
    if (!ready_) {
      if (dial_.Failed(connection)) return;
      cluster_.Count(ClusterStat::kCxConnectFail);
      cluster_.Report(host_, OutlierResult::kConnectFailed, 0);
      const std::string why = kind == CloseKind::kReset && shaking_hands_ ? cluster_.ResetInHandshake()
                              : kind != CloseKind::kRefused               ? ""
                              : cluster_.process().release().Has(EnvoyChange::kConnectErrorsAreWords)
                                  ? "delayed connect error: Connection refused"
                                  : "delayed connect error: 111";
      downstream->upstream_ = nullptr;
      delete this;
      downstream->TcpUpstreamFailed(kUpstreamConnectionFailure, why);
      return;
    }
    // Under TLS 1.3 a server that does not believe hangs up only now.
    // What a proxy further on says of its end comes through.
    const std::string why = tls_.refused     ? downstream->At("the upstream refuses its certificate: " + tls_.finding)
                            : detail.empty() ? downstream->At("closed by the upstream")
                                             : std::string(detail);
    downstream->upstream_ = nullptr;
    delete this;
    downstream->CloseNow(kind == CloseKind::kTimeout ? CloseKind::kReset : kind, why);
  }

  // Envoy: tcp_proxy.cc, onUpstreamEvent (LocalClose)
  void OnHostFailed() override {
    DownstreamConnection* downstream = downstream_;
    dial_.Close(CloseKind::kFin);
    downstream->upstream_ = nullptr;
    if (!ready_) {
      cluster_.Count(ClusterStat::kCxConnectFail);
      delete this;
      return downstream->TcpUpstreamFailed(kUpstreamConnectionFailure, "");
    }
    const std::string why = downstream->At("its host is ejected, and the cluster closes what stands to such a one");
    delete this;
    downstream->CloseNow(CloseKind::kFin, why);
  }

  void Ready() {
    WAVETANK_ASSERT(!ready_, id());  // a connection stands once
    cluster_.process().host().Cancel(timer_);
    timer_ = kNoTimer;
    ready_ = true;
    cluster_.Count(ClusterStat::kRqTotal);
    cluster_.Report(host_, OutlierResult::kTcpConnected, 0);
    downstream_->TcpUpstreamReady();
  }

  void Fail(CloseKind kind, std::string_view why, std::string_view found = {}) {
    cluster_.Count(ClusterStat::kCxConnectFail);
    cluster_.Report(host_, OutlierResult::kConnectFailed, 0);
    dial_.Close(kind, "alert");
    DownstreamConnection* downstream = downstream_;
    const std::string reason(why), finding(found);
    downstream->upstream_ = nullptr;
    delete this;
    downstream->TcpUpstreamFailed(kUpstreamConnectionFailure, reason, finding);
  }

  DownstreamConnection* downstream_;
  ClusterRuntime& cluster_;
  HostRuntime& host_;
  std::shared_ptr<const FirstFlight> flight_;
  Dial dial_;
  TimerId timer_ = kNoTimer;
  bool ready_ = false, shaking_hands_ = false;
  TlsOutcome tls_;
};

DownstreamConnection::DownstreamConnection(DataPlaneView& envoy, ConnectionId id,
                                           std::shared_ptr<const ListenerConfig> listener, bool restored)
    : envoy_(envoy), id_(id), listener_(std::move(listener)), restored_(restored) {
  WAVETANK_ASSERT(id_ != kNoConnection);
  WAVETANK_ASSERT(listener_ != nullptr, id_);
  envoy_.Attach(this);
  if (envoy_.plane().collects_access_logs()) BeginLog();
}

void DownstreamConnection::BeginLog() {
  log_ = std::make_unique<ConnectionLog>();
  log_->start = envoy_.host().Now();
  log_->source = ConnectingEnd(envoy_.fabric(), id_);
  log_->destination = original_destination();
}

DownstreamConnection::~DownstreamConnection() {
  for (TimerId timer : {filters_timer_, drain_timer_, sequence_timer_, linger_timer_, age_timer_, idle_timer_}) {
    envoy_.host().Cancel(timer);
  }
  if (is_gone_ != nullptr) *is_gone_ = true;
  envoy_.Detach(this);
}

const SocketAddress& DownstreamConnection::original_destination() const {
  return announced_ != nullptr ? announced_->destination : envoy_.plane().fabric().info(id_).destination;
}

SocketAddress DownstreamConnection::remote() const {
  return announced_ != nullptr ? announced_->source : ConnectingEnd(envoy_.fabric(), id_);
}

// Envoy: source/extensions/filters/listener/proxy_protocol/proxy_protocol.cc
bool DownstreamConnection::ReadProxyProtocol() {
  const bool there = flight_->announced != nullptr;
  if (!listener_->proxy_protocol) {
    garbled_ = there;
    return true;
  }
  const char* const allowed = listener_->allows_no_proxy_protocol ? "allowed" : "disallowed";
  if (!there) {
    ++envoy_.Counter(fmt::format("proxy_proto.not_found_{}", allowed));
    if (listener_->allows_no_proxy_protocol) return true;
    ++envoy_.Counter("downstream_cx_proxy_proto_error");
    CloseNow(CloseKind::kFin, fmt::format("listener {}: no PROXY protocol", listener_->name));
    return false;
  }
  ++envoy_.Counter(fmt::format("proxy_proto.versions.v{}.found", flight_->announced->version));
  if (flight_->announced->source == SocketAddress{}) return true;
  announced_ = flight_->announced;
  if (log_ != nullptr) {
    log_->source = announced_->source;
    log_->destination = announced_->destination;
  }
  return true;
}

const SocketAddress& DownstreamConnection::restored_destination() const {
  static const SocketAddress kNotRestored;
  return restored_ || announced_ != nullptr ? original_destination() : kNotRestored;
}

const IpAddress& DownstreamConnection::source_ip() const {
  return announced_ != nullptr ? announced_->source.ip : envoy_.plane().fabric().info(id_).source.ip;
}

std::string DownstreamConnection::StatPrefix() const {
  return fmt::format("listener.{}_{}.", listener_->address.ip.ToString(), listener_->address.port);
}

void DownstreamConnection::OnFirstFlight(ConnectionId /*connection*/, const std::shared_ptr<const FirstFlight>& flight,
                                         Duration lead) {
  WAVETANK_ASSERT(flight != nullptr, id_);
  if (chain_ != nullptr) {
    // A ClientHello within the session that ended here: a tcp_proxy passes it on, a codec reads a broken request.
    WAVETANK_ASSERT(tls_ && flight->kind == FirstFlight::Kind::kTls, id_);
    if (chain_->http.has_value()) {
      ++envoy_.Counter(fmt::format("http.{}.downstream_cx_protocol_error", chain_->http->stat_prefix));
      TlsOutcome outcome;
      outcome.error = kAnsweredInPlainText;
      return envoy_.fabric().AnswerTls(id_, outcome, lead);  // the client closes, behind what it has read
    }
    inner_flight_ = flight;
    passes_inner_ = true;
    if (upstream_ready_) Proceed();
    return;
  }
  flight_ = flight;
  lead += envoy_.plane().options().latencies.accept;
  if (!ReadProxyProtocol()) return;
  const uint16_t port = original_destination().port;
  const bool waits = (listener_->tls_inspector && !listener_->tls_inspector_disabled.Matches(port)) ||
                     (listener_->http_inspector && !listener_->http_inspector_disabled.Matches(port));
  if (flight->kind == FirstFlight::Kind::kSilent && waits) {
    // The inspectors wait for bytes that never come; the server would have to speak first.
    if (listener_->listener_filters_timeout == Duration::zero()) return;
    filters_timer_ = envoy_.host().RunAfter(lead + listener_->listener_filters_timeout, [this] {
      filters_timer_ = kNoTimer;
      if (!listener_->continue_on_timeout) {
        ++envoy_.Counter(StatPrefix() + "downstream_pre_cx_timeout");
        CloseNow(CloseKind::kReset);
        return;
      }
      Classify(*flight_, Duration::zero(), /*timed_out=*/true);
    });
    return;
  }
  Classify(*flight, lead, /*timed_out=*/false);
}

bool DownstreamConnection::ChooseChain(const FirstFlight& flight, bool inspect) {
  static const std::vector<std::string> kHttp10 = {"http/1.0"};
  static const std::vector<std::string> kHttp11 = {"http/1.1"};
  static const std::vector<std::string> kH2c = {"h2c"};
  ConnectionProperties c;
  c.destination = original_destination();
  c.source = announced_ != nullptr ? announced_->source : envoy_.plane().fabric().info(id_).source;
  c.transport_protocol = "raw_buffer";  // unless an inspector knows better
  std::string server_name;
  const uint16_t port = c.destination.port;
  inspect = inspect && !garbled_;  // no inspector knows what it begins with
  if (inspect && listener_->tls_inspector && !listener_->tls_inspector_disabled.Matches(port) &&
      flight.kind == FirstFlight::Kind::kTls) {
    c.transport_protocol = "tls";
    server_name = flight.sni;
    std::transform(server_name.begin(), server_name.end(), server_name.begin(),
                   [](unsigned char ch) { return std::tolower(ch); });
    c.server_name = server_name;
    c.application_protocols = &flight.alpn;
  } else if (inspect && listener_->http_inspector && !listener_->http_inspector_disabled.Matches(port)) {
    if (flight.kind == FirstFlight::Kind::kHttp10) c.application_protocols = &kHttp10;
    if (flight.kind == FirstFlight::Kind::kHttp1) c.application_protocols = &kHttp11;
    if (flight.kind == FirstFlight::Kind::kHttp2) c.application_protocols = &kH2c;
  }
  const std::optional<uint32_t> found = listener_->matcher.Find(c);
  WAVETANK_ASSERT(!found.has_value() || *found < listener_->chains.size(), *found, listener_->chains.size());
  if (found.has_value()) {
    chain_ = &listener_->chains[*found];
  } else if (listener_->default_chain.has_value()) {
    chain_ = &listener_->chains[*listener_->default_chain];
  }
  return chain_ != nullptr;
}

void DownstreamConnection::Classify(const FirstFlight& flight, Duration lead, bool timed_out) {
  if (!ChooseChain(flight, !timed_out)) {
    ++envoy_.Counter(StatPrefix() + "no_filter_chain_match");
    if (log_ != nullptr) {
      log_->flags |= kNoRouteFound;
      log_->details = "filter_chain_not_found";
    }
    CloseNow(CloseKind::kReset, fmt::format("listener {}: no filter chain matches", listener_->name));
    return;
  }
  CountBegin();
  number_ = envoy_.process().NewConnection();
  if (!chain_->stats.empty() && log_ == nullptr) BeginLog();
  if (chain_->socket.tls != nullptr) {
    if (!HandshakeOk(flight, lead)) return;
  } else if (flight.kind == FirstFlight::Kind::kTls && chain_->http.has_value()) {
    // The codec reads a ClientHello as a broken request and says so in clear text.
    ++envoy_.Counter(fmt::format("http.{}.downstream_cx_protocol_error", chain_->http->stat_prefix));
    TlsOutcome outcome;
    outcome.error = kAnsweredInPlainText;
    envoy_.fabric().AnswerTls(id_, outcome, lead);
    CloseNow(CloseKind::kFin);
    return;
  }
  for (const auto& filter : chain_->filters) filter->OnNewConnection(*this);
  LimitAge();
  if (chain_->tcp.has_value()) {
    StartTcpProxy(lead);
  } else if (!chain_->http.has_value() || (SpeaksAlone() && Admit() == Admission::kRefused)) {
    CloseNow(CloseKind::kReset, refusal_);  // a chain without a terminal filter, or refused
  }
}

// Whether the first flight is bytes for the network filters: a ClientHello is not where TLS ends here.
bool DownstreamConnection::Speaks() const {
  return chain_->socket.tls == nullptr && flight_ != nullptr && flight_->kind != FirstFlight::Kind::kSilent;
}

// Whether it is so, and no request comes with it.
bool DownstreamConnection::SpeaksAlone() const {
  return Speaks() && (flight_->kind == FirstFlight::Kind::kTls || flight_->kind == FirstFlight::Kind::kOpaque);
}

bool DownstreamConnection::PassesTls() const {
  return passes_inner_ || (!tls_ && flight_ != nullptr && flight_->kind == FirstFlight::Kind::kTls);
}

// Each chain of each life of a process has its own keys for tickets, and new ones with each certificate or trusted CA;
// keys that are given hold wherever the certificate is the same. Envoy: source/common/tls/server_context_impl.cc
void DownstreamConnection::SetSessions(TlsServer* server) const {
  const TlsContext& context = *server->context;
  const uint64_t certificate = server->certificate == nullptr ? 0 : server->certificate->fingerprint,
                 trusted = server->trusted_ca == nullptr ? 0 : server->trusted_ca->fingerprint();
  const std::string place = context.ticket_keys != 0
                                ? fmt::format("{}", context.ticket_keys)
                                : fmt::format("{}|{}|{}|{}", static_cast<uint32_t>(envoy_.options().workload),
                                              envoy_.life(), listener_->name, chain_->hash.low);
  // Of a secret with rules of its own, such as a list of what is revoked, any change counts.
  const uint32_t rules = server->peer_of_secret == nullptr ? 0 : envoy_.secrets().epoch();
  server->sessions = HashBytes(fmt::format("{}|{}|{}|{}", place, certificate, trusted, rules)).low | 1;
  server->number = Mix64(static_cast<uint64_t>(id_));
}

bool DownstreamConnection::HandshakeOk(const FirstFlight& flight, Duration lead) {
  const std::string prefix = StatPrefix();
  if (flight.kind != FirstFlight::Kind::kTls || garbled_) {
    ++envoy_.Counter(prefix + "ssl.connection_error");
    CloseNow(CloseKind::kReset);
    return false;
  }
  TlsServer server;
  static_cast<TlsParty&>(server) = envoy_.secrets().Party(chain_->socket.tls);
  if (!server.complete()) {
    ++envoy_.Counter(prefix + "server_ssl_socket_factory.downstream_context_secrets_not_ready");
    CloseNow(CloseKind::kReset);
    return false;
  }
  SetSessions(&server);
  HandshakeResult result = envoy_.plane().tls().Handshake(flight, server, envoy_.host().WallClock());
  tls_ = true;
  client_identity_ = result.client_identity;
  server_identity_ = result.client.server_identity;
  client_verified_ = result.client_verified;
  server_verified_ = result.server_verified;
  alpn_ = result.client.alpn;
  terms_ = result.client.terms;
  server_certificate_ = server.certificate;
  result.client.server_certificate = server.certificate;
  if (chain_->exchanges_peers && alpn_ == kPeerExchange) {
    result.client.peer = envoy_.peer();
    if (log_ != nullptr) log_->peer = flight.peer;
  }
  if (envoy_.plane().options().trace_connections) {
    const bool ok = result.server_ok && result.client.ok;
    envoy_.host().Emit({TraceKind::kHandshake, envoy_.trace_name(), envoy_.host().Intern(client_identity_), ok ? 1 : 0,
                        0, fmt::format("{}|{}|{}", flight.sni, alpn_, result.client.error)});
  }
  envoy_.fabric().AnswerTls(id_, result.client, lead + envoy_.plane().options().latencies.tls_handshake);
  if (!result.server_counter.empty()) ++envoy_.Counter(fmt::format("{}ssl.{}", prefix, result.server_counter));
  if (result.client.local) return false;  // the client closes
  refused_ = result.client.refused;
  if (refused_) return false;  // until the client, which believes it is connected, says something
  if (!result.server_ok) {
    CloseNow(CloseKind::kTlsFailed);
    return false;
  }
  const bool resumed = result.client.resumed.server != 0;
  if (resumed) ++envoy_.Counter(prefix + "ssl.session_reused");
  // A session that lives in its ticket has an id once that comes back.
  if (resumed || !server.context->gives_tickets) session_number_ = NumberOfSession(result.client);
  ++envoy_.Counter(prefix + "ssl.handshake");
  const TlsTerms& terms = result.client.terms;
  ForEachTerm(terms, terms.client_signature, [&](std::string_view kind, std::string_view name) {
    ++envoy_.Counter(fmt::format("{}ssl.{}{}", prefix, kind, name));
  });
  if (terms.client_signature.empty()) ++envoy_.Counter(prefix + "ssl.no_certificate");
  return true;
}

void DownstreamConnection::OnRequest(ConnectionId /*connection*/, ExchangeId exchange, const RequestSpec& spec,
                                     Duration lead) {
  if (log_ != nullptr) {
    log_->heard = true;
    log_->read += MessageSize(spec);
    log_->read_known &= spec.protocol != HttpProtocol::kHttp2 && spec.trailers.empty();
  }
  if (lingers_ || !tunnel_.empty()) return;  // nothing is read any more, or what went through it is gone
  if (refused_) {
    CloseNow(CloseKind::kTlsFailed);
    return;
  }
  if (chain_ == nullptr) {
    held_.push_back(exchange);  // the listener filters still wait
    return;
  }
  if (chain_->http.has_value() && garbled_) return AnswerGarbled(exchange, lead);
  if (chain_->http.has_value()) {
    switch (Admit()) {
      case Admission::kRefused:
        return CloseNow(CloseKind::kReset, refusal_);
      case Admission::kAsking:
        unadmitted_.emplace_back(exchange, &spec);
        return;
      case Admission::kAdmitted:
        Take(exchange, spec, lead);
    }
    return;
  }
  // A tcp_proxy reads nothing until its upstream is connected.
  held_.push_back(exchange);
  if (upstream_ready_) Proceed();
}

void DownstreamConnection::Take(ExchangeId exchange, const RequestSpec& spec, Duration lead) {
  if (!spoke_) BeginToSpeak(spec.protocol, lead);
  if (multiplexed_ && streams_.size() >= chain_->http->max_concurrent_streams) {
    Reply reply;
    reply.refused = true;
    return envoy_.fabric().Answer(exchange, reply, lead);
  }
  envoy_.plane().router().Begin(*this, exchange, spec, lead);
}

void DownstreamConnection::BeginToSpeak(HttpProtocol protocol, Duration lead) {
  spoke_ = true;
  multiplexed_ = protocol == HttpProtocol::kHttp2;
  http_stats_->Count(multiplexed_ ? HttpStat::kCxHttp2Total : HttpStat::kCxHttp1Total);
  if (!multiplexed_ || chain_->http->max_concurrent_streams >= kAnyNumberOfStreams) return;
  Http2Notice settings;
  settings.max_concurrent_streams = chain_->http->max_concurrent_streams;
  envoy_.fabric().Notify(id_, settings, lead);
}

// Envoy: conn_manager_impl.cc, onResetStream
void DownstreamConnection::OnRequestReset(ConnectionId /*connection*/, ExchangeId exchange) {
  held_.erase(std::remove(held_.begin(), held_.end(), exchange), held_.end());
  unadmitted_.erase(std::remove_if(unadmitted_.begin(), unadmitted_.end(),
                                   [&](const auto& waiting) { return waiting.first == exchange; }),
                    unadmitted_.end());
  Router& router = envoy_.plane().router();
  const auto it = std::find_if(streams_.begin(), streams_.end(),
                               [&](StreamId stream) { return router.exchange(stream) == exchange; });
  if (it == streams_.end()) return;
  const StreamId stream = *it;
  const bool flagged = envoy_.release().Has(EnvoyChange::kRemoteResetsAreFlagged);
  // It counts until it has ended: others of the connection may take its place upstream and be answered at once.
  router.AbortDownstream(stream, "http2.remote_reset", flagged ? kDownstreamRemoteReset : kNoFlags);
  RemoveStream(stream);
}

// The codec takes a header of the PROXY protocol for a request, and a broken one.
// Envoy: source/common/http/http1/codec_impl.cc, sendProtocolError
void DownstreamConnection::AnswerGarbled(ExchangeId exchange, Duration lead) {
  ++envoy_.Counter(fmt::format("http.{}.downstream_cx_protocol_error", chain_->http->stat_prefix));
  Reply reply;
  reply.code = 400;
  reply.from_proxy = reply.close = reply.has_body = true;
  reply.flags = kDownstreamProtocolError;
  reply.body = "Bad Request";
  reply.headers = "content-length: 11\ncontent-type: text/plain\n";
  envoy_.fabric().Answer(exchange, reply, lead);
  CloseNow(CloseKind::kFin);
}

void DownstreamConnection::AbortStreams(std::string_view details) {
  ends_ = true;
  Router& router = envoy_.plane().router();
  const std::vector<StreamId> streams = std::move(streams_);
  streams_.clear();
  // None takes the place upstream of one that ends before it. Envoy: conn_pool_base.cc, onUpstreamReady, which comes
  // when all of them are reset
  for (StreamId stream : streams) router.StopWaiting(stream);
  for (StreamId stream : streams) router.AbortDownstream(stream, details);
  if (call_ != kNoStream) router.AbortDownstream(call_, {});
  call_ = kNoStream;
}

void DownstreamConnection::OnClose(ConnectionId /*connection*/, CloseKind kind, std::string_view /*detail*/) {
  CountEnd(/*local=*/false);
  AbortStreams("downstream_remote_disconnect");
  Measure();
  WriteLogs();
  if (TcpUpstream* upstream = std::exchange(upstream_, nullptr)) {
    upstream->Close(kind == CloseKind::kTimeout ? CloseKind::kReset : kind);
  }
  delete this;
}

void DownstreamConnection::CloseNow(CloseKind kind, std::string_view why) {
  CountEnd(/*local=*/true);
  AbortStreams("downstream_local_disconnect");
  Measure();
  WriteLogs();
  if (TcpUpstream* upstream = std::exchange(upstream_, nullptr)) upstream->Close(kind);
  envoy_.fabric().Close(id_, Fabric::End::kServer, kind, why);
  delete this;
}

// All requests end at once, and nothing is read any more; the client learns of it when its time to close is over.
// Envoy: conn_manager_impl.cc, handleCodecError, doConnectionClose (FlushWriteAndDelay)
void DownstreamConnection::FailCodec(StreamId culprit, std::string_view details) {
  ++envoy_.Counter(fmt::format("http.{}.downstream_cx_protocol_error", chain_->http->stat_prefix));
  http_stats_->Count(HttpStat::kCxDestroyActiveRq);
  http_stats_->Count(HttpStat::kCxDestroyLocalActiveRq);
  ends_ = lingers_ = true;
  Router& router = envoy_.plane().router();
  const std::vector<StreamId> streams = std::move(streams_);
  streams_.clear();
  for (StreamId stream : streams) router.StopWaiting(stream);
  for (StreamId stream : streams) {
    router.AbortDownstream(stream, stream == culprit ? details : "codec_error:The_user_callback_function_failed",
                           kDownstreamProtocolError);
  }
  Linger();
}

void DownstreamConnection::Abort(StopKind kind) {
  AbortStreams({});
  if (TcpUpstream* upstream = std::exchange(upstream_, nullptr)) {
    kind == StopKind::kKill ? upstream->Close(CloseKind::kReset) : upstream->Vanish();
  }
  if (kind == StopKind::kKill) {
    // Its kernel resets what an Envoy that ends leaves open.
    envoy_.fabric().Close(id_, Fabric::End::kServer, CloseKind::kReset,
                          tcp_cluster_.empty() ? std::string() : At("this proxy ended"));
  } else {
    envoy_.fabric().Vanish(id_, Fabric::End::kServer);
  }
  delete this;
}

void DownstreamConnection::RemoveStream(StreamId stream) {
  const auto it = std::find(streams_.begin(), streams_.end(), stream);
  if (it != streams_.end()) streams_.erase(it);
  CloseIfDone();
}

bool DownstreamConnection::envoy_draining() const { return envoy_.draining(); }

void DownstreamConnection::BeginDrain() {
  if (std::exchange(listener_gone_, true)) return;
  drain_timer_ = envoy_.host().RunAfter(envoy_.options().drain_time, [this] {
    drain_timer_ = kNoTimer;
    CloseNow(CloseKind::kFin);
  });
}

// --- tcp_proxy. Envoy: source/common/tcp_proxy/tcp_proxy.cc

void DownstreamConnection::StartTcpProxy(Duration lead) {
  const TcpProxy& tcp = *chain_->tcp;
  tcp_cluster_ = tcp.cluster;
  if (!tcp.clusters.empty()) {
    uint64_t point = envoy_.random().Below(std::max<uint32_t>(tcp.total_weight, 1));
    for (const WeightedCluster& c : tcp.clusters) {
      tcp_cluster_ = c.name;
      if (point < c.weight) break;
      point -= c.weight;
    }
  }
  if (!named_cluster_.empty()) tcp_cluster_ = named_cluster_;
  if (!chain_->sni_lookup.has_value() || LookUpServerName()) TcpConnect(lead);
}

// Envoy: sni_dynamic_forward_proxy/proxy_filter.cc, onNewConnection
bool DownstreamConnection::LookUpServerName() {
  const SniLookup& lookup = *chain_->sni_lookup;
  const std::string name(Facts().server_name);
  if (name.empty()) return true;
  awaits_name_ = std::make_shared<char>();
  const DnsCache::Lookup found =
      envoy_.Names(lookup.cache)
          .Find(NormalisedHost(name, lookup.port), [this, waits = std::weak_ptr<char>(awaits_name_)] {
            if (waits.expired()) return;  // the connection is gone
            awaits_name_ = nullptr;
            TcpConnect(Duration::zero());
          });
  using Status = DnsCache::Lookup::Status;
  if (found.status == Status::kAsking) return false;
  awaits_name_ = nullptr;
  if (found.status != Status::kFull && found.status != Status::kBusy) return true;
  CloseNow(CloseKind::kReset, At("no room for another name to be looked up"));
  return false;
}

std::string DownstreamConnection::NamedHost(const ClusterConfig& config) const {
  const uint16_t port = chain_->sni_lookup.has_value() ? chain_->sni_lookup->port : DefaultPort(config);
  return NormalisedHost(Facts().server_name, port);
}

void DownstreamConnection::TcpConnect(Duration lead) {
  WAVETANK_ASSERT(upstream_ == nullptr, id_);  // one at a time
  ++connect_attempts_;
  const std::string prefix = fmt::format("tcp.{}.", chain_->tcp->stat_prefix);
  ClusterRuntime* cluster = envoy_.Cluster(tcp_cluster_);
  if (cluster == nullptr) {
    ++envoy_.Counter(prefix + "downstream_cx_no_route");
    TcpUpstreamFailed(kNoClusterFound, "");
    return;
  }
  if (log_ != nullptr) {
    log_->cluster = cluster->config().name;
    log_->cluster_stat_name = cluster->config().alt_stat_name;
    log_->cluster_config = cluster->config().config;
    if (!chain_->stats.empty()) {
      log_->service_host = cluster->config().istio_host;
      log_->service_name = cluster->config().istio_name;
      log_->asks_upstream = cluster->config().exchanges_peers;
    }
  }
  if (cluster->connections >= cluster->config().circuit_breakers.max_connections) {
    cluster->Count(ClusterStat::kCxOverflow);
    TcpUpstreamFailed(kUpstreamOverflow, "");
    return;
  }
  if (envoy_.fabric().proxies(id_) >= Fabric::kMostProxies) {
    cluster->Count(ClusterStat::kCxConnectFail);
    connect_attempts_ = chain_->tcp->max_connect_attempts;  // another one finds no port either
    TcpUpstreamFailed(kUpstreamConnectionFailure,
                      "the connection goes in a circle of proxies, which ends when one has no port left for another");
    return;
  }
  LoadBalancer::Context context;
  // Envoy: source/common/network/hash_policy.cc
  if (chain_->tcp->hash_source_ip) context.hash = HashOfText(source_ip().ToString());
  HostRuntime* host = nullptr;
  std::string unknown;
  bool asking = false;  // for the name; nobody waits for it, and nobody counts it
  if (cluster->config().type == DiscoveryType::kDynamicForward) {
    const std::string name = NamedHost(cluster->config());
    DnsCache& names = envoy_.Names(cluster->config().dns_cache);
    host = cluster->PickNamed(name);
    if (host != nullptr) {
      names.Touch(name);
    } else if (!name.empty()) {
      const DnsCache::Lookup found = names.Find(name, [] {});
      asking = found.status == DnsCache::Lookup::Status::kAsking;
      unknown = fmt::format("{} has no address{}", name, asking ? " yet" : ": " + found.details);
    }
  } else {
    host = cluster->PickHost(context, restored_destination());
  }
  if (host == nullptr) {
    if (!asking) cluster->Count(ClusterStat::kCxNoneHealthy);
    TcpUpstreamFailed(kNoHealthyUpstream, "", unknown);
    return;
  }
  std::shared_ptr<const FirstFlight> flight;
  const TransportSocket& socket = cluster->Socket(*host);
  if (socket.tls != nullptr) flight = cluster->Flight(*host, FirstFlight::Kind::kOpaque, {});
  announcing_ = nullptr;
  if (socket.proxy_protocol > 0) {
    announcing_ = std::make_shared<const AnnouncedAddresses>(
        AnnouncedAddresses{socket.proxy_protocol, remote(), original_destination()});
    if (flight != nullptr) flight = WithAnnouncement(*flight, announcing_);
  }
  if (log_ != nullptr) {
    log_->tried = host->address;
    log_->name = host->hostname;
    log_->endpoint_workload = host->workload;
  }
  if (flight != nullptr && cluster->config().exchanges_peers && envoy_.peer() != nullptr) {
    auto told = std::make_shared<FirstFlight>(*flight);
    told->peer = envoy_.peer();
    flight = std::move(told);
  }
  tried_ = host->address;
  upstream_ = new TcpUpstream(*this, *cluster, *host, std::move(flight));
  upstream_->Start(lead);
}

void DownstreamConnection::TcpUpstreamReady() {
  WAVETANK_ASSERT(upstream_ != nullptr, id_);
  WAVETANK_ASSERT(!upstream_ready_, id_);
  const AcceptInfo& info = envoy_.fabric().info(upstream_->id());
  if (log_ != nullptr) {
    log_->host = log_->remote = log_->tried;
    log_->upstream_number = upstream_->number();
    log_->local = ConnectingEnd(envoy_.fabric(), upstream_->id());
    if (upstream_->tls().ok) log_->session = upstream_->session();
    if (!chain_->stats.empty() && upstream_->tls().ok) {
      log_->peer_identity = upstream_->tls().server_identity;
      log_->own_identity = upstream_->tls().client_identity;
      if (!listener_->inbound && log_->asks_upstream && upstream_->tls().alpn == kPeerExchange) {
        log_->peer = upstream_->tls().peer;
      }
    }
  }
  if (envoy_.plane().options().trace_connections) {
    const bool gateway =
        flight_ != nullptr && flight_->kind == FirstFlight::Kind::kTls && chain_->socket.tls == nullptr;
    envoy_.host().Emit({gateway ? TraceKind::kGatewayHop : TraceKind::kConnection, envoy_.trace_name(),
                        envoy_.host().Intern(gateway ? std::string_view(flight_->sni) : upstream_->cluster_name()), 0,
                        0, fmt::format("{}|{}", upstream_->cluster_name(), info.destination.ToString())});
  }
  upstream_ready_ = true;
  // Network filters are asked about the first bytes. Until some come there is nothing to hold back but an upstream's.
  const bool bytes = SpeaksAlone() || inner_flight_ != nullptr || !held_.empty();
  if (chain_->reads && !bytes) return AnnounceFlight();
  Proceed();
}

// Tells the upstream what the client's bytes look like.
void DownstreamConnection::AnnounceFlight() {
  if (flight_told_ || upstream_->tls().ok) return;
  flight_told_ = true;
  // Inside a session that ended here are requests in clear text.
  static const auto kPlain = std::make_shared<const FirstFlight>();
  std::shared_ptr<const FirstFlight> said = tls_ ? kPlain : flight_;
  // What the client announced was read and is gone, but where nobody read it.
  const bool passed_on = said != nullptr && said->announced != nullptr && garbled_;
  if (said != nullptr && (announcing_ != nullptr || (said->announced != nullptr && !passed_on))) {
    said = WithAnnouncement(*said, announcing_);
  }
  envoy_.fabric().SetFlight(upstream_->id(), std::move(said));
}

void DownstreamConnection::Splice() {
  WAVETANK_ASSERT(upstream_ != nullptr, id_);
  WAVETANK_ASSERT(upstream_ready_, id_);
  Fabric& fabric = envoy_.fabric();
  AnnounceFlight();
  if (log_ != nullptr) log_->spliced = true;
  fabric.Splice(id_, upstream_->id());
  // A client that speaks TLS itself does so within the upstream's own session.
  if (upstream_->tls().ok && !tls_ && flight_ != nullptr && flight_->kind == FirstFlight::Kind::kTls)
    fabric.SetFlight(upstream_->id(), flight_);
  if (inner_flight_ != nullptr) fabric.SetFlight(upstream_->id(), std::exchange(inner_flight_, nullptr));
  const std::vector<ExchangeId> held = std::move(held_);
  held_.clear();
  for (ExchangeId exchange : held) fabric.Resume(exchange, Duration::zero());
}

std::string DownstreamConnection::At(std::string_view what) const {
  const std::string at = tried_ == SocketAddress{} ? "" : " at " + tried_.ToString();
  return fmt::format("listener {}, cluster {}{}: {}", listener_->name, tcp_cluster_, at, what);
}

void DownstreamConnection::TcpUpstreamFailed(ResponseFlags flags, std::string_view failure, std::string_view finding) {
  WAVETANK_ASSERT(upstream_ == nullptr, id_);  // it is gone already
  if (log_ != nullptr) NoteFailure(flags, failure);
  if (flags == kUpstreamConnectionFailure && connect_attempts_ < chain_->tcp->max_connect_attempts) {
    TcpConnect(Duration::zero());
    return;
  }
  if (envoy_.plane().options().trace_connections) {
    envoy_.host().Emit({TraceKind::kConnection, envoy_.trace_name(), envoy_.host().Intern(tcp_cluster_), 0, 0,
                        fmt::format("{}|{}", ResponseFlagsToString(flags), failure)});
  }
  std::string what = ResponseFlagsToString(flags);
  for (const std::string_view more : {failure, finding}) {
    if (!more.empty()) what += fmt::format(", {}", more);
  }
  CloseNow(CloseKind::kReset, At(what));
}

void DownstreamConnection::Describe(Hop* hop) const {
  hop->proxy = envoy_.trace_name();
  hop->to = envoy_.options().workload;
  hop->listener = listener_->name;
  if (chain_ != nullptr) hop->filter_chain = chain_->name;
  if (flight_ != nullptr) hop->sni = flight_->sni;
  if (upstream_ != nullptr) hop->cluster = upstream_->cluster_name();
  if (!tunnel_.empty()) hop->cluster = tunnel_;
  hop->tls = tls_;
  if (tls_) {
    hop->alpn = alpn_;
    hop->client_verified = client_verified_;
    hop->server_verified = server_verified_;
    hop->client_identity = client_identity_;
    hop->server_identity = server_identity_;
  }
}

}  // namespace wavetank::envoysim
