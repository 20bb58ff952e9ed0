#include "fakes/envoy/rbac_config.h"

#include <algorithm>

#include "envoy/config/rbac/v3/rbac.pb.h"

// Configuration in the field still uses what Envoy calls deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wavetank::envoysim {
namespace {

namespace rbac_v3 = envoy::config::rbac::v3;

absl::Status AddPrefix(const envoy::config::core::v3::CidrRange& range, RbacConfig::Rule* rule) {
  absl::StatusOr<IpPrefix> prefix = IpPrefix::Make(range.address_prefix(), range.prefix_len().value());
  if (!prefix.ok()) return prefix.status();
  rule->source_ips.push_back(*prefix);
  return absl::OkStatus();
}

// Istio nests its conditions: AND of (OR of alternatives). Alternatives are collected; an AND of several kinds keeps
// its meaning because each kind has its own list.
absl::Status AddPrincipal(const rbac_v3::Principal& p, RbacConfig::Rule* rule) {
  switch (p.identifier_case()) {
    case rbac_v3::Principal::kAny:
      rule->any_principal = true;
      return absl::OkStatus();
    case rbac_v3::Principal::kAndIds:
      for (const auto& id : p.and_ids().ids()) {
        if (absl::Status s = AddPrincipal(id, rule); !s.ok()) return s;
      }
      return absl::OkStatus();
    case rbac_v3::Principal::kOrIds:
      for (const auto& id : p.or_ids().ids()) {
        if (absl::Status s = AddPrincipal(id, rule); !s.ok()) return s;
      }
      return absl::OkStatus();
    case rbac_v3::Principal::kNotId:
      rule->not_principals = true;
      return AddPrincipal(p.not_id(), rule);
    case rbac_v3::Principal::kAuthenticated: {
      if (!p.authenticated().has_principal_name()) {
        rule->principals.push_back(StringMatch::Make(StringMatch::Kind::kPrefix, ""));
        return absl::OkStatus();
      }
      absl::StatusOr<StringMatch> m = StringMatch::Make(p.authenticated().principal_name());
      if (!m.ok()) return m.status();
      rule->principals.push_back(*std::move(m));
      return absl::OkStatus();
    }
    case rbac_v3::Principal::kDirectRemoteIp:
      return AddPrefix(p.direct_remote_ip(), rule);
    case rbac_v3::Principal::kRemoteIp:
      return AddPrefix(p.remote_ip(), rule);
    case rbac_v3::Principal::kSourceIp:
      return AddPrefix(p.source_ip(), rule);
    default:
      return absl::UnimplementedError("RBAC principal of a kind that is not modelled");
  }
}

absl::Status AddPermission(const rbac_v3::Permission& p, RbacConfig::Rule* rule) {
  switch (p.rule_case()) {
    case rbac_v3::Permission::kAny:
      return absl::OkStatus();
    case rbac_v3::Permission::kAndRules:
      for (const auto& r : p.and_rules().rules()) {
        if (absl::Status s = AddPermission(r, rule); !s.ok()) return s;
      }
      return absl::OkStatus();
    case rbac_v3::Permission::kOrRules:
      for (const auto& r : p.or_rules().rules()) {
        if (absl::Status s = AddPermission(r, rule); !s.ok()) return s;
      }
      return absl::OkStatus();
    case rbac_v3::Permission::kDestinationPort:
      rule->ports.push_back(static_cast<uint16_t>(p.destination_port()));
      return absl::OkStatus();
    case rbac_v3::Permission::kUrlPath: {
      absl::StatusOr<StringMatch> m = StringMatch::Make(p.url_path().path());
      if (!m.ok()) return m.status();
      rule->paths.push_back(*std::move(m));
      return absl::OkStatus();
    }
    case rbac_v3::Permission::kHeader:
      if (p.header().name() == ":method") {
        absl::StatusOr<StringMatch> m = p.header().has_string_match()
                                            ? StringMatch::Make(p.header().string_match())
                                            : StringMatch::Make(StringMatch::Kind::kExact, p.header().exact_match());
        if (!m.ok()) return m.status();
        rule->methods.push_back(*std::move(m));
        return absl::OkStatus();
      }
      [[fallthrough]];
    default:
      return absl::UnimplementedError("RBAC permission of a kind that is not modelled");
  }
}

bool AnyMatches(const std::vector<StringMatch>& list, std::string_view value) {
  return list.empty() || std::any_of(list.begin(), list.end(), [&](const StringMatch& m) { return m.Matches(value); });
}

bool Matches(const RbacConfig::Rule& rule, const RbacSubject& subject) {
  if (!rule.principals.empty()) {
    const bool matches = !subject.principal.empty() && AnyMatches(rule.principals, subject.principal);
    if (matches == rule.not_principals) return false;
  }
  if (!rule.source_ips.empty() && std::none_of(rule.source_ips.begin(), rule.source_ips.end(),
                                               [&](const IpPrefix& p) { return p.Contains(subject.source); })) {
    return false;
  }
  if (!rule.ports.empty() && std::find(rule.ports.begin(), rule.ports.end(), subject.port) == rule.ports.end()) {
    return false;
  }
  return AnyMatches(rule.paths, subject.path) && AnyMatches(rule.methods, subject.method);
}

}  // namespace

absl::StatusOr<RbacConfig> CompileRbac(const rbac_v3::RBAC& rules) {
  RbacConfig out;
  out.deny = rules.action() == rbac_v3::RBAC::DENY;
  std::vector<std::string> names;  // the map has no order
  for (const auto& [name, policy] : rules.policies()) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const rbac_v3::Policy& policy = rules.policies().at(name);
    RbacConfig::Rule rule;
    for (const auto& p : policy.principals()) {
      if (absl::Status s = AddPrincipal(p, &rule); !s.ok()) return s;
    }
    for (const auto& p : policy.permissions()) {
      if (absl::Status s = AddPermission(p, &rule); !s.ok()) return s;
    }
    out.policies.emplace_back(name, std::move(rule));
  }
  return out;
}

std::optional<std::string_view> Denied(const RbacConfig& config, const RbacSubject& subject) {
  for (const auto& [name, rule] : config.policies) {
    if (!Matches(rule, subject)) continue;
    if (config.deny) return name;
    return std::nullopt;
  }
  if (config.deny) return std::nullopt;
  return "none";
}

}  // namespace wavetank::envoysim
