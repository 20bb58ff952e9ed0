#include "fakes/envoy/proxy/router.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "fakes/envoy/config/alpn_offers.h"
#include "fakes/envoy/http/grpc_reply.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

const std::vector<std::string> kNoAlpn;

// Envoy: router.cc, onUpstreamHeaders
bool FailsNow(std::string_view headers) {
  return FindHeaderLine(headers, "x-envoy-immediate-health-check-fail").has_value();
}

ResponseFlags FlagOf(ResetReason reason) {
  switch (reason) {
    case ResetReason::kLocalConnectionFailure:
    case ResetReason::kRemoteConnectionFailure:
    case ResetReason::kConnectionTimeout:
      return kUpstreamConnectionFailure;
    case ResetReason::kConnectionTermination:
      return kUpstreamConnectionTermination;
    case ResetReason::kOverflow:
      return kUpstreamOverflow;
    case ResetReason::kRemoteReset:
    case ResetReason::kRemoteRefusedStream:
      return kUpstreamRemoteReset;
    case ResetReason::kLocalReset:
      return kLocalReset;
    case ResetReason::kProtocolError:
      return kUpstreamProtocolError;
    case ResetReason::kNone:
      break;
  }
  return kNoFlags;
}

HttpProtocol UpstreamProtocolOf(const ClusterConfig& config, const RequestSpec& spec) {
  switch (config.protocol) {
    case UpstreamProtocol::kHttp1:
      break;
    case UpstreamProtocol::kHttp2:
      return HttpProtocol::kHttp2;
    case UpstreamProtocol::kDownstream:
    case UpstreamProtocol::kAlpn:
      if (spec.protocol == HttpProtocol::kHttp2) return HttpProtocol::kHttp2;
      break;
  }
  return HttpProtocol::kHttp11;
}

std::string Underscored(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

// What needs no further try after a first one counts as a success, whatever became of it. Envoy: retry_state_impl.cc,
// shouldRetry
void CountEndOfRetries(ClusterRuntime& cluster, uint32_t attempts, bool retriable) {
  if (!retriable && attempts > 1) cluster.Count(ClusterStat::kRqRetrySuccess);
}

}  // namespace

// Envoy: source/common/http/conn_manager_utility.cc, getLastAddressFromXFF
std::optional<IpAddress> Router::ForwardedFor(const HttpConnectionManager& manager, const RequestSpec& spec) {
  const ArrivalRules& rules = manager.arrival;
  if (rules.use_remote_address && rules.xff_num_trusted_hops == 0) return std::nullopt;
  const std::optional<std::string_view> header = FindHeader(spec, "x-forwarded-for");
  if (!header) return std::nullopt;
  std::string_view rest = *header;
  // Where the peer was added, it is one hop more.
  const bool alone = rules.use_remote_address && rules.skip_xff_append;
  for (uint32_t skip = rules.xff_num_trusted_hops - (alone ? 1 : 0); skip > 0; --skip) {
    const size_t comma = rest.rfind(',');
    if (comma == std::string_view::npos) return std::nullopt;
    rest = rest.substr(0, comma);
  }
  rest.remove_prefix(rest.rfind(',') + 1);  // the whole of it without a comma
  const size_t first = rest.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(rest.substr(first, rest.find_last_not_of(' ') - first + 1));
  if (!ip.ok()) return std::nullopt;
  return *ip;
}

const RouteDecision& Router::Decide(DataPlaneView& envoy, const HttpConnectionManager& manager,
                                    const RequestSpec& spec) {
  RouteCache& cache = envoy.route_cache();
  if (cache.slots == nullptr) cache.slots = std::make_unique<std::vector<RouteDecision>>(RouteCache::kSlots);
  // address: says where in a cache to look; what is found there says whether it is meant
  const uint64_t key = Mix64(spec.id() ^ reinterpret_cast<uintptr_t>(&manager));
  RouteDecision& d = (*cache.slots)[key % RouteCache::kSlots];
  if (d.epoch == envoy.epoch() && d.spec == spec.id() && d.manager == &manager) return d;
  d = DecideAnew(envoy, manager, spec, nullptr);
  return d;
}

RouteDecision Router::DecideAnew(DataPlaneView& envoy, const HttpConnectionManager& manager, const RequestSpec& spec,
                                 const DynamicMetadata* notes) {
  RouteDecision d;
  d.spec = spec.id();
  d.manager = &manager;
  d.table = manager.routes != nullptr ? manager.routes : envoy.Routes(manager.rds_name);
  bool random = false;
  if (d.table != nullptr) {
    d.host = d.table->FindHost(spec.authority);
    if (d.host != nullptr) {
      random = std::any_of(d.host->routes.begin(), d.host->routes.end(),
                           [](const RouteEntry& r) { return r.runtime_per_million < 1'000'000; });
      d.route = d.table->FindRoute(*d.host, spec, random ? envoy.random().Next() : 0, notes);
    }
  }
  if (d.route != nullptr && d.route->action == RouteEntry::Action::kCluster)
    d.cluster = envoy.Cluster(d.route->cluster);
  // After Cluster(), which may change the epoch. 0 never matches: a random choice is made anew each time, and so is one
  // for a cluster that is not there yet.
  d.epoch = random ? 0 : envoy.epoch();
  return d;
}

void Router::Take(const RouteDecision& decision, Stream* s) {
  s->table = decision.table;
  s->host = decision.host;
  s->route = decision.route;
  s->cluster = decision.cluster;
  s->weighted = nullptr;
  s->chosen = false;
  s->to_https = WantsTls(*s);
  if (s->to_https) {  // another route answers in its place
    s->route = nullptr;
    s->cluster = nullptr;
  }
}

void Router::Reroute(Stream* s) { Take(DecideAnew(*s->envoy, *s->manager, *s->spec, &s->notes), s); }

