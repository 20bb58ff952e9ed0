#include "fakes/envoy/filters/ext_authz_config.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/network/ext_authz/v3/ext_authz.pb.h"
#include "fakes/envoy/match/proto_time.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tcp/header_lines.h"
#include "fakes/envoy/tcp/http.h"
#include "fakes/envoy/tcp/request_edit.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

constexpr Duration kDefaultCheckTimeout = 200ms;
// A header of an answer that names headers of the request that go no further.
constexpr std::string_view kHeadersToRemove = "x-envoy-auth-headers-to-remove";

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

absl::StatusOr<ExtAuthzConfig> ExtAuthzConfig::Make(
    const envoy::extensions::filters::http::ext_authz::v3::ExtAuthz& message, const std::string& prefix) {
  ExtAuthzConfig out;
  out.counters = prefix + "ext_authz.";
  if (!message.stat_prefix().empty()) out.counters += message.stat_prefix() + ".";
  out.failure_mode_allow = message.failure_mode_allow();
  out.clear_route_cache = message.clear_route_cache();
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
    const auto& response = http.authorization_response();
    for (const auto& [from, to] :
         {std::pair{&response.allowed_upstream_headers(), &out.to_upstream},
          std::pair{&response.allowed_upstream_headers_to_append(), &out.append_to_upstream},
          std::pair{&response.allowed_client_headers_on_success(), &out.to_client_on_success}}) {
      auto patterns = NamePatterns(*from);
      if (!patterns.ok()) return patterns.status();
      *to = *std::move(patterns);
    }
    if (response.has_allowed_client_headers()) {
      auto client = NamePatterns(response.allowed_client_headers());
      if (!client.ok()) return client.status();
      out.to_client = *std::move(client);
    }
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
  if (message.has_filter_enabled()) out.enabled_per_million = PartsPerMillion(message.filter_enabled().default_value());
  out.deny_at_disable = message.deny_at_disable().default_value().value();
  if (message.has_filter_enabled_metadata()) {
    absl::StatusOr<MetadataMatch> enabled = MetadataMatch::Make(message.filter_enabled_metadata());
    if (!enabled.ok()) return enabled.status();
    out.enabled = *std::move(enabled);
  }
  return out;
}

absl::StatusOr<ExtAuthzConfig> ExtAuthzConfig::Make(
    const envoy::extensions::filters::network::ext_authz::v3::ExtAuthz& message) {
  ExtAuthzConfig out;
  if (message.stat_prefix().empty()) {
    return absl::InvalidArgumentError(
        "Proto constraint validation failed (ExtAuthzValidationError.StatPrefix: value length must be at least 1 "
        "characters)");
  }
  out.counters = "ext_authz." + message.stat_prefix() + ".";
  out.grpc = true;
  out.failure_mode_allow = message.failure_mode_allow();
  out.route.cluster = message.grpc_service().envoy_grpc().cluster_name();
  out.route.timeout =
      message.grpc_service().has_timeout() ? ToDuration(message.grpc_service().timeout()) : kDefaultCheckTimeout;
  if (message.has_filter_enabled_metadata()) {
    absl::StatusOr<MetadataMatch> enabled = MetadataMatch::Make(message.filter_enabled_metadata());
    if (!enabled.ok()) return enabled.status();
    out.enabled = *std::move(enabled);
  }
  return out;
}

bool ExtAuthzConfig::AsksAbout(const DynamicMetadata& notes) const { return !enabled || enabled->Matches(&notes); }

std::shared_ptr<const RequestSpec> ExtAuthzConfig::Check(const RequestSpec* request, std::string_view principal) const {
  auto out = std::make_shared<RequestSpec>();
  if (grpc) {
    // What is asked about stands in the message; the model carries its fields as headers of its own.
    out->protocol = HttpProtocol::kHttp2;
    out->method = "POST";
    out->path = "/envoy.service.auth.v3.Authorization/Check";
    out->authority = route.cluster;
    if (!principal.empty()) out->headers.emplace_back(kSourcePrincipal, principal);
    if (request == nullptr) return out;
    for (const auto& [name, value] : request->headers) {
      if (!shown || AnyMatches(*shown, name)) out->headers.emplace_back(name, value);
    }
    return out;
  }
  out->method = request->method;
  out->path = path_prefix + request->path;
  out->authority = request->authority;
  for (const auto& [name, value] : request->headers) {
    if (name == "authorization" || (shown && AnyMatches(*shown, name))) out->headers.emplace_back(name, value);
  }
  for (const auto& [name, value] : headers_to_add) out->headers.emplace_back(name, value);
  return out;
}

// Envoy: filters/common/ext_authz/ext_authz_http_impl.cc, toResponse; of gRPC the verdict stands in the message, and
// whatever is no message is an error.
ExtAuthzConfig::Result ExtAuthzConfig::ResultOf(const Reply& reply) const {
  if (grpc) {
    if (reply.from_proxy || reply.code != 200 || reply.grpc_status != 0) return Result::kError;
    return reply.check_denied == 0 ? Result::kAllowed : Result::kDenied;
  }
  if (reply.code == 0 || reply.code >= 500) return Result::kError;
  return reply.code == 200 ? Result::kAllowed : Result::kDenied;
}

// Envoy: filters/common/ext_authz/ext_authz_http_impl.cc; what gRPC's OkHttpResponse says, is all set.
void ExtAuthzConfig::Apply(std::string_view headers, RequestEdit* request) const {
  ForEachHeader(headers, [&](std::string_view name, std::string_view value) {
    if (name == kHeadersToRemove) {
      for (absl::string_view one : absl::StrSplit(absl::string_view(value.data(), value.size()), ',')) {
        const std::string bare = absl::AsciiStrToLower(absl::StripAsciiWhitespace(one));
        if (!bare.starts_with(':') && bare != "host") request->Remove(bare);
      }
    } else if (grpc || AnyMatches(to_upstream, name)) {
      request->Set(name, value);
    } else if (AnyMatches(append_to_upstream, name)) {
      request->Append(name, value);
    }
  });
}

std::string ExtAuthzConfig::ForClient(std::string_view headers, bool allowed) const {
  std::string out;
  ForEachHeader(headers, [&](std::string_view name, std::string_view value) {
    if (name == kHeadersToRemove && grpc) return;
    const bool always = name == "www-authenticate" || name == "location";
    const bool shown_on_denial = grpc || !to_client || always || AnyMatches(*to_client, name);
    if (allowed ? AnyMatches(to_client_on_success, name) : shown_on_denial) AddHeaderLine(name, value, &out);
  });
  return out;
}

}  // namespace wavetank::envoysim
