#include "sim/inputs/kinds/traffic.h"

#include <algorithm>
#include <optional>

#include "core/base/bounds.h"
#include "sim/inputs/fields.h"
#include "sim/inputs/kinds/apps.h"
#include "sim/traffic.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

constexpr Duration kLeastPeriod = 1us;
constexpr int64_t kMostUsers = 100'000;
constexpr std::string_view kWebSocket = "websocket";

// Of what a flow may say instead of HTTP/1.1.
std::optional<envoysim::HttpProtocol> HttpProtocolOf(std::string_view name) {
  if (name == "http1.0") return envoysim::HttpProtocol::kHttp10;
  if (name == "http2" || name == "grpc") return envoysim::HttpProtocol::kHttp2;
  return std::nullopt;
}

void TokenFields(FieldVisitor& v, StartTraffic::Token& token) {
  v.Visit("issuer", Need::kRequired, token.mint.issuer);
  v.Visit("lifetimeNs", Need::kLenient, token.mint.lifetime);
  v.Visit("subject", Need::kSparse, token.mint.subject);
  v.Visit("signedBy", Need::kSparse, token.mint.signed_by);
  v.Visit("header", Need::kSparse, token.header);
  v.Visit("param", Need::kSparse, token.param);
  v.Visit("audiences", Need::kSparse, token.mint.audiences);
  v.Visit("claims", Need::kSparse, token.mint.claims);
  v.Visit("notBeforeNs", token.mint.not_before);
}

}  // namespace

void StartTraffic::Fields(FieldVisitor& visitor) {
  visitor.Visit("id", Need::kRequired, id);
  visitor.Visit("flow", Need::kLenient, flow);
  bool from = true;
  visitor.Mapping("from", &from, [this](FieldVisitor& v) {
    v.Visit("cluster", Need::kRequired, cluster);
    v.Visit("namespace", Need::kLenient, ns);
    v.Visit("app", Need::kRequired, app);
    v.Visit("pod", Need::kSparse, pod);
  });
  if (!from) visitor.Refuse("from", "is missing");
  visitor.Visit("host", Need::kRequired, host);
  visitor.Visit("port", Need::kLenient, port);
  if (port < 1 || port > 65535) visitor.Refuse("port", "is no port, 1 to 65535");
  visitor.Visit("path", Need::kLenient, path);
  visitor.Visit("keepAlive", Need::kLenient, keep_alive);
  visitor.Visit("tcp", Need::kLenient, tcp);
  visitor.Visit("protocol", Need::kSparse, protocol);
  if (!protocol.empty() && (tcp || (!HttpProtocolOf(protocol) && protocol != kWebSocket)))
    visitor.Refuse("protocol", "is none of http1.0, http2, grpc and websocket, or stands beside tcp");
  visitor.Visit("requests", Need::kLenient, requests);
  visitor.Visit("periodNs", Need::kLenient, period);
  visitor.Visit("rampNs", Need::kSparse, ramp);
  visitor.Visit("lastPeriodNs", Need::kSparse, last_period);
  visitor.Visit("poisson", Need::kSparse, poisson);
  visitor.Visit("users", Need::kSparse, users);
  visitor.Visit("thinkNs", Need::kSparse, think);
  visitor.Visit("timeoutNs", Need::kSparse, timeout);
  if (ramp < Duration::zero() || think < Duration::zero() || timeout < Duration::zero())
    visitor.Refuse("rampNs", "is negative, or thinkNs or timeoutNs");
  if (users < 0 || users > kMostUsers) visitor.Refuse("users", "is no number from 0 to 100000");
  VisitRetry(visitor, retry);
  // GET is left out, as most are.
  std::string other = method == "GET" ? "" : method;
  visitor.Visit("method", Need::kSparse, other);
  if (visitor.reading() && !other.empty()) method = other;
  visitor.Visit("headers", Need::kSparse, headers);
  visitor.Visit("trailers", Need::kSparse, trailers);
  visitor.Visit("bodyBytes", Need::kSparse, body_bytes);
  visitor.Visit("bodyOverNs", Need::kSparse, body_over);
  visitor.Visit("bodyPieces", Need::kSparse, body_pieces);
  if (body_bytes < 0 || body_pieces < 0 || body_over < Duration::zero())
    visitor.Refuse("bodyBytes", "is negative, or bodyOverNs or bodyPieces");
  if (body_bytes == 0 && (body_pieces > 0 || body_over > Duration::zero()))
    visitor.Refuse("bodyOverNs", "is of a body, whose bodyBytes are missing");
  bool has_token = token.has_value();
  visitor.Mapping("token", &has_token, [this](FieldVisitor& v) {
    if (v.reading()) token.emplace();
    TokenFields(v, *token);
  });
  bool has_tls = tls.has_value();
  visitor.Mapping("tls", &has_tls, [this](FieldVisitor& v) {
    if (v.reading()) tls.emplace();
    v.Visit("serverName", Need::kSparse, tls->server_name);
    v.Visit("trusts", Need::kSparse, tls->trusts);
    v.Visit("certificate", Need::kSparse, tls->certificate);
    v.Visit("insecure", Need::kSparse, tls->insecure);
  });
}