void Router::Begin(DownstreamConnection& downstream, ExchangeId exchange, const RequestSpec& spec, Duration lead) {
  DataPlaneView& envoy = downstream.envoy();
  const HttpConnectionManager& manager = *downstream.chain()->http;
  const StreamId id = streams_.Allocate();
  Stream& s = *streams_.Get(id);
  s.envoy = &envoy;
  s.downstream = &downstream;
  s.exchange = exchange;
  s.spec = &spec;
  s.manager = &manager;
  s.start = envoy.host().Now();
  downstream.AddStream(id);
  downstream.CountRequest();
  HttpStats& stats = downstream.http_stats();
  stats.Count(HttpStat::kRqTotal);
  stats.Count(HttpStat::kRqActive);
  stats.Count(spec.protocol == HttpProtocol::kHttp2 ? HttpStat::kRqHttp2Total : HttpStat::kRqHttp1Total);
  if (manager.logs != nullptr && plane_.collects_access_logs()) {
    s.log = std::make_unique<RequestLog>();
    s.log->request_id = static_cast<uint64_t>(plane_.fabric().root(exchange));
  }
  const BodyPace pace = plane_.fabric().pace(exchange);
  s.body_end = s.start + lead + pace.takes;
  s.body_gap = pace.gap;
  lead += 2 * plane_.options().latencies.http_hop;  // both directions, as with local paths
  s.proxies = plane_.fabric().proxies(exchange);
  if (s.proxies >= Fabric::kMostProxies) {
    // Envoy: source/common/http/http1/codec_impl.cc, checkMaxHeadersSize: x-forwarded-for has grown with each of them.
    return Local(id, 431, kDownstreamProtocolError, "http1.headers_too_large", "Request Header Fields Too Large", lead);
  }
  // Envoy: conn_manager_utility.cc, maybeNormalizePath
  const bool fragment = s.spec->path.find('#') != s.spec->path.npos;
  if ((fragment || !manager.paths.empty()) && !Normalise(id, lead)) return;
  const bool normalised = s.own_spec != nullptr;
  ApplyArrival(id);
  normalised ? Reroute(&s) : Take(Decide(envoy, manager, *s.spec), &s);
  if (!MayUpgrade(id, lead)) return;
  LimitDuration(id, lead);
  LimitSilence(id, lead);
  LimitRequest(id, lead);
  ChooseFilters(&s);
  RunFilters(id, lead);
}

// Of a route that leaves the choice to the request. Once: what was chosen stays, and its word about headers with it.
void Router::ChooseCluster(Stream* s) {
  if (s->chosen || s->route == nullptr) return;
  s->chosen = true;
  DataPlaneView& envoy = *s->envoy;
  if (s->route->action == RouteEntry::Action::kHeader) {
    const std::optional<std::string_view> name = FindHeader(*s->spec, s->route->cluster);
    s->cluster = name.has_value() ? envoy.Cluster(*name) : nullptr;
  }
  if (s->route->action != RouteEntry::Action::kWeighted) return;
  // Envoy: conn_manager_impl.cc, refreshCachedRoute: a stream's draw is its number
  if (s->drawn_for != s->route) {
    s->drawn_for = s->route;
    s->draw = envoy.random().Below(s->route->total_weight);
  }
  uint64_t point = s->draw;
  for (const WeightedCluster& c : s->route->clusters) {
    if (point < c.weight) {
      s->cluster = envoy.Cluster(c.name);
      s->weighted = &c;
      return;
    }
    point -= c.weight;
  }
}

void Router::Continue(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  DataPlaneView& envoy = *s.envoy;
  const auto count = [&](HttpStat stat) {
    if (s.downstream != nullptr) s.downstream->http_stats().Count(stat);
  };
  count(HttpStat::kRouterTotal);
  if (s.to_https) {
    std::string lines;
    AddHeaderLine("location", HttpsLocationOf(*s.spec), &lines);
    count(HttpStat::kRouterRedirect);
    return Local(id, 301, kNoFlags, "direct_response", "", lead, plane_.configs().Keep(lines));
  }
  if (s.route == nullptr) {
    count(HttpStat::kRouterNoRoute);
    return Local(id, 404, kNoRouteFound, "route_not_found", "", lead);
  }
  const RouteEntry& route = *s.route;
  if (s.log != nullptr) s.log->routed = envoy.host().Now() + lead;
  switch (route.action) {
    case RouteEntry::Action::kDirect: {
      count(HttpStat::kRouterDirectResponse);
      std::string lines;
      // Envoy: router.cc, decodeHeaders: a new place is told with every answer of that kind, measured 201 too.
      if (route.direct_code == 201 || route.direct_code / 100 == 3) {
        AddHeaderLine("location", fmt::format("{}://{}{}", SchemeOf(s), s.spec->authority, s.spec->path), &lines);
      }
      Local(id, route.direct_code, kNoFlags, "direct_response", plane_.configs().Keep(route.direct_body), lead,
            plane_.configs().Keep(EditReply(s, lines, 0, "direct_response")));
      return;
    }
    case RouteEntry::Action::kRedirect: {
      count(HttpStat::kRouterRedirect);
      std::string lines;
      AddHeaderLine("location", route.redirect->LocationOf(*s.spec, SchemeOf(s), route.Matched()), &lines);
      RewriteRedirected(&s);
      Local(id, route.redirect_code, kNoFlags, "direct_response", "", lead,
            plane_.configs().Keep(EditReply(s, lines, 0, "direct_response")));
      return;
    }
    case RouteEntry::Action::kNonForwarding:  // measured: as if its cluster were unknown
    case RouteEntry::Action::kCluster:
    case RouteEntry::Action::kHeader:
    case RouteEntry::Action::kWeighted:
      break;
  }
  ChooseCluster(&s);
  if (s.cluster == nullptr) {
    count(HttpStat::kRouterNoCluster);
    Local(id, route.not_found_code, kNoClusterFound, "cluster_not_found", "", lead);
    return;
  }
  const Duration timeout = PlanTries(&s);
  if (s.table != nullptr) EditRequest(&s);
  const LbPolicy policy = s.cluster->config().lb.policy;
  if (policy == LbPolicy::kRingHash || policy == LbPolicy::kMaglev) s.hash = HashOfRequest(&s);
  if (timeout > Duration::zero()) {
    // Envoy: router.cc, onRequestComplete
    s.timeout = envoy.host().RunAfter(UntilBodyIsHere(s, lead) + timeout, [this, id] { OnTimeout(id); });
  }
  if (s.retry != nullptr) s.retries_left = s.retry->retries;
  if (!route.mirrors.empty()) Mirror(s);
  Try(id, lead);
}

