// The endpoints of one cluster as one proxy sees them (istiod: pilot/pkg/xds/endpoint_builder.go, ep_filters.go,
// eds.go).
//
// In this order: which endpoints of the shards belong to the cluster (port, subset, cluster-local, node-local,
// discoverability, draining); which networks the proxy wants to see; which endpoints it reaches itself and which
// through the gateways of their network (split horizon), the latter only if mTLS is possible; then locality load
// balancing. Endpoints of one profile share all of these decisions, so they are made once per profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/destination_rule.h"
#include "core/gen/eds/eds_load_assignment.h"
#include "core/gen/view/traffic_policy.h"
#include "core/model/push_request.h"
#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {

class PushContext;
struct AssignmentExplanation;
struct EndpointShards;
struct Proxy;

class LoadAssignmentBuilder {
 public:
  // All must outlive the builder and what it builds.
  LoadAssignmentBuilder(std::string_view cluster_name, const Proxy& proxy, const PushContext& push);

  // Null: the proxy does not know the service; its assignment is empty and cannot be cached.
  const Service* service() const { return service_.get(); }

  // Everything that the result depends on but Dependencies() and what clears the whole cache; with or without the
  // proxy's locality.
  void AppendKey(std::string& key, bool locality = true) const;
  std::vector<uint64_t> Dependencies() const;  // for the cache
  // The key has something that only this proxy has: its labels or its node.
  bool DependsOnWorkload() const;
  // What AppendKey() says of the locality matters: some setting weighs endpoints by it.
  bool DependsOnLocality() const;
  // Of what the service's endpoints are now; grows with every change.
  uint64_t EndpointsVersion() const;

  // O(endpoints of the service). `looked_at`, if not null, grows by their number; `explanation`, if not null, is filled
  // with what was decided about each of them (core/gen/eds/endpoint_decision.h). `out`: emptied first, its memory is
  // reused.
  void Build(LoadAssignment& out, int64_t* looked_at, AssignmentExplanation* explanation = nullptr) const;
  LoadAssignment Build(int64_t* looked_at, AssignmentExplanation* explanation = nullptr) const {
    LoadAssignment out;
    Build(out, looked_at, explanation);
    return out;
  }

  // What a cluster of type DNS holds itself: endpoints and gateways by name, before locality load balancing. `out`
  // points into the endpoint index.
  void BuildInline(LoadAssignment& out) const;

 private:
  class Grouping;

  std::string_view cluster_name_;
  const Proxy& proxy_;
  const PushContext& push_;
  std::string_view subset_, hostname_;
  int port_ = 0;
  bool sni_dnat_ = false;  // the cluster of an AUTO_PASSTHROUGH gateway
  bool cluster_local_ = false;
  ServiceRef service_;
  ConsolidatedDestRuleRef rule_ref_;
  const config::DestinationRule* rule_ = nullptr;
  bool outlier_detection_ = false;
  bool fails_over_ = false;  // with outlier detection, or because the service says where it prefers to be reached
  const config::LocalityLbSetting* locality_lb_ = nullptr;  // what applies; null: none
};

// The name of the node that a proxy runs on: its metadata, else its label.
std::string_view NodeNameOf(const Proxy& proxy);

}  // namespace wavetank::pilot
