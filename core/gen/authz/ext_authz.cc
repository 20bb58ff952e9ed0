#include "core/gen/authz/ext_authz.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/provider_cluster.h"
#include "core/gen/wire/duration.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/network/ext_authz/v3/ext_authz.pb.h"

namespace wavetank::pilot::authz {
namespace {

using Provider = config::ExtensionProvider;
using HttpPb = ::envoy::extensions::filters::http::ext_authz::v3::ExtAuthz;
using TcpPb = ::envoy::extensions::filters::network::ext_authz::v3::ExtAuthz;
using HeadersPb = ::envoy::type::matcher::v3::ListStringMatcher;
using MetadataPb = ::envoy::type::matcher::v3::MetadataMatcher;

constexpr Duration kDefaultTimeout = 600s;

void AddHeaders(const std::vector<std::string>& headers, HeadersPb* out) {
  for (const std::string& header : headers) {
    auto* pattern = out->add_patterns();
    pattern->set_ignore_case(true);
    if (header.starts_with('*')) {
      pattern->set_suffix(header.substr(1));
    } else if (header.ends_with('*')) {
      pattern->set_prefix(header.substr(0, header.size() - 1));
    } else {
      pattern->set_exact(header);
    }
  }
}

// A match on what the RBAC filter `name` wrote down, of policies whose names begin so.
MetadataPb WherePolicyMatched(const char* name, const std::string& prefix) {
  MetadataPb out;
  out.set_filter(name);
  out.add_path()->set_key(std::string(kExtAuthzShadowPrefix) + "shadow_effective_policy_id");
  out.mutable_value()->mutable_string_match()->set_prefix(prefix);
  return out;
}

// What providers of both protocols have in an HTTP chain.
HttpPb CommonHttp(const Provider::ExtAuthz& provider, const std::string& prefix) {
  HttpPb out;
  if (const std::optional<int> code = config::ParseHttpStatus(provider.status_on_error)) {
    out.mutable_status_on_error()->set_code(static_cast<::envoy::type::v3::StatusCode>(*code));
  }
  out.set_failure_mode_allow(provider.fail_open);
  out.set_transport_api_version(::envoy::config::core::v3::V3);
  *out.mutable_filter_enabled_metadata() = WherePolicyMatched("envoy.filters.http.rbac", prefix);
  if (provider.include_request_body) {
    auto* body = out.mutable_with_request_body();
    body->set_max_request_bytes(provider.include_request_body->max_request_bytes);
    body->set_allow_partial_message(provider.include_request_body->allow_partial_message);
    body->set_pack_as_bytes(provider.include_request_body->pack_as_bytes);
  }
  return out;
}

// A star alone names every header, which is not taken for a pattern.
bool NamesEveryHeader(const Provider::ExtAuthz& provider) {
  for (const auto* headers :
       {&provider.include_request_headers, &provider.include_headers, &provider.headers_to_downstream_on_deny,
        &provider.headers_to_downstream_on_allow, &provider.headers_to_upstream_on_allow}) {
    if (std::find(headers->begin(), headers->end(), "*") != headers->end()) return true;
  }
  return false;
}

std::optional<ExtAuthz> OverHttp(const Provider::ExtAuthz& provider, const ProviderCluster& to,
                                 const std::string& prefix) {
  if (NamesEveryHeader(provider)) return std::nullopt;
  HttpPb out = CommonHttp(provider, prefix);
  auto* http = out.mutable_http_service();
  http->set_path_prefix(provider.path_prefix);
  http->mutable_server_uri()->set_uri("http://" + to.hostname);  // required, and not used
  http->mutable_server_uri()->set_cluster(to.cluster);
  SetDuration(provider.timeout.value_or(kDefaultTimeout), http->mutable_server_uri()->mutable_timeout());
  for (const auto& [name, value] : provider.include_additional_headers) {
    auto* header = http->mutable_authorization_request()->add_headers_to_add();
    header->set_key(name);
    header->set_value(value);
  }
  const auto& up = provider.headers_to_upstream_on_allow;
  const auto& denied = provider.headers_to_downstream_on_deny;
  const auto& allowed = provider.headers_to_downstream_on_allow;
  if (!up.empty()) AddHeaders(up, http->mutable_authorization_response()->mutable_allowed_upstream_headers());
  if (!denied.empty()) AddHeaders(denied, http->mutable_authorization_response()->mutable_allowed_client_headers());
  if (!allowed.empty()) {
    AddHeaders(allowed, http->mutable_authorization_response()->mutable_allowed_client_headers_on_success());
  }
  const auto& checked =
      provider.include_request_headers.empty() ? provider.include_headers : provider.include_request_headers;
  if (!checked.empty()) AddHeaders(checked, out.mutable_allowed_headers());
  return ExtAuthz{Serialize(out), ""};
}

ExtAuthz OverGrpc(const Provider::ExtAuthz& provider, const std::string& cluster, const std::string& authority,
                  const std::string& prefix) {
  ::envoy::config::core::v3::GrpcService grpc;
  grpc.mutable_envoy_grpc()->set_cluster_name(cluster);
  grpc.mutable_envoy_grpc()->set_authority(authority);
  SetDuration(provider.timeout.value_or(kDefaultTimeout), grpc.mutable_timeout());
  HttpPb http = CommonHttp(provider, prefix);
  *http.mutable_grpc_service() = grpc;
  TcpPb tcp;
  tcp.set_stat_prefix("tcp.");
  tcp.set_failure_mode_allow(provider.fail_open);
  tcp.set_transport_api_version(::envoy::config::core::v3::V3);
  *tcp.mutable_grpc_service() = std::move(grpc);
  *tcp.mutable_filter_enabled_metadata() = WherePolicyMatched("envoy.filters.network.rbac", prefix);
  return {Serialize(http), Serialize(tcp)};
}

}  // namespace

std::optional<ExtAuthz> ResolveExtAuthz(const WorkloadAuthorization::Policies& policies, const PushContext& push) {
  const std::string& name = policies.front()->spec.provider;
  for (const auto* policy : policies) {
    if (policy->spec.provider != name) return std::nullopt;
  }
  const auto& providers = push.mesh().extension_providers;  // names are unique
  const auto found =
      std::find_if(providers.begin(), providers.end(), [&](const Provider& provider) { return provider.name == name; });
  if (found == providers.end() || (!found->ext_authz_http && !found->ext_authz_grpc)) return std::nullopt;
  const Provider::ExtAuthz& authorizer = found->ext_authz_http ? *found->ext_authz_http : *found->ext_authz_grpc;
  if (!config::ValidateExtAuthz(authorizer).ok()) return std::nullopt;
  const std::optional<ProviderCluster> to = LookupProviderCluster(authorizer.service, authorizer.port, push);
  if (!to) return std::nullopt;
  std::string prefix(kExtAuthzPrefix);
  if (push.profile().Has(Change::kAuthorizersByName)) prefix += "-" + name;
  if (found->ext_authz_http) return OverHttp(authorizer, *to, prefix);
  // Before 1.20 the cluster's name, in which '|' must not stand.
  const bool host = push.profile().Has(Change::kAuthorizersByHost);
  const std::string authority = host ? to->hostname : absl::StrReplaceAll(to->cluster, {{"|", "_."}});
  return OverGrpc(authorizer, to->cluster, authority, prefix);
}

}  // namespace wavetank::pilot::authz
