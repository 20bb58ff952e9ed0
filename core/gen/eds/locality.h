// Localities: "region/zone/subzone" in one string, how near two are, and what mesh config and DestinationRules ask for
// by them (istiod: pilot/pkg/networking/core/v1alpha3/loadbalancer/loadbalancer.go; networking/util/util.go).
#pragma once

#include <string_view>
#include <vector>

#include "core/config/kinds/destination_rule.h"
#include "core/gen/eds/eds_load_assignment.h"
#include "core/gen/eds/endpoint_decision.h"
#include "core/model/proxy.h"
#include "core/model/service.h"

namespace wavetank::pilot {

// Views into the string or the proxy they came from.
struct LocalityParts {
  std::string_view region, zone, sub_zone;
};

// What follows a third slash is ignored.
LocalityParts SplitLocality(std::string_view locality);
LocalityParts PartsOf(const ProxyLocality& locality);

// `rule` may hold "*" for a part and may leave out zone and subzone.
bool LocalityMatches(const LocalityParts& locality, std::string_view rule);

// 0: same subzone, 1: same zone, 2: same region, 3: another region.
uint32_t LbPriority(const LocalityParts& proxy, const LocalityParts& endpoints);

// What applies, a DestinationRule's setting before the mesh's; null: locality load balancing is off.
const config::LocalityLbSetting* EffectiveLocalityLb(const config::LocalityLbSetting* mesh,
                                                     const config::LocalityLbSetting* rule);

// The same for a service that says itself what it prefers, if no DestinationRule does. `fails_over`: without outlier
// detection too, since endpoints that are not ready are sent.
struct ServiceLocalityLb {
  const config::LocalityLbSetting* setting = nullptr;
  bool fails_over = false;
};
ServiceLocalityLb EffectiveLocalityLb(const config::LocalityLbSetting* mesh, const config::LocalityLbSetting* rule,
                                      const Service& service);

// What the setting (null: none) asks for. Failover of either kind needs outlier detection, since without it Envoy never
// takes an endpoint out.
LocalityLbMode ModeOf(const config::LocalityLbSetting* setting, bool outlier_detection);
// True if the setting orders endpoints by the proxy's labels.
bool UsesFailoverPriority(const config::LocalityLbSetting* setting, bool outlier_detection);

// Weights or priorities of the localities, as seen by one proxy. `endpoint_labels`: whether the assignment's shapes
// carry the workloads' labels; failoverPriority is ignored without them (clusters of type DNS).
void ApplyLocalityLb(const config::LocalityLbSetting& setting, bool outlier_detection, const LocalityParts& proxy,
                     const Labels& proxy_labels, bool endpoint_labels, LoadAssignment& assignment);

}  // namespace wavetank::pilot
