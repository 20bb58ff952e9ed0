#include "fakes/envoy/proxy/router.h"

#include <algorithm>
#include <utility>

#include "fakes/envoy/config/alpn_offers.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/tcp/grpc.h"
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
    case ResetReason::kConnectError:
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

// Envoy: router.cc, onUpstreamReset
uint16_t CodeOf(ResetReason reason) { return reason == ResetReason::kProtocolError ? 502 : 503; }

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
  s.keeper = plane_.fabric().keeper(exchange);
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
  if (spec.protocol == HttpProtocol::kHttp10 && !manager.accepts_http10) {
    // Envoy: source/common/http/http1/codec_impl.cc, checkProtocolVersion: nothing of the head is looked at.
    s.headless = true;
    stats.Count(HttpStat::kRqRxReset);
    return Local(id, 426, kDownstreamProtocolError, "low_version", "Upgrade Required", lead);
  }
  if (!ReadsConnect(id)) return;
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

// Filters may have taken their time. Envoy: router.cc, decodeHeaders (getThreadLocalCluster)
ClusterRuntime* Router::ClusterNow(const Stream& s) {
  if (s.cluster != nullptr) return s.envoy->Cluster(s.cluster->config().name);
  if (s.weighted != nullptr) return s.envoy->Cluster(s.weighted->name);
  if (s.route->action == RouteEntry::Action::kCluster) return s.envoy->Cluster(s.route->cluster);
  if (s.route->action != RouteEntry::Action::kHeader) return nullptr;
  const std::optional<std::string_view> name = FindHeader(*s.spec, s.route->cluster);
  return name.has_value() ? s.envoy->Cluster(*name) : nullptr;
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
  ClusterRuntime* cluster = s.cluster;
  if (cluster == nullptr || cluster->retired()) cluster = ClusterNow(s);
  if (cluster == nullptr) {  // logs know the one that was chosen with the route
    count(HttpStat::kRouterNoCluster);
    Local(id, route.not_found_code, kNoClusterFound, "cluster_not_found", "", lead);
    return;
  }
  s.cluster = cluster;
  const Duration timeout = s.limit = PlanTries(&s);
  s.complete_at = envoy.host().Now() + UntilBodyIsHere(s, lead);
  if (s.table != nullptr) EditRequest(&s);
  const LbPolicy policy = s.cluster->config().lb.policy;
  if (policy == LbPolicy::kRingHash || policy == LbPolicy::kMaglev) s.hash = HashOfRequest(&s);
  if (timeout > Duration::zero() && Timed(s)) {
    // Envoy: router.cc, onRequestComplete
    s.timeout = envoy.host().RunAfter(UntilBodyIsHere(s, lead) + timeout, [this, id] { OnTimeout(id); });
  }
  if (s.retry != nullptr) s.retries_left = s.retry->retries;
  if (!route.mirrors.empty()) Mirror(s);
  Try(id, lead);
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
    if (!mirror.keeps_host) authority.insert(std::min(port, authority.size()), "-shadow");
    edit.Set(":authority", authority);
    s.own_spec = edit.Take();
    s.spec = s.own_spec.get();
    s.proxies = original.proxies;
    s.own_manager = original.downstream->manager();
    s.manager = s.own_manager.get();
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
  if (s.upstream != nullptr) SetAside(id);
  s.followed = s.timeout_told = false;
  ++s.attempts;
  s.told = Expected(s);
  s.transport_failure = s.tls_finding = {};  // of an earlier try
  // Replaced since the try before. Envoy: router.cc, doRetry, continueDoRetry
  if (s.cluster->retired()) {
    ClusterRuntime* const now = ClusterNow(s);
    if (now == nullptr) return Local(id, 503, kNoHealthyUpstream, "no_healthy_upstream", "no healthy upstream", lead);
    if (s.retrying) --s.cluster->retries, ++now->retries;
    s.cluster = now;
    s.tried.clear();  // its hosts are others
    s.tried_priorities.clear();
    s.left_priorities.clear();
  }
  if (s.cluster->config().type == DiscoveryType::kDynamicForward) return TryByName(id, lead);
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
  TryHost(id, *host, lead);
}