// How long the request and its tries may take, and what is tried again: as the route says, and as the request does,
// which from here on says it no more. Returns the request's own limit. Envoy: router.cc, FilterUtility::finalTimeout;
// retry_state_impl.cc
Duration Router::PlanTries(Stream* s) {
  constexpr std::string_view kTimeout = "x-envoy-upstream-rq-timeout-ms",
                             kPerTry = "x-envoy-upstream-rq-per-try-timeout-ms", kOn = "x-envoy-retry-on",
                             kGrpcOn = "x-envoy-retry-grpc-on", kMost = "x-envoy-max-retries",
                             kCodes = "x-envoy-retriable-status-codes", kNames = "x-envoy-retriable-header-names",
                             kHedge = "x-envoy-hedge-on-per-try-timeout";
  const RouteEntry& route = *s->route;
  if (route.retry.has_value()) s->retry = &*route.retry;
  Duration timeout = route.timeout;
  const bool grpc = route.max_grpc_timeout.has_value() && IsGrpc(*s->spec);
  if (grpc) {
    timeout = GrpcTimeout(*s->spec).value_or(Duration::zero());
    if (timeout > route.grpc_timeout_offset) timeout -= route.grpc_timeout_offset;
    const Duration most = *route.max_grpc_timeout;
    if (most > Duration::zero() && (timeout > most || timeout == Duration::zero())) timeout = most;
  }
  s->per_try_timeout = s->retry != nullptr ? s->retry->per_try_timeout : Duration::zero();
  // A route may try again only what some requests ask. Envoy: retry_state_impl.cc, RetryStateImpl
  const bool never = s->retry != nullptr && !s->retry->request_headers.empty() &&
                     std::none_of(s->retry->request_headers.begin(), s->retry->request_headers.end(),
                                  [&](const HeaderMatch& m) { return m.Matches(*s->spec); });
  const bool orders = std::any_of(s->spec->headers.begin(), s->spec->headers.end(),
                                  [](const auto& header) { return header.first.starts_with("x-envoy-"); });
  if (orders) {
    const auto number = [&](std::string_view name) -> std::optional<uint64_t> {
      uint64_t value = 0;
      const std::optional<std::string_view> text = FindHeader(*s->spec, name);
      if (!text || !absl::SimpleAtoi(std::string(*text), &value)) return std::nullopt;
      return value;
    };
    if (const auto ms = number(kTimeout)) timeout = std::chrono::milliseconds(*ms);
    if (const auto ms = number(kPerTry)) s->per_try_timeout = std::chrono::milliseconds(*ms);
    const std::optional<std::string_view> on = FindHeader(*s->spec, kOn), grpc_on = FindHeader(*s->spec, kGrpcOn);
    if (on || grpc_on || s->retry != nullptr) {
      auto own = std::make_unique<RetryPolicy>(s->retry != nullptr ? *s->retry : RetryPolicy());
      if (on) own->on |= RetryOnOf(*on);
      if (grpc_on) own->on |= RetryOnOf(*grpc_on);
      if (const auto most = number(kMost)) own->retries = static_cast<uint32_t>(*most);
      if (const auto codes = FindHeader(*s->spec, kCodes)) {
        const std::vector<std::string> list = absl::StrSplit(std::string(*codes), ',');
        for (const std::string& code : list) {
          uint32_t value = 0;
          if (absl::SimpleAtoi(code, &value)) own->status_codes.push_back(value);
        }
      }
      if (const auto names = FindHeader(*s->spec, kNames)) {
        const std::vector<std::string> list = absl::StrSplit(std::string(*names), ',', absl::SkipEmpty());
        for (const std::string& name : list) {
          own->headers.push_back(HeaderMatch::Present(absl::AsciiStrToLower(absl::StripAsciiWhitespace(name))));
        }
      }
      s->own_retry = std::move(own);
      s->retry = s->own_retry.get();
    }
    RequestEdit edit(*s->spec);
    for (const std::string_view name : {kTimeout, kPerTry, kOn, kGrpcOn, kMost, kCodes, kNames, kHedge})
      edit.Remove(name);
    if (std::shared_ptr<const RequestSpec> changed = edit.Take()) {
      s->own_spec = std::move(changed);
      s->spec = s->own_spec.get();
    }
  }
  if (never) {
    auto own = std::make_unique<RetryPolicy>(*s->retry);
    own->on = 0;
    s->own_retry = std::move(own);
    s->retry = s->own_retry.get();
  }
  if (timeout > Duration::zero() && s->per_try_timeout >= timeout) s->per_try_timeout = Duration::zero();
  s->expected = s->per_try_timeout > Duration::zero() ? s->per_try_timeout : timeout;
  s->tells_grpc_timeout = grpc && s->expected > Duration::zero();
  return timeout;
}

// A copy of the request goes to another cluster; its answer is nobody's business.
void Router::Mirror(const Stream& original) {
  DataPlaneView& envoy = *original.envoy;
  for (const MirrorPolicy& mirror : original.route->mirrors) {
    if (mirror.per_million < 1'000'000 && !envoy.random().Chance(mirror.per_million)) continue;
    ClusterRuntime* cluster = envoy.Cluster(mirror.cluster);
    if (cluster == nullptr) continue;
    const StreamId id = streams_.Allocate();
    Stream& s = *streams_.Get(id);
    s.envoy = &envoy;
    RequestEdit edit(*original.spec);
    const size_t port = original.spec->authority.rfind(':');
    std::string authority = original.spec->authority;
    authority.insert(std::min(port, authority.size()), "-shadow");
    edit.Set(":authority", authority);
    s.own_spec = edit.Take();
    s.spec = s.own_spec.get();
    s.proxies = original.proxies;
    s.manager = original.manager;
    s.alpn = original.alpn;
    s.table = original.table;
    s.host = original.host;
    s.route = original.route;
    s.cluster = cluster;
    s.start = envoy.host().Now();
    s.body_end = original.body_end;
    s.body_gap = original.body_gap;
    envoy.host().Post([this, id] {
      if (streams_.Get(id) != nullptr) Try(id, Duration::zero());
    });
  }
}

void Router::Try(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  ++s.attempts;
  s.transport_failure = s.tls_finding = {};  // of an earlier try
  const bool retry = s.attempts > 1;
  const uint32_t reselections =
      retry && s.retry != nullptr && s.retry->avoid_previous_hosts ? s.retry->host_selection_attempts : 0;
  static const SocketAddress kNowhere;
  HostRuntime* host = s.cluster->PickHost(s.hash, s.tried, reselections, retry ? PrioritiesLeftOut(&s) : nullptr,
                                          s.downstream != nullptr ? s.downstream->restored_destination() : kNowhere);
  if (host == nullptr) {
    s.cluster->Count(ClusterStat::kCxNoneHealthy);
    CountCode(s, 503);
    Local(id, 503, kNoHealthyUpstream, "no_healthy_upstream", "no healthy upstream", lead);
    return;
  }
  s.upstream_host = host;
  if (s.log != nullptr) s.log->host = s.log->remote = s.log->local = {};
  const HttpProtocol protocol = UpstreamProtocolOf(s.cluster->config(), *s.spec);
  const std::vector<std::string>* alpn = &kNoAlpn;
  uint64_t alpn_id = 0;
  if (s.alpn != nullptr) {
    alpn = &s.alpn->offers[static_cast<size_t>(protocol)];
    if (!alpn->empty()) alpn_id = s.alpn->ids[static_cast<size_t>(protocol)];
  }
  HttpPool& pool = s.cluster->Pool(*host, protocol, *alpn, alpn_id, SocketOptionsOf(s, *host));
  s.pool = &pool;
  pool.NewStream(id, lead);
}

// Envoy: extensions/retry/priority/previous_priorities/previous_priorities.cc, determinePriorityLoad
const std::vector<bool>* Router::PrioritiesLeftOut(Stream* s) {
  const size_t tries = s->tried_priorities.size(), frequency = s->retry->priorities_update_frequency;
  if (frequency == 0 || tries < frequency) return nullptr;
  if (tries % frequency == 0) {
    for (const uint32_t priority : s->tried_priorities) {
      if (s->left_priorities.size() <= priority) s->left_priorities.resize(priority + 1);
      s->left_priorities[priority] = true;
    }
    if (!s->cluster->AnyBut(s->left_priorities)) {  // once more from the start
      s->left_priorities.clear();
      s->tried_priorities.clear();
    }
  }
  return s->left_priorities.empty() ? nullptr : &s->left_priorities;
}

