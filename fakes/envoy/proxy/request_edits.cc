// What a connection manager and a route make of a request's head, and of its answer's.
// Envoy: source/common/http/conn_manager_utility.cc, source/common/router/{config_impl,router,upstream_request}.cc
#include <algorithm>
#include <string>
#include <utility>

#include "fakes/envoy/http/grpc_reply.h"
#include "fakes/envoy/lb/consistent_hash.h"
#include "fakes/envoy/proxy/data_plane_view.h"
#include "fakes/envoy/proxy/router.h"
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
        if (const auto cookies = FindHeader(spec, "cookie")) {
          std::string_view rest = *cookies;
          while (!rest.empty() && !one.has_value()) {
            const size_t end = std::min(rest.find(';'), rest.size());
            std::string_view pair = rest.substr(0, end);
            while (pair.starts_with(' ')) pair.remove_prefix(1);
            const size_t equals = pair.find('=');
            if (equals != std::string_view::npos && pair.substr(0, equals) == policy.name) {
              one = HashOfText(pair.substr(equals + 1));
            }
            rest.remove_prefix(std::min(end + 1, rest.size()));
          }
        }
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

// In Envoy's order: the most specific level first, unless the table wants its word to be the last.
template <typename Each>
void ForEachLevel(const RouteTable& table, const VirtualHost* host, const RouteEntry* route, const RouteEdits* weighted,
                  Each each) {
  const HeaderLevel* const levels[] = {weighted != nullptr ? &weighted->headers : nullptr,
                                       route != nullptr && route->edits != nullptr ? &route->edits->headers : nullptr,
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
  const PathNormalisation::Verdict verdict = s.manager->paths.Apply(&path);
  if (verdict == PathNormalisation::Verdict::kReject) {
    Local(id, 400, kNoFlags, "path_normalization_failed", "", lead);
    return false;
  }
  if (verdict == PathNormalisation::Verdict::kRedirect) {
    std::string lines;
    AddHeaderLine("location", path, &lines);
    Local(id, 307, kNoFlags, "path_normalization_failed", "", lead, plane_.configs().Keep(lines));
    return false;
  }
  if (path != s.spec->path) {
    RequestEdit edit(*s.spec);
    edit.SetPath(std::move(path));
    s.own_spec = edit.Take();
    s.spec = s.own_spec.get();
  }
  return true;
}

std::string_view Router::SchemeOf(const Stream& s) {
  const bool edge = s.manager->use_remote_address && s.manager->xff_num_trusted_hops == 0;
  const std::optional<std::string_view> said = edge ? std::nullopt : FindHeader(*s.spec, "x-forwarded-proto");
  if (said.has_value()) return *said == "https" ? "https" : "http";
  // Whoever has a certificate in a mesh is a proxy itself, whose client asked in clear text.
  const bool client = s.downstream->tls() && s.downstream->peer_identity().empty();
  return client ? "https" : "http";
}

void Router::EditRequest(Stream* s) {
  const RouteEdits* const edits = s->route->edits.get();
  if (!s->table->edits_headers && edits == nullptr && s->weighted == nullptr) return;
  AccessLogEntry entry;
  EntryOf(*s, &entry);
  RequestEdit edit(*s->spec);
  ForEachLevel(*s->table, s->host, s->route, s->weighted, [&](const HeaderLevel& level) {
    if (level.request.empty()) return;
    const RequestSpec& before = edit.now();
    entry.request = &before;
    level.request.Apply(entry, &edit);
  });
  if (s->weighted != nullptr && !s->weighted->host.literal.empty()) {
    s->weighted->host.Apply(&edit);
  } else if (edits != nullptr && !edits->host.empty()) {
    edits->host.Apply(&edit);
  }
  if (edits != nullptr && !edits->path.empty()) {
    const std::string path = edit.now().path;
    edit.Set("x-envoy-original-path", path);
    edit.SetPath(edits->path.Of(path, s->route->Matched()));
  }
  if (std::shared_ptr<const RequestSpec> changed = edit.Take()) {
    s->own_spec = std::move(changed);
    s->spec = s->own_spec.get();
  }
}

const RequestSpec& Router::RequestOfTry(Stream* s) {
  const bool counts = s->host != nullptr && s->host->count_attempts;
  const bool names = s->route->edits != nullptr && s->route->edits->host.of_host && !s->upstream_host->hostname.empty();
  if (!counts && !names) return *s->spec;
  if (!names && !s->table->edits_headers) {
    if (attempts_.empty()) attempts_.resize(kAttempts);
    Attempt& known = attempts_[(s->spec->id() * 4 + s->attempts) % kAttempts];
    if (known.of != s->spec->id() || known.attempt != s->attempts) {
      RequestEdit edit(*s->spec);
      edit.Set("x-envoy-attempt-count", std::to_string(s->attempts));
      known = {s->spec->id(), s->attempts, edit.Take()};
    }
    s->sent = known.spec;
    return *s->sent;
  }
  RequestEdit edit(*s->spec);
  if (counts) edit.Set("x-envoy-attempt-count", std::to_string(s->attempts));
  if (names) s->route->edits->host.Set(s->upstream_host->hostname, &edit);
  s->sent = edit.Take();
  return *s->sent;
}

std::string Router::EditReply(const Stream& s, std::string_view lines, uint16_t code) {
  std::string out(lines);
  AccessLogEntry entry;
  EntryOf(s, &entry);
  entry.code = code;
  ForEachLevel(*s.table, s.host, s.route, s.weighted, [&](const HeaderLevel& level) {
    if (level.reply.empty()) return;
    const std::string before = out;
    entry.response_headers = before;
    level.reply.Apply(entry, &out);
  });
  if (s.host != nullptr && s.host->count_attempts_in_reply && s.attempts > 0) {
    AddHeaderLine("x-envoy-attempt-count", std::to_string(s.attempts), &out);
  }
  if (!s.set_cookie.empty()) AddHeaderLine("set-cookie", s.set_cookie, &out);
  return out;
}

// Envoy: source/common/http/conn_manager_impl.cc, refreshDurationTimeout
void Router::LimitDuration(StreamId id, Duration lead) {
  Stream& s = *streams_.Get(id);
  Duration limit = s.route->max_stream_duration;
  if (s.route->grpc_timeout_max.has_value()) {
    if (const std::optional<Duration> asked = GrpcTimeout(*s.spec)) {
      const Duration most = *s.route->grpc_timeout_max;
      limit = most > Duration::zero() ? std::min(*asked, most) : *asked;
    }
  }
  if (limit <= Duration::zero() || s.downstream == nullptr) return;
  s.longest = s.envoy->host().RunAfter(lead + limit, [this, id] {
    Stream* const late = streams_.Get(id);
    if (late == nullptr) return;
    late->longest = kNoTimer;
    EndTry(*late, id, /*reset=*/true);
    constexpr uint16_t kDeadlineExceeded = 4;
    Local(id, 504, kMaxDurationReached, "max_duration_timeout", "downstream duration timeout", Duration::zero(), {},
          kDeadlineExceeded);
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
                  s->set_cookie += "; HttpOnly";
                  return value;
                });
}

}  // namespace wavetank::envoysim
