// Requests that their connection become something else than HTTP (WebSocket): who may, what the upstream's answer
// makes of it, and the bytes that go over it then.
// Envoy: source/common/router/upstream_codec_filter.cc, source/common/http/http1/codec_impl.cc
#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "fakes/envoy/http/arrival.h"
#include "fakes/envoy/http/message_size.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tcp/header_lines.h"

namespace wavetank::envoysim {
namespace {

// An answer's lines without those that only HTTP/1.1 has. Envoy: http/utility.cc, transformUpgradeResponseFromH1toH2
std::string WithoutUpgrade(std::string_view lines) {
  std::string out;
  ForEachHeader(lines, [&](std::string_view name, std::string_view value) {
    if (name != "upgrade" && name != "connection" && name != "content-length") AddHeaderLine(name, value, &out);
  });
  return out;
}

}  // namespace

// The far end of what goes over one stream of HTTP/2.
class Router::TunnelEnd final : public ConnectionHandler {
 public:
  TunnelEnd(Router& router, StreamId stream, ExchangeId exchange, std::string_view cluster)
      : router_(router), stream_(stream), cluster_(cluster), id_(router.plane_.fabric().OpenTunnel(exchange, this)) {}
  ~TunnelEnd() override { router_.plane_.fabric().CloseTunnel(id_); }
  TunnelEnd(const TunnelEnd&) = delete;
  TunnelEnd& operator=(const TunnelEnd&) = delete;

  ConnectionId id() const { return id_; }

 private:
  void OnConnected(ConnectionId) override {}
  void OnTls(ConnectionId, const TlsOutcome&) override {}
  void OnFirstFlight(ConnectionId, const std::shared_ptr<const FirstFlight>&, Duration) override {}
  void OnRequest(ConnectionId, ExchangeId, const RequestSpec&, Duration) override {}  // what was behind it is gone
  void OnClose(ConnectionId, CloseKind, std::string_view) override {}
  void OnPassed(const RequestSpec& spec) override { router_.OnTunnelled(stream_, MessageSize(spec), 0); }
  void OnPassed(const Reply& reply) override {
    router_.OnTunnelled(stream_, 0, MessageSize(reply.code, reply.headers, reply.body, reply.trailers));
  }
  void Describe(Hop* hop) const override { hop->cluster = cluster_; }

  Router& router_;
  const StreamId stream_;
  const std::string cluster_;
  const ConnectionId id_;
};

// Where nobody allows it, the header that names the protocol is none that a request may have. Envoy:
// http2/codec_impl.cc, onInvalidFrame
bool Router::ReadsConnect(StreamId id) {
  Stream& s = *streams_.Get(id);
  if (s.spec->protocol != HttpProtocol::kHttp2 || s.manager->arrival.allows_connect || UpgradeOf(*s.spec).empty())
    return true;
  s.headless = true;
  s.downstream->FailCodec(id, "http2.invalid.header.field");
  return false;
}

// Over HTTP/2 any 200 takes a CONNECT. Envoy: http/utility.cc, transformUpgradeResponseFromH2toH1
bool Router::Switches(const Stream& s, const Reply& reply) const {
  return s.upgrade != nullptr && !s.upgrade->stands && s.upstream != nullptr && s.upstream->multiplexes() &&
         reply.code == 200 && s.begun == 0;
}

Reply Router::Switched(const Stream& s, const Reply& reply) const {
  Reply out = reply;
  out.code = 101;
  std::string lines = WithoutUpgrade(reply.headers);
  AddHeaderLine("upgrade", UpgradeOf(*s.spec), &lines);
  AddHeaderLine("connection", "upgrade", &lines);
  out.headers = plane_.configs().Keep(lines);
  return out;
}

// Whether a request to become something else than HTTP may; if not, it was answered.
// Envoy: source/common/http/filter_manager.cc, createFilterChain; conn_manager_impl.cc, createUpgradeFilterChain
bool Router::MayUpgrade(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  const std::string type = UpgradeOf(*s.spec);
  if (type.empty()) return true;
  s.endless = true;
  const std::vector<std::string>& allowed = s.manager->arrival.upgrades;
  bool may = std::find(allowed.begin(), allowed.end(), type) != allowed.end();
  if (s.route != nullptr) {
    const auto said = std::find_if(s.route->upgrades.begin(), s.route->upgrades.end(),
                                   [&](const auto& upgrade) { return upgrade.first == type; });
    if (said != s.route->upgrades.end()) may = said->second;
  }
  if (!may) {
    if (s.route == nullptr && !s.to_https) return true;  // 404 comes first
    RefuseUpgrade(id, lead);
    return false;
  }
  const bool websocket = type == "websocket";
  const EnvoyRelease release = s.envoy->release();
  s.upgrade = std::make_unique<Upgrade>();
  s.upgrade->timed = websocket && release.Has(EnvoyChange::kHandshakesAreTimed);
  s.upgrade->judged = websocket && release.Has(EnvoyChange::kHandshakesAreJudged);
  s.downstream->http_stats().Count(HttpStat::kCxUpgradesTotal);
  s.downstream->http_stats().Count(HttpStat::kCxUpgradesActive);
  return true;
}

// The answer to a request that may not upgrade.
void Router::RefuseUpgrade(StreamId id, Duration lead) {
  streams_.Get(id)->last_here = true;
  streams_.Get(id)->downstream->http_stats().Count(HttpStat::kRqWsOnNonWsRoute);
  Local(id, 403, kNoFlags, "upgrade_failed", "", lead);
}

// Times begin at a request's end, which one that asks for an upgrade has not. Envoy: router.cc, decodeHeaders
bool Router::Timed(const Stream& s) { return s.upgrade == nullptr || s.upgrade->timed; }

bool Router::FailsHandshake(const Stream& s, uint16_t code) {
  if (s.upgrade == nullptr || !s.upgrade->judged || s.upstream == nullptr || s.upstream->multiplexes()) return false;
  if (code == 101) return false;
  return code < 400 || !s.upgrade->timed;
}

// Its head goes back, and nothing of its body. Envoy: upstream_codec_filter.cc, decodeHeaders
void Router::RefuseHandshake(StreamId id, const Reply& reply, Duration lead) {
  EndTry(*streams_.Get(id), id, /*reset=*/true);
  std::string lines;
  ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
    if (name != "content-length" && name != "content-type") AddHeaderLine(name, value, &lines);
  });
  Local(id, reply.code, kNoFlags, "websocket_handshake_unsuccessful", "", lead, plane_.configs().Keep(lines));
}