// Envoy: router.cc, onUpstreamHostSelected
void Router::NotePriority(Stream* s) {
  if (s->retry == nullptr || s->retry->priorities_update_frequency == 0) return;
  const std::optional<uint32_t> priority = s->cluster->PriorityOf(*s->upstream_host);
  if (priority.has_value()) s->tried_priorities.push_back(*priority);
}

// Whom the PROXY protocol names: the client, as far as this proxy knows it, else the two ends of the connection itself.
// Envoy: source/extensions/transport_sockets/proxy_protocol/proxy_protocol.cc, generateHeader
std::shared_ptr<const AnnouncedAddresses> Router::Announcement(const Stream& s, const HostRuntime& host) {
  const uint8_t version = s.cluster->Socket(host).proxy_protocol;
  if (version == 0) return nullptr;
  if (s.downstream != nullptr) {
    return std::make_shared<const AnnouncedAddresses>(
        AnnouncedAddresses{version, s.downstream->remote(), s.downstream->original_destination()});
  }
  return std::make_shared<const AnnouncedAddresses>(
      AnnouncedAddresses{version, {s.envoy->options().ip, 0}, host.address});
}

// Envoy: router.cc, decodeHeaders (auto_sni, auto_san_validation)
SocketOptions Router::SocketOptionsOf(const Stream& s, const HostRuntime& host) {
  SocketOptions out;
  out.announced = Announcement(s, host);
  const ClusterConfig& config = s.cluster->config();
  if ((!config.auto_sni && !config.auto_san_validation) || s.cluster->Socket(host).tls == nullptr) return out;
  // Without a port; an address is no name.
  std::string name = s.spec->authority;
  if (const size_t colon = name.rfind(':'); colon != name.npos && name.find(']', colon) == name.npos)
    name.resize(colon);
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  const bool address = IpAddress::Parse(name).ok();
  if (config.auto_sni && !address) out.server_name = name;
  if (config.auto_san_validation) out.verified_name = name;
  return out;
}

void Router::OnPoolReady(StreamId id, UpstreamConnection* connection, Duration lead) {
  Stream& s = *streams_.Get(id);
  s.pool = nullptr;
  s.looped = true;
  s.upstream = connection;
  s.upstream_connection = connection->id();
  NotePriority(&s);
  s.cluster->BeginRequest(*s.upstream_host);
  s.counted = true;
  s.cluster->Count(ClusterStat::kRqTotal);
  s.cluster->Report(*s.upstream_host, OutlierResult::kConnected, 0);
  // Only now: Envoy: source/common/router/upstream_request.cc, onPoolReady
  if (s.per_try_timeout > Duration::zero()) {
    s.per_try = s.envoy->host().RunAfter(UntilBodyIsHere(s, lead) + s.per_try_timeout, [this, id] {
      OnPerTryTimeout(id, ClusterStat::kRqPerTryTimeout, "upstream_per_try_timeout");
    });
  }
  LimitPerTryIdle(id, UntilBodyIsHere(s, lead));
  if (const Duration most = s.cluster->config().max_stream_duration; most > Duration::zero()) {
    s.upstream_longest = s.envoy->host().RunAfter(lead + most, [this, id] { OnUpstreamDuration(id); });
  }
  if (s.log != nullptr) {
    s.log->host = s.log->remote = s.upstream_host->address;
    s.log->local = ConnectingEnd(plane_.fabric(), connection->id());
  }
  // A filter took what no request can do without. Envoy: header_utility.cc, checkRequiredRequestHeaders;
  // upstream_codec_filter.cc, decodeHeaders
  const std::string_view lost = s.spec->method.empty() ? ":method" : s.spec->path.empty() ? ":path" : "";
  if (!lost.empty()) {
    EndTry(s, id, /*reset=*/true);
    return Local(id, 503, kDownstreamProtocolError,
                 plane_.configs().Keep(
                     fmt::format("filter_removed_required_request_headers{{missing_required_header:_{}}}", lost)),
                 plane_.configs().Keep(fmt::format("missing required header: {}", lost)), lead);
  }
  s.upstream_exchange = plane_.fabric().NewExchange(connection->id(), RequestOfTry(&s), this, static_cast<uint64_t>(id),
                                                    s.exchange, static_cast<uint16_t>(s.proxies + 1));
  const Duration rest = UntilBodyIsHere(s, lead) - lead;  // what came before is sent with the head
  plane_.fabric().SetPace(s.upstream_exchange, {rest, std::min(rest, s.body_gap)});
  plane_.fabric().Dispatch(s.upstream_exchange, lead);
}

void Router::OnPoolFailure(StreamId id, ResetReason reason, const TransportFailure& failure, Duration lead) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->pool = nullptr;
  NotePriority(s);
  if (s->log != nullptr && reason != ResetReason::kOverflow) s->log->host = s->upstream_host->address;
  if (reason != ResetReason::kOverflow) s->cluster->Report(*s->upstream_host, OutlierResult::kConnectFailed, 0);
  if (reason != ResetReason::kOverflow) s->looped = true;
  Failed(id, reason, failure, lead);
}

// HTTP/1.1's parser is told that nothing more comes, and that is no end of an answer that has begun.
// Envoy: http/codec_client.cc, onEvent, onData
ResetReason Router::CutOff(const Stream& s, ResetReason reason) {
  if (s.begun == 0 || reason != ResetReason::kConnectionTermination) return reason;
  s.cluster->Count(ClusterStat::kCxProtocolError);
  return ResetReason::kProtocolError;
}

void Router::OnUpstreamReset(StreamId id, ResetReason reason, std::string_view finding) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->upstream = nullptr;  // the pool has removed it
  plane_.fabric().Abandon(s->upstream_exchange);
  s->upstream_exchange = kNoExchange;
  s->cluster->Report(*s->upstream_host, OutlierResult::kReset, 0);
  if (UpstreamProtocolOf(s->cluster->config(), *s->spec) != HttpProtocol::kHttp2) reason = CutOff(*s, reason);
  Failed(id, reason, {{}, finding}, Duration::zero());
}

