#include "core/gen/authz/jwt_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/envoyapi/any.h"
#include "core/gen/authz/authz_matchers.h"
#include "core/gen/view/done_for.h"
#include "core/gen/view/listener_filters.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "istio/authn.pb.h"

namespace wavetank::pilot {
namespace {

namespace jwt = ::envoy::extensions::filters::http::jwt_authn::v3;
namespace authn = ::istio::envoy::config::filter::http::authn::v2alpha1;
using JwtRule = config::RequestAuthentication::JwtRule;
using JwtRules = std::vector<const JwtRule*>;

// A key that verifies nothing, so that tokens are refused until the right ones are there. istiod: CreateFakeJwks.
std::string FakeKeySet(const std::string& uri) {
  std::string modulus;
  absl::WebSafeBase64Escape("Error-IstiodFailedToFetchJwksUri-" + uri, &modulus);
  return fmt::format(R"({{"keys":[ {{"e":"AQAB","kid":"abc","kty":"RSA","n":"{}"}}]}})", modulus);
}

// istiod fetches key sets itself (PILOT_JWT_ENABLE_REMOTE_JWKS is false), so that Envoy finds them in its
// configuration.
std::string KeySet(const JwtRule& rule, const PushContext& push) {
  if (!rule.jwks.empty()) return rule.jwks;
  JwksResolver* resolver = push.env().jwks;
  std::optional<std::string> fetched;
  if (resolver != nullptr) fetched = resolver->KeySet(rule.issuer, rule.jwks_uri);
  return fetched ? *std::move(fetched) : FakeKeySet(rule.jwks_uri);
}

// How a proxy's Envoy keeps what tokens say: for istio_authn, or for itself.
struct TokenNotes {
  bool payload = false, clear_route_cache = false;
};

jwt::JwtProvider MakeJwtProvider(const JwtRule& rule, const PushContext& push, const TokenNotes& notes) {
  jwt::JwtProvider out;
  out.set_issuer(rule.issuer);
  for (const std::string& audience : rule.audiences) out.add_audiences(audience);
  out.set_forward(rule.forward_original_token);
  out.set_forward_payload_header(rule.output_payload_to_header);
  if (notes.payload) {
    out.set_payload_in_metadata(std::string(authz::kJwtPayload));
    // istiod: buildSpaceDelimitedClaims. Sorted, each once.
    std::set<std::string> split = {"permission", "scope"};
    if (push.profile().Has(Change::kSpaceDelimitedClaims))
      split.insert(rule.space_delimited_claims.begin(), rule.space_delimited_claims.end());
    for (const std::string& claim : split)
      out.mutable_normalize_payload_in_metadata()->add_space_delimited_claims(claim);
    out.set_clear_route_cache(notes.clear_route_cache);
  } else {
    out.set_payload_in_metadata(rule.issuer);
  }
  for (const auto& [header, claim] : rule.output_claim_to_headers) {
    auto* to = out.add_claim_to_headers();
    to->set_header_name(header);
    to->set_claim_name(claim);
  }
  for (const auto& [name, prefix] : rule.from_headers) {
    auto* from = out.add_from_headers();
    from->set_name(name);
    from->set_value_prefix(prefix);
  }
  for (const std::string& param : rule.from_params) out.add_from_params(param);
  if (push.profile().Has(Change::kTokensInCookies)) {
    for (const std::string& cookie : rule.from_cookies) out.add_from_cookies(cookie);
  }
  out.mutable_local_jwks()->set_inline_string(KeySet(rule, push));
  return out;
}

// A token, if there is one, has to be good. With several providers: a good token of any of them, or for each either a
// good one or none; the former for providers that look at the same place, which would all refuse each other's tokens.
jwt::JwtAuthentication MakeJwtAuthentication(const JwtRules& rules, const PushContext& push, const TokenNotes& notes) {
  jwt::JwtAuthentication out;
  out.set_bypass_cors_preflight(true);
  auto* rule = out.add_rules();
  rule->mutable_match()->set_prefix("/");
  jwt::JwtRequirement& required = *rule->mutable_requires();
  jwt::JwtRequirement each;
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::string name = fmt::format("origins-{}", i);
    (*out.mutable_providers())[name] = MakeJwtProvider(*rules[i], push, notes);
    auto* either = rules.size() == 1 ? required.mutable_requires_any()
                                     : each.mutable_requires_all()->add_requirements()->mutable_requires_any();
    either->add_requirements()->set_provider_name(name);
    either->add_requirements()->mutable_allow_missing();
    if (rules.size() > 1) required.mutable_requires_any()->add_requirements()->set_provider_name(name);
  }
  if (rules.size() > 1) *required.mutable_requires_any()->add_requirements() = std::move(each);
  return out;
}

authn::FilterConfig MakeIstioAuthn(const JwtRules& rules, bool sidecar) {
  authn::FilterConfig out;
  authn::Policy& policy = *out.mutable_policy();
  for (const JwtRule* rule : rules) policy.add_origins()->mutable_jwt()->set_issuer(rule->issuer);
  policy.set_origin_is_optional(true);
  policy.set_principal_binding(authn::USE_ORIGIN);
  out.set_skip_validate_trust_domain(true);
  // Only gateways choose routes by claims.
  out.set_disable_clear_route_cache(sidecar);
  return out;
}

std::string JwtFilterField(const char* name, const google::protobuf::Message& config) {
  return HttpFilterField(name, TypeUrlOf(config), Serialize(config));
}

}  // namespace

std::string MakeJwtFilters(const Proxy& proxy, const PushContext& push) {
  const auto policies = push.authn().GetJwtPoliciesForWorkload(proxy.metadata.ns, proxy.labels);
  JwtRules rules;
  for (const config::RequestAuthenticationRef& policy : policies) {
    for (const JwtRule& rule : policy->spec.jwt_rules) rules.push_back(&rule);
  }
  if (rules.empty()) return "";
  std::stable_sort(rules.begin(), rules.end(), [](const auto* a, const auto* b) { return a->issuer < b->issuer; });
  // Only gateways choose routes by claims.
  const TokenNotes notes{DoneFor(proxy, push.profile(), Change::kJwtPayload), proxy.IsRouter()};
  std::string out = JwtFilterField("envoy.filters.http.jwt_authn", MakeJwtAuthentication(rules, push, notes));
  if (!notes.payload && !push.profile().Has(Change::kUpstreamEnvoy))
    out += JwtFilterField("istio_authn", MakeIstioAuthn(rules, !proxy.IsRouter()));
  return out;
}

}  // namespace wavetank::pilot
