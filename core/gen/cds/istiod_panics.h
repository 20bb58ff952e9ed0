// Where istiod 1.30 ends in a panic: endpoints of a cluster that Envoy resolves are of several localities, and
// failoverPriority is to order them. It makes the priorities of the first locality, and goes through the endpoints of
// all (istiod: cluster.go, buildOutboundClusters; loadbalancer.go, applyFailoverPriorityPerLocality: index out of
// range). And outlierDetection for a cluster that looks names up (resolution DYNAMIC_DNS): it is to have no panic
// threshold, and has nothing that could (cluster_traffic_policy.go, applyOutlierDetection: nil pointer). Nothing
// recovers either, so the process ends; the next one does as soon as a proxy connects that has the cluster. Ours goes
// on, and says so.
#pragma once

#include <string>
#include <vector>

#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/service_entry.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {

struct IstiodPanic {
  std::string host;                          // of the service
  const config::ConfigMeta* meta = nullptr;  // what asks for it: a DestinationRule, or the ServiceEntry itself
  std::string by;                            // "DestinationRule ns/name", "ServiceEntry ns/name"
  bool ejects_names = false;                 // outlierDetection of names that are looked up
};

// Each rule and host once, in order of kinds and names; none in releases that do not do it. What is pointed to is the
// push context's.
std::vector<IstiodPanic> IstiodPanics(const PushContext& push);

// One line for all that runs the mesh.
std::string Describe(const IstiodPanic& panic);

}  // namespace wavetank::pilot
