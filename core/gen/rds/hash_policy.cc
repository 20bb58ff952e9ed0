#include "core/envoyapi/any.h"
#include "core/gen/rds/http_routes.h"
#include "core/gen/wire/duration.h"
#include "envoy/config/route/v3/route_components.pb.h"

namespace wavetank::pilot {
namespace {

using config::ConsistentHash;
using PolicyPb = ::envoy::config::route::v3::RouteAction::HashPolicy;

std::string Encode(const ConsistentHash& hash, bool attributes) {
  PolicyPb out;
  switch (hash.key) {
    case ConsistentHash::Key::kNone:
      return {};
    case ConsistentHash::Key::kHttpHeaderName:
      out.mutable_header()->set_header_name(hash.name);
      break;
    case ConsistentHash::Key::kHttpCookie:
      out.mutable_cookie()->set_name(hash.cookie.name);
      out.mutable_cookie()->set_path(hash.cookie.path);
      if (hash.cookie.ttl) SetDuration(*hash.cookie.ttl, out.mutable_cookie()->mutable_ttl());
      if (!attributes) break;
      for (const auto& [name, value] : hash.cookie.attributes) {
        auto* attribute = out.mutable_cookie()->add_attributes();
        attribute->set_name(name);
        attribute->set_value(value);
      }
      break;
    case ConsistentHash::Key::kUseSourceIp:
      out.mutable_connection_properties()->set_source_ip(hash.use_source_ip);
      break;
    case ConsistentHash::Key::kHttpQueryParameterName:
      out.mutable_query_parameter()->set_name(hash.name);
      break;
  }
  return Serialize(out);
}

template <typename Policy>
const ConsistentHash* HashOf(const Policy& policy) {
  return policy.load_balancer && policy.load_balancer->consistent_hash ? &*policy.load_balancer->consistent_hash
                                                                       : nullptr;
}

const ConsistentHash* HashOfPort(const config::TrafficPolicy& policy, uint32_t port) {
  for (const config::PortTrafficPolicy& setting : policy.port_level_settings) {
    if (setting.port == port) return HashOf(setting);
  }
  return nullptr;
}

ConsolidatedDestRuleRef RuleFor(const Proxy& proxy, std::string_view hostname) {
  return proxy.sidecar_scope == nullptr
             ? nullptr
             : proxy.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy, hostname);
}

std::optional<HashPolicy> Result(const ConsistentHash* hash, ConsolidatedDestRuleRef rule, bool attributes) {
  if (hash == nullptr) return std::nullopt;
  return HashPolicy{Encode(*hash, attributes), std::move(rule)};
}

}  // namespace

std::optional<HashPolicy> HashForService(const Proxy& proxy, std::string_view hostname, int port, bool attributes) {
  ConsolidatedDestRuleRef rule = RuleFor(proxy, hostname);
  if (rule == nullptr || !rule->rule->spec.traffic_policy) return std::nullopt;
  const config::TrafficPolicy& policy = *rule->rule->spec.traffic_policy;
  const ConsistentHash* of_port = HashOfPort(policy, static_cast<uint32_t>(port));
  const ConsistentHash* hash = of_port != nullptr ? of_port : HashOf(policy);
  return Result(hash, std::move(rule), attributes);
}

// Narrowest first: subset's port, subset, port, rule.
std::optional<HashPolicy> HashForDestination(const Proxy& proxy, const config::Destination& destination,
                                             bool attributes) {
  ConsolidatedDestRuleRef rule = RuleFor(proxy, destination.host);
  if (rule == nullptr) return std::nullopt;
  const config::DestinationRule& spec = rule->rule->spec;
  const ConsistentHash* hash = nullptr;
  const auto prefer = [&](const std::optional<config::TrafficPolicy>& policy) {
    if (hash == nullptr && policy && destination.port != 0) hash = HashOfPort(*policy, destination.port);
    if (hash == nullptr && policy) hash = HashOf(*policy);
  };
  for (const config::Subset& subset : spec.subsets) {
    if (subset.name != destination.subset) continue;
    prefer(subset.traffic_policy);
    break;
  }
  prefer(spec.traffic_policy);
  return Result(hash, std::move(rule), attributes);
}

std::vector<ConsolidatedDestRuleRef> HashRulesOf(const Proxy& proxy, const config::VirtualService& rule) {
  std::vector<ConsolidatedDestRuleRef> out;
  for (const config::HttpRoute& route : rule.http) {
    for (const config::HttpRouteDestination& destination : route.route) {
      if (auto hash = HashForDestination(proxy, destination.destination)) out.push_back(std::move(hash->rule));
    }
  }
  return out;
}

}  // namespace wavetank::pilot