void Router::OnReply(uint64_t cookie, const Reply& reply, Duration lead) {
  const StreamId id = static_cast<StreamId>(cookie);
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->upstream_exchange = kNoExchange;
  if (s->begun != 0 || reply.code == 0) {
    const bool stream_alone = s->upstream != nullptr && s->upstream->multiplexes();
    if (reply.close && s->upstream != nullptr) s->upstream->GoAway();
    EndTry(*s, id, /*reset=*/reply.code == 0 || !BodyIsHere(*s, s->envoy->host().Now() + lead),
           /*by_server=*/reply.code == 0);
    if (reply.code != 0) return Finish(id, reply, "via_upstream", lead);
    const ResetReason reason =
        stream_alone ? ResetReason::kRemoteReset : CutOff(*s, ResetReason::kConnectionTermination);
    return Failed(id, reason, {}, lead);
  }
  if (reply.refused) {
    s->cluster->Report(*s->upstream_host, OutlierResult::kReset, 0);
    EndTry(*s, id, /*reset=*/false);
    return Failed(id, ResetReason::kRemoteRefusedStream, {}, lead);
  }
  const bool grpc = reply.grpc_status != kNoGrpcStatus && reply.code == 200 && IsGrpc(*s->spec);
  s->cluster->Report(*s->upstream_host, OutlierResult::kHttpCode,
                     grpc ? HttpStatusOfGrpc(reply.grpc_status) : reply.code);
  if (FailsNow(reply.headers)) s->cluster->FailNow(*s->upstream_host);
  const bool retriable = Retriable(*s, reply);
  if (reply.close && s->upstream != nullptr) s->upstream->GoAway();
  // An answer that is not waited for to its end ends the connection, if that is HTTP/1.1's.
  const bool cut = retriable && reply.has_body && MayRetry(*s);
  const bool unread = !BodyIsHere(*s, s->envoy->host().Now() + lead);  // nor sent on
  EndTry(*s, id, /*reset=*/cut || unread);
  std::string_view said;
  if (retriable && reply.from_proxy) said = plane_.configs().Keep(std::string(reply.details));
  if (retriable && MaybeRetry(id, {.code = reply.code, .server_details = said}, lead, ResetInterval(*s, reply))) {
    s->cluster->CountCode(reply.code, /*retried=*/true);
    return;
  }
  CountCode(*s, reply.code);
  CountEndOfRetries(*s->cluster, s->attempts, retriable);
  Finish(id, reply, "via_upstream", lead);
}

// Envoy: router.cc, onUpstreamHeaders
void Router::OnReplyHead(uint64_t cookie, const Reply& head) {
  const StreamId id = static_cast<StreamId>(cookie);
  Stream* s = streams_.Get(id);
  if (s == nullptr || s->begun != 0) return;
  const bool grpc = head.grpc_status != kNoGrpcStatus && head.code == 200 && IsGrpc(*s->spec);
  s->cluster->Report(*s->upstream_host, OutlierResult::kHttpCode,
                     grpc ? HttpStatusOfGrpc(head.grpc_status) : head.code);
  if (FailsNow(head.headers)) s->cluster->FailNow(*s->upstream_host);
  const bool retriable = Retriable(*s, head);
  if (retriable && MayRetry(*s)) EndTry(*s, id, /*reset=*/true);
  std::string_view said;
  if (retriable && head.from_proxy) said = plane_.configs().Keep(std::string(head.details));
  if (retriable &&
      MaybeRetry(id, {.code = head.code, .server_details = said}, Duration::zero(), ResetInterval(*s, head))) {
    s->cluster->CountCode(head.code, /*retried=*/true);
    return;
  }
  CountCode(*s, head.code);
  CountEndOfRetries(*s->cluster, s->attempts, retriable);
  s->begun_at = s->envoy->host().Now();
  // What has begun may take as long as the route lets it. Envoy: router.cc, onPerTryTimeoutCommon
  s->envoy->host().Cancel(s->per_try);
  s->per_try = kNoTimer;
  s->envoy->host().Cancel(s->per_try_idle);
  s->per_try_idle = kNoTimer;
  if (s->retry != nullptr && head.pace.gap > s->retry->per_try_idle_timeout) LimitPerTryIdle(id, Duration::zero());
  if (s->downstream == nullptr) {  // mirrored, or a question
    s->begun = head.code;
    return;
  }
  Reply passed = head;
  std::string_view details = "via_upstream";
  bool closes = false;
  PassBack(id, &passed, &details, &closes, Duration::zero());
  s->begun = passed.code;
  s->begun_headers = passed.headers;
  s->begun_trailers = passed.trailers;
  LimitSilenceOfAnswer(id, head.pace);
  plane_.fabric().AnswerBegins(s->exchange, passed);
}

void Router::BreakOff(StreamId id, ResponseFlags flags, std::string_view details) {
  Stream& s = *streams_.Get(id);
  if (s.downstream != nullptr) {
    // Envoy: conn_manager_impl.cc, doEndStream, onResetStream
    s.downstream->http_stats().Count(HttpStat::kRqTxReset);
    s.downstream->http_stats().Count(HttpStat::kRqRxReset);
  }
  s.flags |= flags;
  s.broken = true;
  if (s.downstream != nullptr && s.spec->protocol != HttpProtocol::kHttp2) s.downstream->CloseAfterAnswer();
  Reply reply;
  reply.code = s.downstream == nullptr ? 0 : s.begun;
  Finish(id, reply, details, Duration::zero());
}

void Router::EndTry(Stream& s, StreamId id, bool reset, bool by_server) {
  s.envoy->host().Cancel(s.per_try);
  s.per_try = kNoTimer;
  s.envoy->host().Cancel(s.per_try_idle);
  s.per_try_idle = kNoTimer;
  s.envoy->host().Cancel(s.upstream_longest);
  s.upstream_longest = kNoTimer;
  if (s.pool != nullptr) s.pool->CancelPending(id);
  s.pool = nullptr;
  if (s.upstream_exchange != kNoExchange) {
    if (reset && s.upstream != nullptr && s.upstream->multiplexes()) {
      plane_.fabric().ResetRequest(s.upstream_exchange, s.sent != nullptr ? s.sent : s.own_spec);
    } else {
      plane_.fabric().Abandon(s.upstream_exchange);
    }
  }
  s.upstream_exchange = kNoExchange;
  if (s.counted) s.cluster->EndRequest(*s.upstream_host);
  s.counted = false;
  if (UpstreamConnection* upstream = std::exchange(s.upstream, nullptr)) {
    reset ? upstream->Reset(id, by_server) : upstream->Done(id);
  }
}

bool Router::Retriable(const Stream& s, const Reply& reply) const {
  if (s.retry == nullptr) return false;
  const RetryPolicy& p = *s.retry;
  // An Envoy's own rate limit. Envoy: retry_state_impl.cc, wouldRetryFromHeaders
  bool limited = false;
  ForEachHeader(reply.headers,
                [&](std::string_view name, std::string_view) { limited |= name == "x-envoy-ratelimited"; });
  if (limited) return (p.on & kRetryEnvoyRateLimited) != 0;
  if (reply.grpc_status != 0xffff) {
    constexpr std::pair<uint16_t, RetryOn> kGrpc[] = {{1, kRetryGrpcCancelled},
                                                      {4, kRetryGrpcDeadlineExceeded},
                                                      {8, kRetryGrpcResourceExhausted},
                                                      {13, kRetryGrpcInternal},
                                                      {14, kRetryGrpcUnavailable}};
    for (const auto& [status, bit] : kGrpc) {
      if (reply.grpc_status == status && (p.on & bit) != 0) return true;
    }
  }
  if ((p.on & kRetry5xx) != 0 && reply.code >= 500) return true;
  if ((p.on & kRetryGatewayError) != 0 && reply.code >= 502 && reply.code <= 504) return true;
  if ((p.on & kRetryRetriable4xx) != 0 && reply.code == 409) return true;
  if ((p.on & kRetryRetriableStatusCodes) != 0 &&
      std::find(p.status_codes.begin(), p.status_codes.end(), reply.code) != p.status_codes.end()) {
    return true;
  }
  if ((p.on & kRetryRetriableHeaders) == 0) return false;
  const std::string status = fmt::format("{}", reply.code);
  return std::any_of(p.headers.begin(), p.headers.end(), [&](const HeaderMatch& m) {
    std::vector<std::string_view> values;
    if (m.name() == ":status") values.push_back(status);
    ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
      if (name == m.name()) values.push_back(value);
    });
    return m.Matches(values);
  });
}