void Router::BecomeTunnel(StreamId id, const Reply& reply, Duration lead) {
  Stream* s = streams_.Get(id);
  const bool followed = s->followed;
  if (s->earlier_of != kNoStream) id = Prefer(id);
  s = streams_.Get(id);
  EndEarlier(*s);
  CountCode(*s, reply.code);
  if (!followed && s->attempts > 1) s->cluster->Count(ClusterStat::kRqRetrySuccess);
  // Nothing of all that is limited but silence and the longest stream.
  for (TimerId* timer : {&s->timeout, &s->per_try, &s->per_try_idle, &s->overdue}) {
    s->envoy->host().Cancel(*timer);
    *timer = kNoTimer;
  }
  s->begun_at = s->envoy->host().Now() + lead;
  s->upgrade->stands = true;
  s->upgrade->client = plane_.fabric().peer(s->exchange);
  s->upgrade->server = reply.peer;
  Reply passed = reply;
  std::string_view details = "via_upstream";
  bool closes = false;
  PassBack(id, &passed, &details, &closes, lead);
  s->begun = passed.code;
  s->begun_headers = passed.headers;
  CountAnswer(*s, passed.code);
  RequestRecord record = RecordOf(*s, passed, details, lead);
  if (!s->failed_tries.empty()) record.failed_tries = &s->failed_tries;
  Trace(*s, record);
  passed.record = &record;
  passed.close = false;
  passed.peer =
      s->manager->exchanges_peers && plane_.fabric().peer(s->exchange) != nullptr ? s->envoy->peer() : nullptr;
  const ConnectionId upstream = s->upstream->multiplexes() ? reply.tunnel : s->upstream->id();
  passed.tunnel = kNoConnection;
  if (s->spec->protocol == HttpProtocol::kHttp2) return AcceptConnect(id, upstream, passed, record.cluster, lead);
  const ExchangeId exchange = std::exchange(s->exchange, kNoExchange);
  s->downstream->BecomeTunnel(record.cluster);
  plane_.fabric().Splice(s->downstream->id(), upstream);
  OnTunnelled(id, 0, 0);
  plane_.fabric().Answer(exchange, passed, lead);
}

// One stream of the client's connection becomes a tunnel. Its request is answered to the end when that ends.
void Router::AcceptConnect(StreamId id, ConnectionId upstream, const Reply& reply, std::string_view cluster,
                           Duration lead) {
  Stream& s = *streams_.Get(id);
  auto end = std::make_shared<TunnelEnd>(*this, id, s.exchange, cluster);
  s.upgrade->end = end;
  if (end->id() == kNoConnection) return;  // its connection is gone, and it will hear of that
  plane_.fabric().Splice(end->id(), upstream);
  OnTunnelled(id, 0, 0);
  Reply head = reply;
  head.code = 200;
  head.headers = plane_.configs().Keep(WithoutUpgrade(reply.headers));
  head.record = nullptr;
  head.tunnel = end->id();
  if (lead == Duration::zero()) return plane_.fabric().AnswerBegins(s.exchange, head);
  s.envoy->host().RunAfter(lead, [this, exchange = s.exchange, head] { plane_.fabric().AnswerBegins(exchange, head); });
}

// Each piece is heard. Envoy: conn_manager_impl.cc, resetIdleTimer
void Router::OnTunnelled(StreamId id, uint64_t received, uint64_t sent) {
  Stream* const s = streams_.Get(id);
  if (s == nullptr) return;
  WAVETANK_ASSERT(s->upgrade != nullptr && s->upgrade->stands, id);
  s->upgrade->received += received;
  s->upgrade->sent += sent;
  LimitSilenceOfAnswer(id, {Duration::max(), Duration::max()});
}

}  // namespace wavetank::envoysim
