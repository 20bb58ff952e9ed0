#include "core/gen/view/traffic_policy.h"

namespace wavetank::pilot {
namespace {

template <typename T>
const T* PointerTo(const std::optional<T>& part) {
  return part ? &*part : nullptr;
}

template <typename Policy>
EffectivePolicy PartsOf(const Policy& policy) {
  return {PointerTo(policy.connection_pool), PointerTo(policy.outlier_detection), PointerTo(policy.load_balancer),
          PointerTo(policy.tls)};
}

// istiod: pilot/pkg/networking/util/util.go, mergeTrafficPolicy: a port's settings leave these two as they are.
void Inherit(const EffectivePolicy& base, EffectivePolicy& out) {
  if (out.proxy_protocol == nullptr) out.proxy_protocol = base.proxy_protocol;
  if (out.retry_budget == nullptr) out.retry_budget = base.retry_budget;
}

}  // namespace

EffectivePolicy MergeTrafficPolicy(const EffectivePolicy& base, const config::TrafficPolicy* policy, int port) {
  if (policy == nullptr) return base;
  for (const config::PortTrafficPolicy& of_port : policy->port_level_settings) {
    if (static_cast<int64_t>(of_port.port) != port) continue;
    EffectivePolicy out = PartsOf(of_port);
    Inherit(base, out);
    return out;
  }
  EffectivePolicy out = PartsOf(*policy);
  out.proxy_protocol = PointerTo(policy->proxy_protocol);
  out.retry_budget = PointerTo(policy->retry_budget);
  Inherit(base, out);
  if (out.connection_pool == nullptr) out.connection_pool = base.connection_pool;
  if (out.outlier_detection == nullptr) out.outlier_detection = base.outlier_detection;
  if (out.load_balancer == nullptr) out.load_balancer = base.load_balancer;
  if (out.tls == nullptr) out.tls = base.tls;
  return out;
}

const config::Subset* FindSubset(const config::DestinationRule* rule, std::string_view name) {
  if (rule == nullptr) return nullptr;
  for (const config::Subset& subset : rule->subsets) {
    if (subset.name == name) return &subset;
  }
  return nullptr;
}

EffectivePolicy PolicyFor(const config::DestinationRule* rule, std::string_view subset, int port) {
  if (rule == nullptr) return {};
  EffectivePolicy out = MergeTrafficPolicy({}, PointerTo(rule->traffic_policy), port);
  const config::Subset* found = FindSubset(rule, subset);
  return found == nullptr ? out : MergeTrafficPolicy(out, PointerTo(found->traffic_policy), port);
}

}  // namespace wavetank::pilot
