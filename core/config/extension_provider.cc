#include "core/config/extension_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/ip.h"
#include "core/config/dns_names.h"
#include "core/config/read_message.h"

namespace wavetank::config {
namespace {

absl::Status RefusedAuthorizer(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("external authorizer: {}", what));
}

// "host", an address, or "namespace/host". istiod: validateExtensionProviderService.
bool IsServiceName(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return IsDomainName(text) || IsIpAddress(text);
  const std::string_view ns = text.substr(0, slash), host = text.substr(slash + 1);
  if (host.find('/') != host.npos || !IsWildcardDomain(host)) return false;
  return ns == "*" || ns == "." || ns == "~" || IsDnsLabel(ns);
}

// Go's url.Parse takes nearly everything for a path: control characters and broken escapes it does not.
bool IsUrlPath(std::string_view text) {
  const auto is_hex = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  for (size_t i = 0; i < text.size(); ++i) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(text[i]))) return false;
    if (text[i] != '%') continue;
    const std::string_view digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || !std::all_of(digits.begin(), digits.end(), is_hex)) return false;
  }
  return true;
}

}  // namespace

void ReadMessage(ProtoJson& in, ExtensionProvider::RequestBody& out) {
  in.Field("maxRequestBytes", out.max_request_bytes);
  in.Field("allowPartialMessage", out.allow_partial_message);
  in.Field("packAsBytes", out.pack_as_bytes);
}

void ReadMessage(ProtoJson& in, ExtensionProvider::ExtAuthz& out) {
  in.Field("service", out.service);
  in.Field("port", out.port);
  in.Field("timeout", out.timeout);
  in.Field("failOpen", out.fail_open);
  in.Field("statusOnError", out.status_on_error);
  in.Field("includeRequestBodyInCheck", out.include_request_body);
  in.Field("pathPrefix", out.path_prefix);
  in.Field("includeRequestHeadersInCheck", out.include_request_headers);
  in.Field("includeHeadersInCheck", out.include_headers);
  in.Field("includeAdditionalHeadersInCheck", out.include_additional_headers);
  in.Field("headersToUpstreamOnAllow", out.headers_to_upstream_on_allow);
  in.Field("headersToDownstreamOnDeny", out.headers_to_downstream_on_deny);
  in.Field("headersToDownstreamOnAllow", out.headers_to_downstream_on_allow);
}

void ReadMessage(ProtoJson& in, ExtensionProvider& out) {
  in.Field("name", out.name);
  in.Field("envoyExtAuthzHttp", out.ext_authz_http);
  in.Field("envoyExtAuthzGrpc", out.ext_authz_grpc);
}

absl::Status ValidateExtAuthz(const ExtensionProvider::ExtAuthz& authz) {
  if (authz.port < 1 || authz.port > 65535) return RefusedAuthorizer("expected a port from 1 to 65535");
  if (!IsServiceName(authz.service)) return RefusedAuthorizer(fmt::format("'{}' is no service", authz.service));
  if (!authz.status_on_error.empty() && !ParseHttpStatus(authz.status_on_error)) {
    return RefusedAuthorizer(fmt::format("statusOnError '{}' is no HTTP status", authz.status_on_error));
  }
  if (!authz.path_prefix.empty() && (!authz.path_prefix.starts_with('/') || !IsUrlPath(authz.path_prefix))) {
    return RefusedAuthorizer("pathPrefix must be a path that begins with '/'");
  }
  return absl::OkStatus();
}

std::vector<ExtensionProvider> MergeExtensionProviders(std::vector<ExtensionProvider> providers) {
  std::vector<ExtensionProvider> out;
  for (ExtensionProvider& provider : providers) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const auto& p) { return p.name == provider.name; });
    if (same == out.end()) {
      out.push_back(std::move(provider));
    } else {
      *same = std::move(provider);
    }
  }
  return out;
}

std::optional<int> ParseHttpStatus(std::string_view text) {
  // envoy.type.v3.StatusCode.
  struct Range {
    int first, last;
  };
  static constexpr Range kKnown[] = {{0, 0},     {100, 100}, {200, 208}, {226, 226}, {300, 305}, {307, 308}, {400, 417},
                                     {421, 424}, {426, 426}, {428, 429}, {431, 431}, {500, 508}, {510, 511}};
  int code = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const bool known = std::any_of(std::begin(kKnown), std::end(kKnown),
                                 [&](const Range& range) { return range.first <= code && code <= range.last; });
  return known ? std::optional(code) : std::nullopt;
}

}  // namespace wavetank::config