absl::Status StartTraffic::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  TrafficSpec spec;
  spec.id = id;
  spec.flow = flow;
  spec.cluster = cluster;
  spec.ns = ns;
  spec.app = app;
  spec.host = host;
  spec.port = static_cast<int>(port);
  spec.path = path;
  spec.method = method;
  spec.headers.assign(headers.begin(), headers.end());
  spec.trailers.assign(trailers.begin(), trailers.end());
  spec.body_bytes = body_bytes;
  spec.body_pieces = std::clamp<int64_t>(body_pieces, 1, bounds::kRequests);
  spec.body_over = std::min(body_over, bounds::kInputDuration);
  spec.keep_alive = keep_alive;
  spec.tcp = tcp;
  spec.http = HttpProtocolOf(protocol).value_or(envoysim::HttpProtocol::kHttp11);
  spec.grpc = protocol == "grpc";
  spec.websocket = protocol == kWebSocket;
  spec.requests = std::clamp<int64_t>(requests, 0, bounds::kRequests);
  spec.period = std::clamp(period, kLeastPeriod, bounds::kInputDuration);
  spec.ramp = std::min(ramp, bounds::kInputDuration);
  spec.last_period = std::clamp(last_period, kLeastPeriod, bounds::kInputDuration);
  spec.poisson = poisson;
  spec.users = users;
  spec.think = std::min(think, bounds::kInputDuration);
  spec.timeout = std::min(timeout, bounds::kInputDuration);
  spec.retry = retry;
  if (tls) {
    const std::string_view alpn = tcp ? "" : spec.http == envoysim::HttpProtocol::kHttp2 ? "h2" : "http/1.1";
    auto flight = FlightOf(*tls, alpn, &target.host, (*site)->place().Secrets());
    if (!flight.ok()) return flight.status();
    spec.flight = *std::move(flight);
  }
  Credential credential;
  if (token) {
    absl::StatusOr<std::string> minted = target.issuers.Mint(token->mint, target.host.Now());
    if (!minted.ok()) return minted.status();
    credential = {*std::move(minted), token->header, token->param};
  }
  // Each request asks; pods come and go seldom, and whether one runs is known to itself.
  auto clients = [s = *site, wanted_ns = ns, wanted = app, only = pod, meant = std::vector<PodProcess*>(),
                  version = std::optional<uint64_t>()]() mutable {
    if (version != s->pods_version()) {
      version = s->pods_version();
      meant.clear();
      for (auto it = s->pods().lower_bound({wanted_ns, ""}); it != s->pods().end() && it->first.ns == wanted_ns; ++it) {
        if (only.empty() ? it->second->app() == wanted : it->first.name == only) meant.push_back(it->second.get());
      }
    }
    std::vector<PodProcess*> out;
    for (PodProcess* process : meant) {
      if (process->failure().ok() && (process->envoy() == nullptr || process->envoy()->live())) out.push_back(process);
    }
    return out;
  };
  target.traffic[id] = std::make_unique<TrafficSource>(
      target.commons, std::move(spec), credential, std::move(clients),
      [&commons = target.commons](const TrafficRecord& record) { commons.on_request.Tell(record); });
  return absl::OkStatus();
}

void StopTraffic::Fields(FieldVisitor& visitor) { visitor.Visit("id", Need::kRequired, id); }

absl::Status StopTraffic::Apply(InputTarget& target) const {
  const auto it = target.traffic.find(id);
  if (it != target.traffic.end()) it->second->Stop();
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterTraffic(InputTable& table) {
  table.Add<inputs::StartTraffic>();
  table.Add<inputs::StopTraffic>();
}
}  // namespace wavetank::sim
