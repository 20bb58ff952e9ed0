// What of a DestinationRule's traffic policies applies to one port of one subset
// (istiod: pilot/pkg/networking/core/v1alpha3/cluster_builder.go, MergeTrafficPolicy).
#pragma once

#include <string_view>

#include "core/config/kinds/destination_rule.h"

namespace wavetank::pilot {

// Parts of the rule, which must outlive it; null: not set.
struct EffectivePolicy {
  const config::ConnectionPoolSettings* connection_pool = nullptr;
  const config::OutlierDetection* outlier_detection = nullptr;
  const config::LoadBalancerSettings* load_balancer = nullptr;
  const config::ClientTlsSettings* tls = nullptr;
  const config::ProxyProtocolVersion* proxy_protocol = nullptr;  // these two are no settings of ports
  const config::RetryBudget* retry_budget = nullptr;
};

// `policy` over `base`, part by part. Settings of `port` take the place of the first four parts, also of those that
// they do not name: a port inherits nothing of these.
EffectivePolicy MergeTrafficPolicy(const EffectivePolicy& base, const config::TrafficPolicy* policy, int port);

const config::Subset* FindSubset(const config::DestinationRule* rule, std::string_view name);

// The rule's policy for a port, overridden by the subset's if there is one of that name.
EffectivePolicy PolicyFor(const config::DestinationRule* rule, std::string_view subset, int port);

inline const config::LocalityLbSetting* LocalityLbOf(const config::LoadBalancerSettings* lb) {
  return lb != nullptr && lb->locality_lb_setting ? &*lb->locality_lb_setting : nullptr;
}

inline config::LoadBalancerSettings::Simple SimpleLbOf(const config::LoadBalancerSettings* lb) {
  return lb != nullptr && lb->simple ? *lb->simple : config::LoadBalancerSettings::Simple::kUnspecified;
}

}  // namespace wavetank::pilot
