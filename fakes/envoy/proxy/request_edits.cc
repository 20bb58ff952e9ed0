// What a connection manager and a route make of a request's head, and of its answer's.
// Envoy: source/common/http/conn_manager_utility.cc, source/common/router/{config_impl,router,upstream_request}.cc
#include <algorithm>
#include <string>
#include <utility>

#include "fakes/envoy/http/arrival.h"
#include "fakes/envoy/http/cookies.h"
#include "fakes/envoy/lb/consistent_hash.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"
#include "fakes/envoy/tcp/grpc.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/request_edit.h"
#include "fmt/format.h"

namespace wavetank::envoysim {
namespace {

// Envoy: source/common/http/hash_policy.cc: each policy's hash is folded into the sum; a terminal one ends the list
// once there is a hash.
// `make_cookie` is asked for a cookie that is not there and has a time to live.
template <typename MakeCookie>
std::optional<uint64_t> HashOf(const RouteEntry& route, const RequestSpec& spec, const IpAddress& source,
                               MakeCookie make_cookie) {
  std::optional<uint64_t> sum;
  for (const HashPolicy& policy : route.hashes) {
    std::optional<uint64_t> one;
    switch (policy.kind) {
      case HashPolicy::Kind::kHeader:
        if (const auto value = FindHeader(spec, policy.name)) one = HashOfText(*value);
        break;
      case HashPolicy::Kind::kCookie:
        if (const std::optional<std::string> value = FindCookie(spec, policy.name)) one = HashOfText(*value);
        if (!one.has_value() && policy.ttl.has_value()) one = HashOfText(make_cookie(policy));
        break;
      case HashPolicy::Kind::kSourceIp:
        one = HashOfText(source.ToString());
        break;
      case HashPolicy::Kind::kQuery: {
        const size_t question = spec.path.find('?');
        if (question == std::string::npos) break;
        std::string_view rest = std::string_view(spec.path).substr(question + 1);
        while (!rest.empty() && !one.has_value()) {
          const size_t end = std::min(rest.find('&'), rest.size());
          const std::string_view pair = rest.substr(0, end);
          const size_t equals = pair.find('=');
          if (equals != std::string_view::npos && pair.substr(0, equals) == policy.name) {
            one = HashOfText(pair.substr(equals + 1));
          }
          rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        break;
      }
    }
    if (one.has_value()) sum = sum.has_value() ? ((*sum << 1) | (*sum >> 63)) ^ *one : *one;
    if (policy.terminal && sum.has_value()) break;
  }
  return sum;
}

// Since 1.35 the upstream is told which host was asked for. Envoy: envoyproxy/envoy#39617
bool KeepsOriginalHost(EnvoyRelease release) { return release.minor >= 35; }

// In Envoy's order: the most specific level first, unless the table wants its word to be the last. What a weighted
// cluster says comes before all of them: WeightedClusterEntry's finalizeRequestHeaders and finalizeResponseHeaders.
template <typename Each>
void ForEachLevel(const RouteTable& table, const VirtualHost* host, const RouteEntry* route, Each each) {
  const HeaderLevel* const levels[] = {route != nullptr && route->edits != nullptr ? &route->edits->headers : nullptr,
                                       host != nullptr ? &host->headers : nullptr, &table.headers};
  for (size_t i = 0; i < std::size(levels); ++i) {
    const HeaderLevel* const level = levels[table.most_specific_wins ? std::size(levels) - 1 - i : i];
    if (level != nullptr) each(*level);
  }
}

}  // namespace

bool Router::Normalise(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  std::string path = s.spec->path;
  const bool fragment = path.find('#') != path.npos;
  const PathNormalisation::Verdict verdict =
      fragment ? PathNormalisation::Verdict::kReject : s.manager->paths.Apply(&path);
  const std::string location = path;
  if (path != s.spec->path) {
    RequestEdit edit(*s.spec);
    edit.SetPath(std::move(path));
    s.own_spec = edit.Take();
    s.spec = s.own_spec.get();
  }
  if (verdict == PathNormalisation::Verdict::kGoOn) return true;
  // A request turned away this early has a route only if it says its scheme itself. Envoy: config_impl.cc,
  // getRouteFromEntries
  if (FindHeader(*s.spec, "x-forwarded-proto").has_value()) Reroute(&s);
  // gRPC's clients follow no redirect. Envoy: conn_manager_impl.cc, decodeHeaders
  if (verdict == PathNormalisation::Verdict::kReject || IsGrpc(*s.spec)) {
    s.downstream->http_stats().Count(HttpStat::kRqFailedPathNormalization);
    Local(id, 400, kNoFlags, "path_normalization_failed", "", lead);
    return false;
  }
  std::string lines;
  AddHeaderLine("location", location, &lines);
  s.downstream->http_stats().Count(HttpStat::kRqRedirectedWithNormalizedPath);
  Local(id, 307, kNoFlags, "path_normalization_failed", "", lead, plane_.configs().Keep(lines));
  return false;
}

std::string_view Router::SchemeOf(const Stream& s) { return *FindHeader(*s.spec, ":scheme"); }

void Router::ApplyArrival(StreamId id) {
  Stream& s = *streams_.Get(id);
  DataPlaneView& envoy = *s.envoy;
  const ArrivalRules& rules = s.manager->arrival;
  const DownstreamConnection& downstream = *s.downstream;
  // What of the connection changes the result; the same request on such a connection needs no work again.
  uint64_t key = reinterpret_cast<uintptr_t>(s.manager);  // address: says where in a cache to look
  key = Mix64(key + (downstream.tls() ? 1 : 0));
  if (rules.use_remote_address) key = Mix64(key ^ downstream.source_ip().high()) ^ Mix64(downstream.source_ip().low());
  const x509::CertificateRef certificate = downstream.peer_certificate();
  if (certificate != nullptr) key = Mix64(key ^ certificate->fingerprint());
  if (arrivals_.empty()) arrivals_.resize(kArrivals);
  Arrived& known = arrivals_[Mix64(s.spec->id() ^ key) % kArrivals];
  if (known.of != s.spec->id() || known.key != key || known.manager.get() != s.manager) {
    ArrivalPeer peer;
    peer.ip = downstream.source_ip();
    peer.own = envoy.options().ip;
    peer.port = downstream.original_destination().port;
    peer.tls = downstream.tls();
    if (certificate != nullptr) {
      peer.identity = downstream.peer_identity();
      peer.own_identity = downstream.own_identity();
      peer.certificate = certificate->der();
      peer.subject = certificate->subject();
      peer.dns_names = certificate->sans().dns_names;
    }
    known = {s.spec->id(), key, downstream.manager(),
             Arrive(rules, peer, !envoy.release().Has(EnvoyChange::kNothingIsInternal), *s.spec)};
  }
  if (known.spec == nullptr) return;
  s.own_spec = known.spec;
  s.spec = s.own_spec.get();
}

std::string_view Router::WithServer(const HttpConnectionManager& manager, std::string_view lines) {
  using ServerHeader = HttpConnectionManager::ServerHeader;
  std::string kept, via = manager.arrival.via;
  bool adds = manager.server_header != ServerHeader::kPassThrough;
  ForEachHeader(lines, [&](std::string_view name, std::string_view value) {
    if (name == "connection") return;  // of the hop before
    if (name == "server" && manager.server_header == ServerHeader::kOverwrite) return;
    if (name == "server" && manager.server_header == ServerHeader::kAppendIfAbsent) adds = false;
    if (name == "via" && !via.empty()) {
      via = fmt::format("{}, {}", value, via);
      return;
    }
    AddHeaderLine(name, value, &kept);
  });
  if (adds) kept += manager.server_line;
  if (!via.empty()) AddHeaderLine("via", via, &kept);
  return plane_.configs().Keep(kept);
}

// Envoy: source/common/http/http1/codec_impl.cc, encodeHeadersBase; conn_manager_impl.cc, encodeHeaders
std::string_view Router::WithFraming(std::string_view lines, const Reply& reply, bool local, bool closes) {
  std::string added;
  bool has_length = false;
  ForEachHeader(lines, [&](std::string_view name, std::string_view) { has_length |= name == "content-length"; });
  const bool may_have = reply.code >= 200 && reply.code != 204 && reply.code != 304;
  if (local && !reply.has_body && !has_length && may_have) AddHeaderLine("content-length", "0", &added);
  if (closes) AddHeaderLine("connection", "close", &added);
  return added.empty() ? lines : plane_.configs().Keep(std::string(lines) + added);
}

void Router::EditRequest(Stream* s) {
  const RouteEdits* const edits = s->route->edits.get();
  const RouteEdits* const of_cluster = s->weighted == nullptr ? nullptr : s->weighted->edits.get();
  if (!s->table->edits_headers && edits == nullptr && of_cluster == nullptr) return;
  AccessLogEntry entry;
  EntryOf(*s, &entry);
  RequestEdit edit(*s->spec);
  const auto apply = [&](const HeaderLevel& level) {
    if (!level.request.empty()) level.request.Apply(entry, &edit);
  };
  if (of_cluster != nullptr) {
    apply(of_cluster->headers);
    if (!of_cluster->host.literal.empty()) of_cluster->host.Apply(&edit);
  }
  ForEachLevel(*s->table, s->host, s->route, apply);
  const std::string host = edit.now().authority;
  if (edits != nullptr && !edits->host.empty()) edits->host.Apply(&edit);
  if (edit.now().authority != host && KeepsOriginalHost(s->envoy->release())) edit.Set("x-envoy-original-host", host);
  if (edits != nullptr && !edits->path.empty()) {
    const std::string path = edit.now().path, rewritten = edits->path.Of(path, s->route->Matched());
    // What comes to nothing is no rewrite. Envoy: config_impl.cc, finalizePathHeader
    if (!rewritten.empty() && rewritten.front() != '?' && rewritten.front() != '#') {
      edit.Set("x-envoy-original-path", path);
      edit.SetPath(rewritten);
    }
  }
  if (std::shared_ptr<const RequestSpec> changed = edit.Take()) {
    s->own_spec = std::move(changed);
    s->spec = s->own_spec.get();
  }
}

// Envoy: router.cc, decodeHeaders; config_impl.cc, finalizePathHeaderForRedirect
void Router::RewriteRedirected(Stream* s) {
  const PathRewrite& rewrite = s->route->redirect->rewrite;
  if (rewrite.empty() || !s->route->redirect->path.empty()) return;
  const std::string path = rewrite.Of(s->spec->path, s->route->Matched());
  if (path.empty()) return;
  RequestEdit edit(*s->spec);
  edit.Set("x-envoy-original-path", s->spec->path);
  edit.SetPath(path);
  s->own_spec = edit.Take();
  s->spec = s->own_spec.get();
}

// Later tries have what is left of the request's own time. Envoy: router.cc, FilterUtility::setTimeoutHeaders
Duration Router::Expected(const Stream& s) {
  if (s.attempts <= 1 || s.limit <= Duration::zero() || s.expected <= Duration::zero()) return s.expected;
  const auto gone = std::chrono::duration_cast<std::chrono::milliseconds>(s.envoy->host().Now() - s.complete_at);
  return std::max<Duration>(std::min<Duration>(s.expected, s.limit - gone), 1ms);
}

void Router::NumberTry(const Stream& s, RequestEdit* edit) {
  if (s.host != nullptr && s.host->count_attempts) edit->Set("x-envoy-attempt-count", std::to_string(s.attempts));
  if (s.expected > Duration::zero()) {
    const auto ms = s.told / std::chrono::milliseconds(1);
    edit->Set("x-envoy-expected-rq-timeout-ms", std::to_string(ms));
    if (s.tells_grpc_timeout) edit->Set("grpc-timeout", fmt::format("{}m", ms));
  }
}

bool Router::TakesNameOfHost(const Stream& s) {
  return s.route->edits != nullptr && s.route->edits->host.of_host && s.upstream_host != nullptr &&
         !s.upstream_host->hostname.empty();
}

void Router::EditForTry(const Stream& s, RequestEdit* edit) {
  NumberTry(s, edit);
  if (!TakesNameOfHost(s)) return;
  if (KeepsOriginalHost(s.envoy->release())) edit->Set("x-envoy-original-host", edit->now().authority);
  s.route->edits->host.Set(s.upstream_host->hostname, edit);
}

namespace {

// A CONNECT of HTTP/2 is read as a request for an upgrade. Envoy: http/utility.cc, transformUpgradeRequestFromH2toH1
void Translate(HttpProtocol to, RequestEdit* edit) {
  if (to == HttpProtocol::kHttp2 && !UpgradeOf(edit->now()).empty()) edit->Set("connection", "upgrade");
  edit->SetProtocol(to);
}

}  // namespace

const RequestSpec& Router::RequestOfTry(Stream* s) {
  s->sent = nullptr;  // of an earlier try
  const bool counts = (s->host != nullptr && s->host->count_attempts) || s->expected > Duration::zero();
  const bool names = TakesNameOfHost(*s);
  // The far side sees what the pool speaks, not what the client did.
  const HttpProtocol spoken = s->upstream->multiplexes() ? HttpProtocol::kHttp2 : HttpProtocol::kHttp11;
  const bool translated = s->spec->protocol != spoken;
  // Envoy: source/common/http/http1/codec_impl.cc, encodeTrailersBase
  const bool drops =
      !s->spec->trailers.empty() && spoken != HttpProtocol::kHttp2 && !s->cluster->config().http1_trailers;
  if (!counts && !names && !translated && !drops) return *s->spec;
  if (!names && !drops && (s->table == nullptr || !s->table->edits_headers)) {
    if (attempts_.empty()) attempts_.resize(kAttempts);
    const uint64_t key =
        Mix64(static_cast<uint64_t>(s->told.count()) * 2 + (translated ? 1 : 0)) + (counts ? s->attempts : 0);
    Attempt& known = attempts_[(s->spec->id() * 4 + key) % kAttempts];
    if (known.of != s->spec->id() || known.key != key || known.host != s->host) {
      RequestEdit edit(*s->spec);
      if (counts) NumberTry(*s, &edit);
      if (translated) Translate(spoken, &edit);
      known = {s->spec->id(), key, s->host, edit.Take()};
    }
    s->sent = known.spec;
    return *s->sent;
  }
  RequestEdit edit(*s->spec);
  EditForTry(*s, &edit);
  if (translated) Translate(spoken, &edit);
  if (drops) edit.SetTrailers({});
  s->sent = edit.Take();
  return *s->sent;
}

// Envoy: config_impl.cc, VirtualHostImpl::getRouteFromEntries
bool Router::WantsTls(const Stream& s) {
  return s.host != nullptr && s.host->require_tls && s.downstream != nullptr && SchemeOf(s) == "http" &&
         !(s.host->require_tls_of_others && FindHeader(*s.spec, "x-envoy-internal") == "true");
}

std::string Router::EditReply(const Stream& s, std::string_view lines, uint16_t code, std::string_view details) {
  std::string out(lines);
  AccessLogEntry entry;
  EntryOf(s, &entry);
  entry.code = code;
  entry.details = details;
  const auto apply = [&](const HeaderLevel& level) {
    if (!level.reply.empty()) level.reply.Apply(entry, &out);
  };
  if (s.weighted != nullptr && s.weighted->edits != nullptr) apply(s.weighted->edits->headers);
  ForEachLevel(*s.table, s.host, s.route, apply);
  if (s.host != nullptr && s.host->count_attempts_in_reply && s.attempts > 0) {
    AddHeaderLine("x-envoy-attempt-count", std::to_string(s.attempts), &out);
  }
  if (!s.set_cookie.empty() && code != 0) AddHeaderLine("set-cookie", s.set_cookie, &out);
  return out;
}

// Envoy: source/common/http/conn_manager_impl.cc, refreshDurationTimeout
void Router::LimitDuration(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  const bool routed = s.route != nullptr;
  Duration limit =
      routed && s.route->max_stream_duration ? *s.route->max_stream_duration : s.manager->max_stream_duration;
  if (routed && s.route->grpc_timeout_max.has_value()) {
    if (std::optional<Duration> asked = GrpcTimeout(*s.spec)) {
      const Duration most = *s.route->grpc_timeout_max, sooner = s.route->grpc_timeout_offset;
      if (*asked > sooner) *asked -= sooner;
      limit = most > Duration::zero() ? std::min(*asked, most) : *asked;
    }
  }
  if (limit <= Duration::zero()) return;
  s.longest = s.envoy->host().RunAfter(lead + limit, [this, id] {
    Stream* const late = streams_.Get(id);
    if (late == nullptr) return;
    late->longest = kNoTimer;
    ++late->envoy->Counter(fmt::format("http.{}.downstream_rq_max_duration_reached", late->manager->stat_prefix));
    late->looped = true;
    EndTry(*late, id, /*reset=*/true);
    if (late->begun != 0) return BreakOff(id, kNoFlags, "max_duration_timeout");
    constexpr uint16_t kDeadlineExceeded = 4;
    Local(id, TimeoutCode(*late), kNoFlags, "max_duration_timeout", "downstream duration timeout", Duration::zero(), {},
          kDeadlineExceeded);
  });
}

// Each piece of a body, and its end, begin it anew. Envoy: conn_manager_impl.cc, onIdleTimeout, refreshIdleTimeout
Duration Router::SilenceLimit(const Stream& s) {
  return s.route != nullptr && s.route->idle_timeout ? *s.route->idle_timeout : s.manager->stream_idle_timeout;
}

// Each piece of an answer is heard.
void Router::LimitSilenceOfAnswer(StreamId id, const BodyPace& pace) {
  Stream& s = *streams_.Get(id);
  s.envoy->host().Cancel(s.silence);
  s.silence = kNoTimer;
  const Duration limit = SilenceLimit(s);
  if (limit <= Duration::zero() || pace.gap <= limit) return;
  s.silence = s.envoy->host().RunAfter(limit, [this, id] {
    Stream* const late = streams_.Get(id);
    if (late == nullptr) return;
    late->silence = kNoTimer;
    ++late->envoy->Counter(fmt::format("http.{}.downstream_rq_idle_timeout", late->manager->stat_prefix));
    EndTry(*late, id, /*reset=*/true);
    BreakOff(id, kStreamIdleTimeout, "stream_idle_timeout");
  });
}

void Router::LimitSilence(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  const Duration limit = SilenceLimit(s);
  if (limit <= Duration::zero()) return;
  const Duration heard = s.body_gap > limit ? lead : UntilBodyIsHere(s, lead);
  s.silence = s.envoy->host().RunAfter(heard + limit, [this, id] {
    Stream* const late = streams_.Get(id);
    if (late == nullptr) return;
    late->silence = kNoTimer;
    ++late->envoy->Counter(fmt::format("http.{}.downstream_rq_idle_timeout", late->manager->stat_prefix));
    late->looped = true;
    EndTry(*late, id, /*reset=*/true);
    Local(id, TimeoutCode(*late), kStreamIdleTimeout, "stream_idle_timeout", "stream timeout", Duration::zero());
  });
}

std::optional<uint64_t> Router::HashOfRequest(Stream* s) {
  const IpAddress source = s->downstream != nullptr ? s->downstream->source_ip() : s->envoy->options().ip;
  return HashOf(*s->route, *s->spec, ForwardedFor(*s->manager, *s->spec).value_or(source),
                [&](const HashPolicy& policy) {
                  // Equal for all requests of a connection. Envoy: router.cc, addDownstreamSetCookie
                  std::string of;
                  if (s->downstream != nullptr) {
                    of = ConnectingEnd(plane_.fabric(), s->downstream->id()).ToString() +
                         s->downstream->original_destination().ToString();
                  }
                  std::string value = fmt::format("{:x}", HashOfText(of));
                  s->set_cookie = fmt::format("{}=\"{}\"", policy.name, value);
                  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*policy.ttl).count();
                  if (seconds > 0) s->set_cookie += fmt::format("; Max-Age={}", seconds);
                  if (!policy.path.empty()) s->set_cookie += "; Path=" + policy.path;
                  s->set_cookie += policy.attributes + "; HttpOnly";
                  return value;
                });
}

}  // namespace wavetank::envoysim
