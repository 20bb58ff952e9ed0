#include "core/gen/authz/authz_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text/parse_bool.h"
#include "core/gen/authz/authz_rules.h"
#include "core/gen/authz/ext_authz.h"
#include "core/gen/view/done_for.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/view/proxy_view.h"
#include "core/gen/wire/wire.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"
#include "envoy/config/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"

namespace wavetank::pilot {
namespace {

using RbacPb = ::envoy::config::rbac::v3::RBAC;
using HttpRbac = ::envoy::extensions::filters::http::rbac::v3::RBAC;
using TcpRbac = ::envoy::extensions::filters::network::rbac::v3::RBAC;
using EncodedPolicies = std::vector<std::pair<std::string, std::string>>;  // name, policy

constexpr std::string_view kTcpStatPrefix = "tcp.";

// In order of name, as a deterministic encoder has maps.
std::string EncodeRbac(int action, EncodedPolicies policies) {
  std::sort(policies.begin(), policies.end());
  size_t size = 2;
  for (const auto& [name, policy] : policies) size += name.size() + policy.size() + 16;
  std::string out;
  out.reserve(size);
  wire::Writer w(&out);
  if (action != 0) w.Varint(RbacPb::kActionFieldNumber, static_cast<uint64_t>(action));
  for (const auto& entry : policies) {
    w.Message(RbacPb::kPoliciesFieldNumber, [&] {
      w.Bytes(wire::kMapKey, entry.first);
      w.Bytes(wire::kMapValue, entry.second);
    });
  }
  return out;
}

std::string EncodeFilter(bool tcp, const std::optional<std::string>& rules, const std::optional<std::string>& shadow,
                         std::string_view shadow_prefix) {
  std::string config;
  config.reserve(64 + (rules ? rules->size() : 0) + (shadow ? shadow->size() : 0));
  wire::Writer w(&config);
  const auto add = [&](int field, const std::optional<std::string>& encoded) {
    if (encoded) w.Bytes(field, *encoded);
  };
  if (!tcp) {
    add(HttpRbac::kRulesFieldNumber, rules);
    add(HttpRbac::kShadowRulesFieldNumber, shadow);
    w.NonEmpty(HttpRbac::kShadowRulesStatPrefixFieldNumber, shadow_prefix);
    return HttpFilterField("envoy.filters.http.rbac", "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
                           config);
  }
  add(TcpRbac::kRulesFieldNumber, rules);
  add(TcpRbac::kShadowRulesFieldNumber, shadow);
  w.NonEmpty(TcpRbac::kShadowRulesStatPrefixFieldNumber, shadow_prefix);
  w.Bytes(TcpRbac::kStatPrefixFieldNumber, kTcpStatPrefix);
  return NetworkFilter("envoy.filters.network.rbac",
                       "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC", config);
}

// What is no truth value is no dry run.
bool IsDryRun(const config::ConfigMeta& meta) {
  const auto it = meta.annotations.find("istio.io/dry-run");
  return it != meta.annotations.end() && ParseBool(it->second).value_or(false);
}

std::string AskingFilter(const authz::ExtAuthz& authorizer, bool tcp) {
  return tcp ? NetworkFilter("envoy.filters.network.ext_authz",
                             "type.googleapis.com/envoy.extensions.filters.network.ext_authz.v3.ExtAuthz",
                             authorizer.tcp)
             : HttpFilterField("envoy.filters.http.ext_authz",
                               "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
                               authorizer.http);
}

}  // namespace

AuthzFilters::AuthzFilters(const Proxy& proxy, const PushContext& push)
    : push_(push),
      policies_(push.authz().ForWorkload(proxy.config_namespace, proxy.labels)),
      // Before 1.17, and in a stock Envoy, nobody writes down who the peer is.
      authenticated_(!IsVersionAtLeast(proxy, 1, 17) || push.profile().Has(Change::kUpstreamEnvoy) ||
                     push.profile().Has(Change::kPrincipalsOfCertificates)),
      jwt_payload_(DoneFor(proxy, push.profile(), Change::kJwtPayload)) {
  if (!push.authz().empty()) trust_domains_.emplace(push.mesh());
}

const std::string& AuthzFilters::CustomHttp() {
  if (!custom_http_) custom_http_ = CustomFilters(false);
  return *custom_http_;
}

const std::string& AuthzFilters::Http() {
  if (!http_) {
    http_ = RbacFilter(policies_.audit, Action::kLog, false) + RbacFilter(policies_.deny, Action::kDeny, false) +
            RbacFilter(policies_.allow, Action::kAllow, false);
  }
  return *http_;
}

const std::string& AuthzFilters::CustomTcp() {
  if (!custom_tcp_) custom_tcp_ = CustomFilters(true);
  return *custom_tcp_;
}

const std::string& AuthzFilters::Tcp() {
  if (!tcp_) {
    tcp_ = RbacFilter(policies_.audit, Action::kLog, true) + RbacFilter(policies_.deny, Action::kDeny, true) +
           RbacFilter(policies_.allow, Action::kAllow, true);
  }
  return *tcp_;
}

AuthzFilters::Rules AuthzFilters::Encode(const Policies& policies, Action action, bool custom, bool tcp,
                                         std::string_view suffix) const {
  static_assert(static_cast<int>(Action::kAllow) == RbacPb::ALLOW && static_cast<int>(Action::kDeny) == RbacPb::DENY &&
                static_cast<int>(Action::kLog) == RbacPb::LOG);
  authz::RuleOptions options;
  options.tcp = tcp;
  options.allow = action == Action::kAllow;
  options.authenticated = authenticated_;
  options.string_headers = push_.profile().Has(Change::kHeadersByStringMatch);
  options.jwt_payload = jwt_payload_;
  options.trust_domains = &*trust_domains_;
  options.reads = authz::ReadFields::Of(push_.profile());
  const bool by_name = push_.profile().Has(Change::kAuthorizersByName);
  struct Side {
    bool any = false;
    EncodedPolicies policies;
  } enforced, shadow;
  for (const auto* policy : policies) {
    Side& side = IsDryRun(policy->meta) ? shadow : enforced;
    side.any = true;
    options.policy_namespace = policy->meta.ns;
    const auto add = [&](size_t rule, std::string encoded) {
      std::string prefix;
      if (custom) prefix = fmt::format("{}-", authz::kExtAuthzPrefix);
      if (custom && by_name && !policy->spec.provider.empty()) prefix += policy->spec.provider + "-";
      side.policies.emplace_back(
          fmt::format("{}ns[{}]-policy[{}]-rule[{}]{}", prefix, policy->meta.ns, policy->meta.name, rule, suffix),
          std::move(encoded));
    };
    for (size_t i = 0; i < policy->spec.rules.size(); ++i) {
      if (!authz::IsKnownRule(policy->spec.rules[i], options)) continue;
      if (auto encoded = authz::EncodeRule(policy->spec.rules[i], options)) add(i, *std::move(encoded));
    }
    if (policy->spec.rules.empty()) add(0, authz::MatchNever());
  }
  const auto encode = [&](Side& side) {
    return side.any ? std::optional(EncodeRbac(static_cast<int>(action), std::move(side.policies))) : std::nullopt;
  };
  return {encode(enforced), encode(shadow)};
}

std::string AuthzFilters::RbacFilter(const Policies& policies, Action action, bool tcp) const {
  if (policies.empty()) return "";
  const Rules rules = Encode(policies, action, false, tcp);
  // Rules that are not there have the action of none, which is ALLOW. istiod: shadowRuleStatPrefix.
  const std::string_view prefix = !rules.shadow || action == Action::kAllow ? "istio_dry_run_allow_"
                                  : action == Action::kDeny                 ? "istio_dry_run_deny_"
                                                                            : "";
  return EncodeFilter(tcp, rules.enforced, rules.shadow, prefix);
}

// Since each provider has filters of its own: of several none is asked, as PILOT_ENABLE_MULTIPLE_CUSTOM_AUTHZ_PROVIDERS
// is off, and each denies what its policies match. Dry runs are enforced, which istiod did not mean. istiod:
// builder.go, buildHTTP, buildTCP.
std::string AuthzFilters::FiltersOfProvider(const Policies& policies, size_t providers, bool tcp) const {
  static const auto& nothing = *new std::string(EncodeRbac(RbacPb::DENY, {}));
  std::optional<authz::ExtAuthz> authorizer;
  if (providers == 1) authorizer = authz::ResolveExtAuthz(policies, push_);
  if (!authorizer) {
    constexpr std::string_view kDenied = "-deny-due-to-bad-CUSTOM-action";
    const Rules rules = Encode(policies, Action::kDeny, true, tcp, kDenied);
    return EncodeFilter(tcp, rules.enforced.value_or(nothing), std::nullopt, "");
  }
  if (tcp && authorizer->tcp.empty()) return "";
  Rules rules = Encode(policies, Action::kDeny, true, tcp);
  if (rules.shadow == nothing) rules.shadow.reset();
  return EncodeFilter(tcp, rules.shadow, rules.enforced.value_or(nothing), authz::kExtAuthzShadowPrefix) +
         AskingFilter(*authorizer, tcp);
}

// The RBAC filter only notes which policy matches, and the authorizer is asked where one did.
std::string AuthzFilters::CustomFilters(bool tcp) const {
  if (policies_.custom.empty()) return "";
  const Profile& profile = push_.profile();
  if (profile.Has(Change::kAuthorizersByName) && profile.Has(Change::kBadAuthorizersDenyByRule)) {
    std::map<std::string_view, Policies> of_providers;
    for (const auto* policy : policies_.custom) of_providers[policy->spec.provider].push_back(policy);
    std::string out;
    for (const auto& [provider, policies] : of_providers) out += FiltersOfProvider(policies, of_providers.size(), tcp);
    return out;
  }
  const std::optional<authz::ExtAuthz> authorizer = authz::ResolveExtAuthz(policies_.custom, push_);
  if (!authorizer && push_.profile().Has(Change::kBadAuthorizersDenyByRule)) {
    // istiod: getBadCustomDenyRules.
    constexpr std::string_view kDenied = "-deny-due-to-bad-CUSTOM-action";
    return EncodeFilter(tcp, Encode(policies_.custom, Action::kDeny, true, tcp, kDenied).enforced, std::nullopt, "");
  }
  if (!authorizer) {
    const std::string deny_all =
        EncodeRbac(RbacPb::DENY, {{"default-deny-all-due-to-bad-CUSTOM-action", authz::MatchAll()}});
    return EncodeFilter(tcp, deny_all, std::nullopt, "");
  }
  if (tcp && authorizer->tcp.empty()) return "";
  // As for DENY, so that a rule of HTTP matches every connection of TCP.
  const Rules rules = Encode(policies_.custom, Action::kDeny, true, tcp);
  return EncodeFilter(tcp, std::nullopt, rules.enforced, authz::kExtAuthzShadowPrefix) + AskingFilter(*authorizer, tcp);
}

}  // namespace wavetank::pilot