// Envoy: retry_state_impl.cc, parseResetInterval; reset_header_parser.cc, parseInterval
std::optional<Duration> Router::ResetInterval(const Stream& s, const Reply& reply) {
  for (const ResetHeader& header : s.retry->reset_headers) {
    std::string text;
    ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
      if (name == header.name) text += (text.empty() ? "" : ",") + std::string(value);
    });
    uint64_t seconds = 0;
    if (!absl::SimpleAtoi(text, &seconds)) continue;
    if (header.timestamp) {
      const auto now = s.envoy->host().WallClock().time_since_epoch();
      const auto past = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
      if (seconds < past) continue;
      seconds -= past;
    }
    const auto most = std::chrono::duration_cast<std::chrono::seconds>(s.retry->reset_max_interval).count();
    if (seconds > static_cast<uint64_t>(most)) continue;
    return seconds > 0 ? std::optional<Duration>(std::chrono::seconds(seconds)) : std::nullopt;
  }
  return std::nullopt;
}

bool Router::Retriable(const Stream& s, ResetReason reason) const {
  if (s.retry == nullptr || reason == ResetReason::kOverflow) return false;
  const uint32_t on = s.retry->on;
  if ((on & (kRetry5xx | kRetryGatewayError | kRetryReset)) != 0) return true;
  switch (reason) {
    case ResetReason::kRemoteRefusedStream:
      return (on & kRetryRefusedStream) != 0;
    case ResetReason::kLocalConnectionFailure:
    case ResetReason::kRemoteConnectionFailure:
    case ResetReason::kConnectionTimeout:
      return (on & (kRetryConnectFailure | kRetryResetBeforeRequest)) != 0;
    default:
      return false;
  }
}

bool Router::MayRetry(const Stream& s) const {
  const uint32_t under_way = s.cluster->retries - (s.retrying ? 1 : 0);
  return s.retries_left > 0 && under_way < s.cluster->config().circuit_breakers.max_retries;
}

bool Router::MaybeRetry(StreamId id, FailedTry failed, Duration lead, std::optional<Duration> reset) {
  Stream& s = *streams_.Get(id);
  if (s.retrying) --s.cluster->retries;
  s.retrying = false;
  if (s.retries_left == 0) {
    s.flags |= kUpstreamRetryLimitExceeded;
    s.cluster->Count(ClusterStat::kRqRetryLimitExceeded);
    return false;
  }
  --s.retries_left;
  if (s.cluster->retries >= s.cluster->config().circuit_breakers.max_retries) {
    s.flags |= kUpstreamOverflow;
    s.cluster->Count(ClusterStat::kRqRetryOverflow);
    return false;
  }
  ++s.cluster->retries;
  s.retrying = true;
  s.cluster->Count(ClusterStat::kRqRetry);
  failed.upstream = s.upstream_host->address;
  failed.transport_failure = s.transport_failure;
  failed.tls_finding = s.tls_finding;
  failed.at = s.envoy->host().Now() + lead;
  s.failed_tries.push_back(failed);
  const RetryPolicy& policy = *s.retry;
  if (policy.avoid_previous_hosts) s.tried.push_back(s.upstream_host->id);
  // Full jitter: uniform in [0, base * 2^(n-1)), capped. Envoy: source/common/common/backoff_strategy.cc
  const Duration limit =
      std::min(policy.max_interval, policy.base_interval * (int64_t{1} << std::min(s.attempts - 1, 20u)));
  const auto below = [&s](Duration most) {
    return Duration{static_cast<int64_t>(s.envoy->random().Below(static_cast<uint64_t>(most.count())))};
  };
  // Where the upstream says when, not before, and up to half as long again. Envoy: the same, JitteredLowerBoundBackOff
  const Duration wait = reset.has_value() ? *reset + below(*reset / 2) : below(limit);
  s.cluster->Count(reset.has_value() ? ClusterStat::kRqRetryBackoffRatelimited
                                     : ClusterStat::kRqRetryBackoffExponential);
  s.backoff = s.envoy->host().RunAfter(lead + wait, [this, id] {
    Stream* stream = streams_.Get(id);
    if (stream == nullptr) return;
    stream->backoff = kNoTimer;
    Try(id, Duration::zero());
  });
  return true;
}

void Router::Failed(StreamId id, ResetReason reason, const TransportFailure& failure, Duration lead) {
  Stream& s = *streams_.Get(id);
  const std::string raw(failure.text);
  s.transport_failure = raw.empty() ? std::string_view() : plane_.configs().Keep(Underscored(raw));
  s.tls_finding = failure.finding.empty() ? std::string_view() : plane_.configs().Keep(std::string(failure.finding));
  if (s.begun != 0) {
    EndTry(s, id, /*reset=*/true);
    return BreakOff(id, FlagOf(reason),
                    plane_.configs().Keep(fmt::format("upstream_reset_after_response_started{{{}}}",
                                                      Underscored(std::string(ResetReasonName(reason))))));
  }
  const bool retriable = Retriable(s, reason);
  EndTry(s, id, /*reset=*/true);
  if (retriable && MaybeRetry(id, {.flags = FlagOf(reason), .reason = ResetReasonName(reason)}, lead)) return;
  CountEndOfRetries(*s.cluster, s.attempts, retriable);
  CountCode(s, 503);
  const std::string name(ResetReasonName(reason));
  std::string details = "upstream_reset_before_response_started{" + Underscored(name);
  if (!s.transport_failure.empty()) details += fmt::format("|{}", s.transport_failure);
  details += "}";
  std::string body = fmt::format("upstream connect error or disconnect/reset before headers. {}reset reason: {}",
                                 s.attempts > 1 ? "retried and the latest " : "", name);
  if (!raw.empty() && !s.envoy->release().Has(EnvoyChange::kBodiesHideTransportFailure)) {
    body += ", transport failure reason: " + raw;
  }
  // Envoy: router.cc, onUpstreamAbort: `dropped`
  Local(id, 503, FlagOf(reason), plane_.configs().Keep(details), plane_.configs().Keep(body), lead,
        reason == ResetReason::kOverflow ? "x-envoy-overloaded: true\n" : "");
}