// Where no filter has asked for the name, this does. Envoy: clusters/dynamic_forward_proxy/cluster.cc, chooseHost;
// router.cc, onAsyncHostSelection, sendNoHealthyUpstreamResponse
void Router::TryByName(StreamId id, Duration lead, bool waited) {
  Stream& s = *streams_.Get(id);
  const ClusterConfig& config = s.cluster->config();
  const std::string host = NormalisedHost(s.spec->authority, DefaultPort(config));
  if (HostRuntime* known = s.cluster->PickNamed(host)) {
    s.envoy->Names(config.dns_cache).Touch(host);
    return TryHost(id, *known, lead);
  }
  DnsCache::Lookup found;
  if (!host.empty()) {
    found = s.envoy->Names(config.dns_cache).Find(host, [this, id] {
      Stream* const still = streams_.Get(id);
      if (still == nullptr) return;
      still->looped = true;
      // Only a request that has a host takes time. Envoy: router.cc, onRequestComplete
      if (still->attempts == 1 && still->limit > Duration::zero() && Timed(*still)) {
        still->timeout = still->envoy->host().RunAfter(UntilBodyIsHere(*still, Duration::zero()) + still->limit,
                                                       [this, id] { OnTimeout(id); });
      }
      TryByName(id, Duration::zero(), /*waited=*/true);
    });
  }
  std::string details = "no_healthy_upstream";
  switch (found.status) {
    case DnsCache::Lookup::Status::kAsking:
      if (s.attempts == 1) {
        s.envoy->host().Cancel(s.timeout);
        s.timeout = kNoTimer;
      }
      return;
    case DnsCache::Lookup::Status::kKnown:  // and ejected
      details = found.details;
      break;
    case DnsCache::Lookup::Status::kUnknown:
      if (!host.empty()) details = fmt::format("dns_resolution_failure{{{}}}", found.details);
      break;
    case DnsCache::Lookup::Status::kFull:
      details = "dns_cache_overflow";
      break;
    case DnsCache::Lookup::Status::kBusy:
      details = "dns_cache_pending_requests_overflow";
      break;
  }
  if (!waited) s.cluster->Count(ClusterStat::kCxNoneHealthy);
  CountCode(s, 503);
  Local(id, 503, kNoHealthyUpstream, plane_.configs().Keep(details), "no healthy upstream", lead);
}

