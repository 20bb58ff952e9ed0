#include "fakes/envoy/ext_authz_config.h"

#include <algorithm>

#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "fakes/envoy/http.h"
#include "fakes/envoy/proto_time.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

constexpr Duration kDefaultCheckTimeout = 200ms;

absl::StatusOr<std::vector<StringMatch>> NamePatterns(const envoy::type::matcher::v3::ListStringMatcher& list) {
  std::vector<StringMatch> out;
  for (const auto& pattern : list.patterns()) {
    absl::StatusOr<StringMatch> match = StringMatch::Make(pattern);
    if (!match.ok()) return match.status();
    out.push_back(*std::move(match));
  }
  return out;
}

bool AnyMatches(const std::vector<StringMatch>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const StringMatch& m) { return m.Matches(name); });
}

}  // namespace

absl::StatusOr<ExtAuthzFilter> ExtAuthzFilter::Make(
    const envoy::extensions::filters::http::ext_authz::v3::ExtAuthz& message, const std::string& prefix) {
  ExtAuthzFilter out;
  out.counters = prefix + "ext_authz.";
  if (!message.stat_prefix().empty()) out.counters += message.stat_prefix() + ".";
  out.failure_mode_allow = message.failure_mode_allow();
  if (message.has_status_on_error()) out.status_on_error = static_cast<uint16_t>(message.status_on_error().code());
  out.route.timeout = kDefaultCheckTimeout;
  if (message.has_http_service()) {
    const auto& http = message.http_service();
    out.route.cluster = http.server_uri().cluster();
    if (http.server_uri().has_timeout()) out.route.timeout = ToDuration(http.server_uri().timeout());
    out.path_prefix = http.path_prefix();
    for (const auto& header : http.authorization_request().headers_to_add()) {
      out.headers_to_add.emplace_back(header.key(), header.value());
    }
    auto upstream = NamePatterns(http.authorization_response().allowed_upstream_headers());
    if (!upstream.ok()) return upstream.status();
    out.to_upstream = *std::move(upstream);
  } else if (message.has_grpc_service()) {
    out.grpc = true;
    out.route.cluster = message.grpc_service().envoy_grpc().cluster_name();
    if (message.grpc_service().has_timeout()) out.route.timeout = ToDuration(message.grpc_service().timeout());
  }
  if (message.has_allowed_headers()) {
    auto shown = NamePatterns(message.allowed_headers());
    if (!shown.ok()) return shown.status();
    out.shown = *std::move(shown);
  }
  if (message.has_filter_enabled_metadata()) {
    const auto& matcher = message.filter_enabled_metadata();
    Enabled enabled;
    enabled.filter = matcher.filter();
    // Paths are of one step here; a longer one leads nowhere.
    if (matcher.path_size() == 1) enabled.key = matcher.path(0).key();
    absl::StatusOr<StringMatch> value = StringMatch::Make(matcher.value().string_match());
    if (!value.ok()) return value.status();
    enabled.value = *std::move(value);
    enabled.invert = matcher.invert();
    out.enabled = std::move(enabled);
  }
  return out;
}

bool ExtAuthzFilter::AsksAbout(const std::vector<MetadataNote>& notes) const {
  if (!enabled) return true;
  const bool found = std::any_of(notes.begin(), notes.end(), [&](const MetadataNote& note) {
    return note.filter == enabled->filter && note.key == enabled->key && enabled->value.Matches(note.value);
  });
  return found != enabled->invert;
}

std::shared_ptr<const RequestSpec> ExtAuthzFilter::Check(const RequestSpec& request) const {
  auto out = std::make_shared<RequestSpec>();
  if (grpc) {
    // What is asked about stands in the message; the model carries the headers that stand there as its own.
    out->protocol = HttpProtocol::kHttp2;
    out->method = "POST";
    out->path = "/envoy.service.auth.v3.Authorization/Check";
    out->authority = route.cluster;
    for (const auto& [name, value] : request.headers) {
      if (!shown || AnyMatches(*shown, name)) out->headers.emplace_back(name, value);
    }
    return out;
  }
  out->method = request.method;
  out->path = path_prefix + request.path;
  out->authority = request.authority;
  for (const auto& [name, value] : request.headers) {
    if (name == "authorization" || (shown && AnyMatches(*shown, name))) out->headers.emplace_back(name, value);
  }
  for (const auto& [name, value] : headers_to_add) out->headers.emplace_back(name, value);
  return out;
}

}  // namespace wavetank::envoysim