// Envoy: router.cc, chargeUpstreamCode
void Router::CountCode(const Stream& s, uint16_t code) {
  s.cluster->CountCode(code, /*retried=*/false, FindHeader(*s.spec, "x-envoy-internal").has_value());
}

void Router::OnTimeout(StreamId id) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->timeout = kNoTimer;
  s->looped = true;
  s->cluster->Count(ClusterStat::kRqTimeout);
  if (s->begun != 0) {
    EndTry(*s, id, /*reset=*/true);
    return BreakOff(id, kUpstreamRequestTimeout, "response_timeout");
  }
  if (s->upstream_host != nullptr && s->upstream != nullptr) {
    s->cluster->Report(*s->upstream_host, OutlierResult::kTimeout, 0);
  }
  EndTry(*s, id, /*reset=*/true);
  CountCode(*s, 504);
  Local(id, 504, kUpstreamRequestTimeout, "response_timeout", "upstream request timeout", Duration::zero());
}

// Envoy: upstream_request.cc, setupPerTryTimeout, resetPerTryIdleTimer
void Router::LimitPerTryIdle(StreamId id, Duration after) {
  Stream& s = *streams_.Get(id);
  if (s.retry == nullptr || s.retry->per_try_idle_timeout <= Duration::zero()) return;
  s.per_try_idle = s.envoy->host().RunAfter(after + s.retry->per_try_idle_timeout, [this, id] {
    OnPerTryTimeout(id, ClusterStat::kRqPerTryIdleTimeout, "upstream_per_try_idle_timeout");
  });
}

// Envoy: router.cc, onPerTryTimeoutCommon
void Router::OnPerTryTimeout(StreamId id, ClusterStat stat, std::string_view details) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  (stat == ClusterStat::kRqPerTryTimeout ? s->per_try : s->per_try_idle) = kNoTimer;
  s->cluster->Count(stat);
  s->cluster->Report(*s->upstream_host, OutlierResult::kTimeout, 0);
  EndTry(*s, id, /*reset=*/true);
  if (s->begun != 0) return BreakOff(id, kUpstreamRequestTimeout, details);
  // A timed-out try counts as a local reset, which 5xx, gateway-error and reset retry.
  const bool retriable = Retriable(*s, ResetReason::kLocalReset);
  if (retriable && MaybeRetry(id, {.code = 504, .flags = kUpstreamRequestTimeout}, Duration::zero())) return;
  CountEndOfRetries(*s->cluster, s->attempts, retriable);
  CountCode(*s, 504);
  Local(id, 504, kUpstreamRequestTimeout, details, "upstream request timeout", Duration::zero());
}

// The cluster's max_stream_duration. Envoy: router.cc, onStreamMaxDurationReached
void Router::OnUpstreamDuration(StreamId id) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->upstream_longest = kNoTimer;
  s->cluster->Count(ClusterStat::kRqMaxDurationReached);
  EndTry(*s, id, /*reset=*/true);
  if (s->begun != 0) return BreakOff(id, kMaxDurationReached, "upstream_max_stream_duration_reached");
  const bool retriable = Retriable(*s, ResetReason::kLocalReset);
  if (retriable && MaybeRetry(id, {.code = 504, .flags = kMaxDurationReached}, Duration::zero())) return;
  CountEndOfRetries(*s->cluster, s->attempts, retriable);
  Local(id, TimeoutCode(*s), kMaxDurationReached, "upstream_max_stream_duration_reached",
        "upstream max stream duration reached", Duration::zero());
}

ExchangeId Router::exchange(StreamId id) const {
  const Stream* s = streams_.Get(id);
  return s == nullptr ? kNoExchange : s->exchange;
}

void Router::AbortDownstream(StreamId id, std::string_view details, ResponseFlags flags) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  if (s->log != nullptr && !details.empty()) {
    s->flags |= flags;
    RequestRecord record;
    record.details = details;
    record.code = s->begun;
    record.headers = s->begun_headers;
    WriteLogs(*s, record, Duration::zero());
  }
  s->envoy->host().Cancel(s->timeout);
  s->envoy->host().Cancel(s->backoff);
  s->envoy->host().Cancel(s->longest);
  s->envoy->host().Cancel(s->silence);
  s->envoy->host().Cancel(s->overdue);
  EndTry(*s, id, /*reset=*/true);
  if (s->retrying) --s->cluster->retries;
  if (s->downstream != nullptr) {
    s->downstream->http_stats().Uncount(HttpStat::kRqActive);
    s->downstream->http_stats().Count(HttpStat::kRqRxReset);
  }
  const StreamId call = s->call;
  streams_.Free(id);
  if (call != kNoStream) AbortDownstream(call, {});
}

void Router::Local(StreamId id, const LocalReply& local, Duration lead) {
  Stream& s = *streams_.Get(id);
  s.flags |= local.flags;
  // The route's cluster is named by answers of filters, too: an Envoy chooses it with the route.
  // Envoy: conn_manager_impl.cc, refreshCachedRoute
  if (s.downstream != nullptr) ChooseCluster(&s);
  // A route that leads somewhere has its word about answers that are not from there, before whoever answers.
  // Envoy: filter_manager.cc, sendLocalReplyViaFilterChain
  const bool leads = s.route != nullptr && s.route->action != RouteEntry::Action::kDirect &&
                     s.route->action != RouteEntry::Action::kRedirect;
  std::string lines;
  if (s.downstream != nullptr && local.edited && leads && s.table != nullptr &&
      (s.table->edits_headers || (s.host != nullptr && s.host->count_attempts_in_reply))) {
    lines = EditReply(s, {}, 0, local.details);
  }
  lines += local.headers;
  if (local.edit != nullptr) local.edit(&lines);
  s.flags |= local.later_flags;
  Reply reply;
  reply.code = local.code;
  reply.body = local.body;
  std::string_view content_type = "text/plain";
  if (s.downstream != nullptr && s.manager->local_replies != nullptr) {
    AccessLogEntry entry;
    EntryOf(s, &entry);
    entry.code = local.code;
    entry.details = local.details;
    const LocalReplyRules::Rewritten made = s.manager->local_replies->Rewrite(entry, local.body, &lines);
    reply.code = made.code;
    reply.body = plane_.configs().Keep(made.body);
    content_type = plane_.configs().Keep(made.content_type);
  }
  reply.from_proxy = true;
  s.local_code = reply.code;
  if (s.downstream != nullptr && IsGrpc(*s.spec)) {
    reply.grpc_status = local.grpc_status != kNoGrpcStatus ? local.grpc_status : GrpcStatusOfHttp(reply.code);
    reply.code = 200;
    std::string_view message = std::exchange(reply.body, {});
    if (content_type == "application/json" && message.ends_with('\n')) message.remove_suffix(1);
    AddHeaderLine("content-type", "application/grpc", &lines);
    lines += GrpcStatusLines(reply.grpc_status, message);
  }
  reply.headers = lines == local.headers ? local.headers : plane_.configs().Keep(lines);
  reply.has_body = !reply.body.empty();
  // Envoy: source/common/http/utility.cc, prepareLocalReply
  if (reply.has_body && s.downstream != nullptr) {
    bool said = false;
    const bool formatted = reply.body != local.body;
    std::string rest;
    ForEachHeader(reply.headers, [&](std::string_view name, std::string_view value) {
      said |= name == "content-type";
      if (!formatted || name != "content-type") AddHeaderLine(name, value, &rest);
    });
    std::string framed = fmt::format("content-length: {}\n", reply.body.size());
    if (!said || formatted) AddHeaderLine("content-type", content_type, &framed);
    reply.headers = plane_.configs().Keep(framed + rest);
  }
  Finish(id, reply, local.details, lead);
}