void Router::TryHost(StreamId id, HostRuntime& chosen, Duration lead) {
  Stream& s = *streams_.Get(id);
  HostRuntime* const host = &chosen;
  s.upstream_host = host;
  if (s.log != nullptr) {
    s.log->host = s.log->remote = s.log->local = {};
    s.log->session = {};
    s.log->protocol = {};
    s.log->upstream_number = 0;
    s.log->name = host->hostname;
  }
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
  if (s.per_try_timeout > Duration::zero() && Timed(s)) {
    s.per_try = s.envoy->host().RunAfter(UntilBodyIsHere(s, lead) + s.per_try_timeout, [this, id] {
      OnPerTryTimeout(id, ClusterStat::kRqPerTryTimeout, "upstream_per_try_timeout");
    });
  }
  if (Timed(s)) LimitPerTryIdle(id, UntilBodyIsHere(s, lead));
  if (const Duration most = s.cluster->config().max_stream_duration; most > Duration::zero()) {
    s.try_ends_at = s.envoy->host().Now() + lead + most;
    s.upstream_longest = s.envoy->host().RunAfter(lead + most, [this, id] { OnUpstreamDuration(id); });
  }
  if (s.log != nullptr) {
    s.log->host = s.log->remote = s.upstream_host->address;
    s.log->local = ConnectingEnd(plane_.fabric(), connection->id());
    s.log->session = connection->session();
    s.log->upstream_number = connection->number();
    s.log->protocol = HttpProtocolName(connection->multiplexes() ? HttpProtocol::kHttp2 : HttpProtocol::kHttp11);
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
  const RequestSpec& sent = RequestOfTry(&s);
  std::shared_ptr<const void> keeper = s.keeper;
  if (s.own_spec != nullptr) keeper = s.own_spec;
  if (s.sent != nullptr) keeper = s.sent;
  s.upstream_exchange = plane_.fabric().NewExchange(connection->id(), sent, this, static_cast<uint64_t>(id), s.exchange,
                                                    static_cast<uint16_t>(s.proxies + 1), std::move(keeper));
  if (s.manager != nullptr && !s.manager->stats.empty()) {
    s.upstream_identity = plane_.configs().Keep(connection->server_identity());
    s.own_identity = plane_.configs().Keep(connection->client_identity());
  }
  if (s.manager != nullptr && s.manager->exchanges_peers) plane_.fabric().SetPeer(s.upstream_exchange, s.envoy->peer());
  const Duration rest = UntilBodyIsHere(s, lead) - lead;  // what came before is sent with the head
  plane_.fabric().SetPace(s.upstream_exchange, {rest, std::min(rest, s.body_gap)});
  plane_.fabric().Dispatch(s.upstream_exchange, lead);
}

void Router::OnPoolFailure(StreamId id, ResetReason reason, const TransportFailure& failure, Duration lead) {
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  s->pool = nullptr;
  NotePriority(s);
  // Envoy: conn_pool_base.cc, attachStreamToClient: an overflow of requests has a host, one of those that wait has
  // none.
  if (s->log != nullptr && (reason != ResetReason::kOverflow || failure.of_host))
    s->log->host = s->upstream_host->address;
  if (reason != ResetReason::kOverflow) s->cluster->Report(*s->upstream_host, OutlierResult::kConnectFailed, 0);
  if (reason != ResetReason::kOverflow) s->looped = true;
  Failed(id, reason, failure, lead);
}

// HTTP/1.1's parser is told that nothing more comes, and that is no end of an answer that has begun.
// Envoy: http/codec_client.cc, onEvent, onData
ResetReason Router::CutOff(const Stream& s, ResetReason reason) {
  if (s.begun == 0 || reason != ResetReason::kConnectionTermination) return reason;
  if (s.upgrade != nullptr && s.upgrade->stands) return reason;  // there is no parser any more
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

// A stream of HTTP/2 that was reset before its end; a CONNECT says whether what lay behind it did so.
// Envoy: http2/codec_impl.cc, onStreamClose; http/conn_pool_base.cc, onStreamReset
ResetReason Router::ResetBy(const Stream& s, const Reply& reply) {
  const ResponseFlags behind = kUpstreamConnectionTermination | kUpstreamConnectionFailure;
  if (s.upgrade != nullptr && (reply.flags & behind) != 0) return ResetReason::kConnectError;
  s.cluster->Count(ClusterStat::kRqRxReset);
  return ResetReason::kRemoteReset;
}

// Measured: its end closes a connection that drains while that is still being read. Envoy: http/codec_client.cc, onData
void Router::CountEndOfConnect(const Stream& s) {
  if (s.upgrade != nullptr && s.upstream != nullptr && s.upstream->multiplexes() && s.upstream->ends_with_stream())
    s.cluster->Count(ClusterStat::kCxProtocolError);
}

// What asks by gRPC gives up an answer that is none in the midst of it. Envoy: grpc/async_client_impl.cc, onHeaders
bool Router::IsNoGrpc(const Stream& s, const Reply& reply) {
  const bool asks = s.answered != nullptr && s.spec->protocol == HttpProtocol::kHttp2;
  const bool alone = s.upstream != nullptr && !s.upstream->multiplexes();
  return asks && alone && (reply.code != 200 || reply.grpc_status == kNoGrpcStatus);
}

// Envoy: http1/codec_impl.cc, onMessageCompleteBase: HTTP/1 reads trailers only where it is told to
bool Router::PassesOverTrailers(const Stream& s, const Reply& reply) {
  return !reply.trailers.empty() && s.upstream != nullptr && !s.upstream->multiplexes() &&
         !s.cluster->config().http1_trailers;
}

void Router::OnReply(uint64_t cookie, const Reply& reply, Duration lead) {
  StreamId id = static_cast<StreamId>(cookie);
  Stream* s = streams_.Get(id);
  if (s == nullptr) return;
  if (PassesOverTrailers(*s, reply)) {
    Reply read = reply;
    read.trailers = {};
    return OnReply(cookie, read, lead);
  }
  if (Switches(*s, reply)) return OnReply(cookie, Switched(*s, reply), lead);
  s->upstream_exchange = kNoExchange;
  if (reply.garbled) {
    s->cluster->Count(ClusterStat::kCxProtocolError);
    s->cluster->Report(*s->upstream_host, OutlierResult::kReset, 0);
    return Failed(id, ResetReason::kProtocolError, {}, lead);
  }
  if (s->begun != 0 || reply.code == 0) {
    const bool stream_alone = s->upstream != nullptr && s->upstream->multiplexes();
    if (reply.close && s->upstream != nullptr) s->upstream->GoAway();
    CountEndOfConnect(*s);
    EndTry(*s, id, /*reset=*/reply.code == 0 || !BodyIsHere(*s, s->envoy->host().Now() + lead),
           /*by_server=*/reply.code == 0);
    if (reply.code != 0) return Finish(id, reply, "via_upstream", lead);
    return Failed(id, stream_alone ? ResetBy(*s, reply) : CutOff(*s, ResetReason::kConnectionTermination), {}, lead);
  }
  if (reply.refused) {
    s->cluster->Report(*s->upstream_host, OutlierResult::kReset, 0);
    EndTry(*s, id, /*reset=*/false);
    return Failed(id, ResetReason::kRemoteRefusedStream, {}, lead);
  }
  if (FailsHandshake(*s, reply.code)) return RefuseHandshake(id, reply, lead);
  const bool grpc = reply.grpc_status != kNoGrpcStatus && reply.code == 200 && IsGrpc(*s->spec);
  s->cluster->Report(*s->upstream_host, OutlierResult::kHttpCode,
                     grpc ? HttpStatusOfGrpc(reply.grpc_status) : reply.code);
  if (FailsNow(reply.headers)) s->cluster->FailNow(*s->upstream_host);
  if (reply.code == 101 && s->upgrade != nullptr && s->upstream != nullptr && !s->upstream->multiplexes())
    return BecomeTunnel(id, reply, lead);
  const bool retriable = Retriable(*s, reply), followed = s->followed;
  if (reply.close && s->upstream != nullptr) s->upstream->GoAway();
  // An answer that is not waited for to its end ends the connection, if that is HTTP/1.1's.
  const bool again = retriable && !followed && MayRetry(*s), others = retriable && OthersAwait(*s);
  const bool cut = (again ? reply.has_body : others) || IsNoGrpc(*s, reply);
  const bool unread = !BodyIsHere(*s, s->envoy->host().Now() + lead);  // nor sent on
  CountEndOfConnect(*s);
  EndTry(*s, id, /*reset=*/cut || unread);
  std::string_view said;
  if (retriable && reply.from_proxy) said = plane_.configs().Keep(std::string(reply.details));
  if (retriable && !followed &&
      MaybeRetry(id, {.code = reply.code, .server_details = said}, lead, ResetInterval(*s, reply))) {
    s->cluster->CountCode(reply.code, /*retried=*/true);
    return;
  }
  if (others) return s->earlier_of != kNoStream ? Forget(id) : void();
  if (s->earlier_of != kNoStream) id = Prefer(id);
  s = streams_.Get(id);
  CountCode(*s, reply.code);
  if (!followed) CountEndOfRetries(*s->cluster, s->attempts, retriable);
  Finish(id, reply, "via_upstream", lead);
}

// Envoy: router.cc, onUpstreamHeaders
void Router::OnReplyHead(uint64_t cookie, const Reply& head) {
  StreamId id = static_cast<StreamId>(cookie);
  Stream* s = streams_.Get(id);
  if (s == nullptr || s->begun != 0) return;
  if (PassesOverTrailers(*s, head)) {
    Reply read = head;
    read.trailers = {};
    return OnReplyHead(cookie, read);
  }
  if (Switches(*s, head)) {
    const Reply switched = Switched(*s, head);
    if (head.tunnel == kNoConnection) return OnReplyHead(cookie, switched);
    s->cluster->Report(*s->upstream_host, OutlierResult::kHttpCode, switched.code);
    return BecomeTunnel(id, switched, Duration::zero());
  }
  if (FailsHandshake(*s, head.code)) return RefuseHandshake(id, head, Duration::zero());
  const bool grpc = head.grpc_status != kNoGrpcStatus && head.code == 200 && IsGrpc(*s->spec);
  s->cluster->Report(*s->upstream_host, OutlierResult::kHttpCode,
                     grpc ? HttpStatusOfGrpc(head.grpc_status) : head.code);
  if (FailsNow(head.headers)) s->cluster->FailNow(*s->upstream_host);
  const bool retriable = Retriable(*s, head), followed = s->followed, others = retriable && OthersAwait(*s);
  if (others || (retriable && !followed && MayRetry(*s))) EndTry(*s, id, /*reset=*/true);
  std::string_view said;
  if (retriable && head.from_proxy) said = plane_.configs().Keep(std::string(head.details));
  if (retriable && !followed &&
      MaybeRetry(id, {.code = head.code, .server_details = said}, Duration::zero(), ResetInterval(*s, head))) {
    s->cluster->CountCode(head.code, /*retried=*/true);
    return;
  }
  if (others) return s->earlier_of != kNoStream ? Forget(id) : void();
  if (s->earlier_of != kNoStream) id = Prefer(id);
  s = streams_.Get(id);
  EndEarlier(*s);
  CountCode(*s, head.code);
  if (!followed) CountEndOfRetries(*s->cluster, s->attempts, retriable);
  s->begun_at = s->envoy->host().Now();
  // What has begun may take as long as the route lets it. Envoy: router.cc, onPerTryTimeoutCommon
  s->envoy->host().Cancel(s->per_try);
  s->per_try = kNoTimer;
  s->envoy->host().Cancel(s->per_try_idle);
  s->per_try_idle = kNoTimer;
  s->envoy->host().Cancel(s->overdue);
  s->overdue = kNoTimer;
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
  CountAnswer(*s, passed.code);
  if (!WritesTrailers(*s)) passed.trailers = {};
  LimitSilenceOfAnswer(id, head.pace);
  plane_.fabric().AnswerBegins(s->exchange, passed);
}

void Router::BreakOff(StreamId id, ResponseFlags flags, std::string_view details) {
  Stream& s = *streams_.Get(id);
  if (s.downstream != nullptr) {
    // Envoy: conn_manager_impl.cc, doEndStream, onResetStream
    s.downstream->http_stats().Count(HttpStat::kRqTxReset);
    s.downstream->http_stats().Count(HttpStat::kRqRxReset);
    if (s.endless) s.downstream->http_stats().Count(HttpStat::kRqResponseBeforeComplete);
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
    // The end of the connection overtakes what is said of its last stream. Envoy: codec_client.cc, close (NoFlush)
    if (reset && s.upstream != nullptr && s.upstream->multiplexes() && !s.upstream->ends_with_stream()) {
      plane_.fabric().ResetRequest(s.upstream_exchange);
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
  const bool followed = s.followed, retriable = !followed && Retriable(s, reason);
  EndTry(s, id, /*reset=*/true);
  if (retriable && MaybeRetry(id, {.flags = FlagOf(reason), .reason = ResetReasonName(reason)}, lead)) return;
  if (!followed) CountEndOfRetries(*s.cluster, s.attempts, retriable);
  CountCode(s, CodeOf(reason));
  const bool others = OthersAwait(s);
  const StreamId earlier_of = s.earlier_of;
  if (earlier_of != kNoStream) Forget(id);
  if (others) return;
  TellFailure(earlier_of == kNoStream ? id : earlier_of, reason, raw, lead);
}

// Envoy: router.cc, onUpstreamReset, onUpstreamAbort
void Router::TellFailure(StreamId id, ResetReason reason, const std::string& raw, Duration lead) {
  const Stream& s = *streams_.Get(id);
  const std::string name(ResetReasonName(reason));
  std::string details = "upstream_reset_before_response_started{" + Underscored(name);
  if (!raw.empty()) details += fmt::format("|{}", Underscored(raw));
  details += "}";
  std::string body = fmt::format("upstream connect error or disconnect/reset before headers. {}reset reason: {}",
                                 s.attempts > 1 ? "retried and the latest " : "", name);
  if (!raw.empty() && !s.envoy->release().Has(EnvoyChange::kBodiesHideTransportFailure)) {
    body += ", transport failure reason: " + raw;
  }
  // Envoy: router.cc, onUpstreamAbort: `dropped`
  Local(id, CodeOf(reason), FlagOf(reason), plane_.configs().Keep(details), plane_.configs().Keep(body), lead,
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
  // Each try that is under way counts; between two of them there is none. Envoy: router.cc, onResponseTimeout
  const auto told = [](Stream& of_try) {
    of_try.cluster->Count(ClusterStat::kRqTimeout);
    if (of_try.begun != 0) return;
    if (of_try.upstream != nullptr && !of_try.timeout_told) {
      of_try.cluster->Report(*of_try.upstream_host, OutlierResult::kTimeout, 0);
    }
    CountCode(of_try, 504);
  };
  for (const StreamId earlier : s->earlier) told(*streams_.Get(earlier));
  if (s->pool != nullptr || s->upstream != nullptr) told(*s);
  if (s->begun != 0) {
    EndTry(*s, id, /*reset=*/true);
    return BreakOff(id, kUpstreamRequestTimeout, "response_timeout");
  }
  EndTry(*s, id, /*reset=*/true);
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
  if (s->hedges) return OnSoftTimeout(id);
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
  const bool followed = s->followed, retriable = !followed && Retriable(*s, ResetReason::kLocalReset);
  if (retriable && MaybeRetry(id, {.code = 504, .flags = kMaxDurationReached}, Duration::zero())) return;
  if (!followed) CountEndOfRetries(*s->cluster, s->attempts, retriable);
  // It ends the request even if other tries are under way.
  if (const StreamId of = s->earlier_of; of != kNoStream) {
    Forget(id);
    id = of;
    s = streams_.Get(id);
    EndTry(*s, id, /*reset=*/true);
  }
  Local(id, TimeoutCode(*s), kMaxDurationReached, "upstream_max_stream_duration_reached",
        "upstream max stream duration reached", Duration::zero());
}

void Router::StopWaiting(StreamId id) {
  Stream* const s = streams_.Get(id);
  if (s == nullptr || s->pool == nullptr) return;
  std::exchange(s->pool, nullptr)->CancelPending(id);
}

void Router::EndAllOf(const DataPlaneView& envoy) {
  std::vector<StreamId> its;
  streams_.ForEach([&](StreamId id, const Stream& s) {
    if (s.envoy == &envoy) its.push_back(id);
  });
  for (const StreamId id : its) StopWaiting(id);
  for (const StreamId id : its) AbortDownstream(id, {});
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
  if (!details.empty() && s->downstream != nullptr && s->manager != nullptr && !s->manager->stats.empty()) {
    s->flags |= flags;
    RequestRecord record;
    record.details = details;
    record.code = s->begun;
    record.headers = s->begun_headers;
    Measure(*s, record, nullptr, kNoGrpcStatus, Duration::zero());
  }
  s->envoy->host().Cancel(s->timeout);
  s->envoy->host().Cancel(s->backoff);
  s->envoy->host().Cancel(s->longest);
  s->envoy->host().Cancel(s->silence);
  s->envoy->host().Cancel(s->overdue);
  if (s->call != kNoStream) AbortDownstream(std::exchange(s->call, kNoStream), {});
  EndTry(*s, id, /*reset=*/true);
  EndEarlier(*s);
  if (s->retrying) --s->cluster->retries;
  if (s->downstream != nullptr) {
    HttpStats& stats = s->downstream->http_stats();
    stats.Uncount(HttpStat::kRqActive);
    stats.Count(HttpStat::kRqRxReset);
    if (s->upgrade != nullptr) stats.Uncount(HttpStat::kCxUpgradesActive);
    if (s->upgrade != nullptr && s->upgrade->stands) stats.Count(HttpStat::kRqResponseBeforeComplete);
  }
  streams_.Free(id);
}

}  // namespace wavetank::envoysim