void Router::PassBack(StreamId id, Reply* reply, std::string_view* details, bool* closes, Duration lead) {
  Stream& s = *streams_.Get(id);
  bool passed_on = *details == "via_upstream";
  if (passed_on && s.table != nullptr &&
      (s.table->edits_headers || !s.set_cookie.empty() || (s.host != nullptr && s.host->count_attempts_in_reply))) {
    reply->headers = plane_.configs().Keep(EditReply(s, reply->headers, reply->code, *details));
  }
  if (s.manager->filters_see_replies) {
    RunReplyFilters(id, reply, *details);
    if (reply->code == 0) {  // a filter took its status. Envoy: header_utility.cc, checkRequiredResponseHeaders
      passed_on = false;
      *reply = {};
      reply->code = 502;
      reply->from_proxy = reply->has_body = true;
      reply->body = "missing required header: :status";
      reply->headers = "content-length: 32\ncontent-type: text/plain\n";
      *details = "filter_removed_required_response_headers{missing_required_header:_:status}";
    }
  }
  std::string_view headers = reply->headers;
  if (!s.response_headers.empty()) {
    headers = headers.empty() ? s.response_headers
                              : plane_.configs().Keep(std::string(headers) + std::string(s.response_headers));
  }
  headers = WithServer(*s.manager, headers);
  if (!BodyIsHere(s, s.envoy->host().Now() + lead)) AnswerEarly(s);
  *closes = s.downstream->SayIfClosing();
  if (s.spec->protocol != HttpProtocol::kHttp2) {
    headers = WithFraming(headers, *reply, !passed_on && s.spec->method != "HEAD", *closes);
  }
  reply->headers = headers;
}

void Router::Finish(StreamId id, const Reply& came, std::string_view details, Duration lead) {
  Stream& s = *streams_.Get(id);
  DataPlaneView& envoy = *s.envoy;
  if (s.timeout != kNoTimer) envoy.host().Cancel(s.timeout);
  if (s.backoff != kNoTimer) envoy.host().Cancel(s.backoff);
  if (s.longest != kNoTimer) envoy.host().Cancel(s.longest);
  if (s.silence != kNoTimer) envoy.host().Cancel(s.silence);
  if (s.overdue != kNoTimer) envoy.host().Cancel(s.overdue);
  if (s.retrying) --s.cluster->retries;
  if (s.downstream == nullptr) {  // mirrored, or a question
    const std::unique_ptr<Answered> answered = std::move(s.answered);
    if (Stream* const asker = streams_.Get(s.asked_by)) asker->looped |= s.looped;
    streams_.Free(id);
    if (answered != nullptr) (*answered)(came, lead);
    return;
  }
  Reply upstream = came;
  bool closes = false;
  if (s.begun != 0) {  // its head is with the client
    upstream.code = s.begun;
    upstream.headers = s.begun_headers;
    upstream.trailers = s.broken ? std::string_view() : s.begun_trailers;
    closes = s.downstream->SayIfClosing();
  } else {
    PassBack(id, &upstream, &details, &closes, lead);
  }
  const bool passed_on = details == "via_upstream";
  const std::string_view headers = upstream.headers;
  for (HttpStats* stats : {&s.downstream->http_stats(), &s.downstream->listener_http_stats()}) {
    stats->Count(HttpStat::kRqCompleted);
    const int kind = upstream.code / 100;
    if (kind >= 1 && kind <= 5) stats->Count(static_cast<HttpStat>(static_cast<int>(HttpStat::kRq1xx) + kind - 1));
  }
  s.downstream->http_stats().Uncount(HttpStat::kRqActive);
  RequestRecord record;
  record.code = upstream.code;
  record.flags = s.flags;
  record.details = details;
  record.transport_failure = s.transport_failure;
  record.tls_finding = s.tls_finding;
  record.body = upstream.body;
  record.headers = headers;
  record.trailers = upstream.trailers;
  record.listener = s.downstream->listener().name;
  record.filter_chain = s.downstream->chain()->name;
  if (s.host != nullptr) record.virtual_host = s.host->name;
  if (s.route != nullptr) {
    record.route = s.route->name;
    record.route_config = s.route->config;
  }
  if (s.cluster != nullptr) {
    record.cluster = s.cluster->config().name;
    record.cluster_config = s.cluster->config().config;
  }
  if (s.upstream_host != nullptr) record.upstream = s.upstream_host->address;
  record.attempts = s.attempts;
  // The stream is gone before the client reads the record.
  const std::vector<FailedTry> failed_tries = std::move(s.failed_tries);
  if (!failed_tries.empty()) record.failed_tries = &failed_tries;
  record.server = upstream.server;
  if (passed_on && upstream.from_proxy) {
    record.server_flags = upstream.flags;
    record.server_details = upstream.details;
  }
  record.latency = envoy.host().Now() + lead - s.start;
  record.upstream_connection = s.upstream_connection;
  if (plane_.options().trace_requests && !s.downstream->listener().inbound) {
    char text[256];
    const auto end = fmt::format_to_n(
        text, sizeof(text), "{}|{}|{}|{}|{}",
        envoy.release().Has(EnvoyChange::kFlagsInOrderOfSetting) ? ResponseFlagsToString(s.flags)
                                                                 : ResponseFlagsOfEnum(s.flags),
        details, s.upstream_host != nullptr ? s.upstream_host->address.ToString() : "", record.cluster, s.attempts);
    envoy.host().Emit({TraceKind::kRequest, envoy.trace_name(), envoy.host().Intern(s.spec->authority), upstream.code,
                       record.latency.count(), std::string_view(text, std::min(end.size, sizeof(text)))});
  }
  if (s.log != nullptr) WriteLogs(s, record, lead);
  // Its client has a part of it, which is no answer.
  if (s.broken) record.code = upstream.code = 0;
  Reply reply = upstream;
  reply.record = &record;
  reply.headers = headers;
  reply.close = closes;
  if (!passed_on && !s.broken) {
    reply.flags = s.flags;
    reply.details = details;
    reply.from_proxy = true;
  }
  DownstreamConnection* downstream = s.downstream;
  const ExchangeId exchange = s.exchange;
  streams_.Free(id);
  plane_.fabric().Answer(exchange, reply, lead);
  downstream->RemoveStream(id);
}

}  // namespace wavetank::envoysim
