#include <map>
#include <set>

#include "core/envoyapi/any.h"
#include "core/gen/cds/cluster_policy.h"
#include "core/gen/grpc/proxyless.h"
#include "core/gen/grpc/proxyless_tls.h"
#include "core/gen/view/traffic_policy.h"
#include "core/model/labels.h"
#include "core/push/push_context.h"
#include "core/push/sidecar_scope.h"
#include "envoy/config/cluster/v3/cluster.pb.h"

namespace wavetank::pilot {
namespace {

using Cluster = ::envoy::config::cluster::v3::Cluster;

Cluster EdsCluster(const std::string& name) {
  Cluster out;
  out.set_name(name);
  out.set_type(Cluster::EDS);
  out.mutable_eds_cluster_config()->set_service_name(name);
  out.mutable_eds_cluster_config()->mutable_eds_config()->mutable_ads();
  return out;
}

Resource Encode(const Cluster& cluster) { return {cluster.name(), Serialize(cluster)}; }

// Clusters of one port of a service.
class PortClusters {
 public:
  PortClusters(const Proxy& proxy, const PushContext& push, const SubsetKey& key)
      : push_(push), key_(key), service_(push.ServiceForHostname(proxy, key.hostname)) {
    if (service_ == nullptr || service_->FindPort(key.port) == nullptr || proxy.sidecar_scope == nullptr) return;
    known_ = true;
    rule_ = proxy.sidecar_scope->DestinationRule(TrafficDirection::kOutbound, proxy, service_->hostname);
  }

  void Build(const std::string& default_name, const std::set<std::string>& wanted, std::vector<Resource>& out) const {
    const config::DestinationRule* rule = rule_ == nullptr || rule_->rule == nullptr ? nullptr : &rule_->rule->spec;
    if (wanted.contains(default_name)) {
      // Also of a service that is not there (a real istiod 1.18.2 dies of that, a nil pointer).
      Cluster cluster = EdsCluster(default_name);
      if (service_ != nullptr && HasPersistentSessions()) AllowDrainingHosts(cluster);
      if (known_) Apply(PolicyFor(rule, "", key_.port), cluster);
      out.push_back(Encode(cluster));
    }
    if (!known_ || rule == nullptr) return;
    for (const config::Subset& subset : rule->subsets) {
      const std::string name =
          BuildSubsetKey(TrafficDirection::kOutbound, subset.name, std::string(key_.hostname), key_.port);
      if (!wanted.contains(name)) continue;
      Cluster cluster = EdsCluster(name);
      Apply(PolicyFor(rule, subset.name, key_.port), cluster);
      out.push_back(Encode(cluster));
    }
  }

 private:
  bool HasPersistentSessions() const {
    const auto label = service_->attributes.labels.find(kPersistentSessionLabel);
    return label != service_->attributes.labels.end() && !label->second.empty();
  }

  static void AllowDrainingHosts(Cluster& cluster) {
    auto* statuses = cluster.mutable_common_lb_config()->mutable_override_host_status();
    for (const auto status : {::envoy::config::core::v3::HEALTHY, ::envoy::config::core::v3::DRAINING,
                              ::envoy::config::core::v3::UNKNOWN, ::envoy::config::core::v3::DEGRADED}) {
      statuses->add_statuses(status);
    }
  }

  // Of load balancers gRPC has round robin, its default, and hashing. TLS is never automatic: an application may not
  // have asked for xDS credentials, and then would not know what is said here. istiod: applyTLS.
  void Apply(const EffectivePolicy& policy, Cluster& cluster) const {
    if (policy.tls != nullptr && policy.tls->mode == config::ClientTlsSettings::Mode::kIstioMutual) {
      *cluster.mutable_transport_socket() =
          ProxylessUpstreamTls(push_.ServiceAccounts(std::string(key_.hostname), service_->attributes.ns, key_.port));
    }
    if (policy.load_balancer != nullptr && policy.load_balancer->consistent_hash) {
      ApplyConsistentHash(*policy.load_balancer->consistent_hash, cluster);
    }
  }

  const PushContext& push_;
  const SubsetKey key_;
  const ServiceRef service_;
  bool known_ = false;  // service and port
  ConsolidatedDestRuleRef rule_;
};

}  // namespace

std::vector<Resource> BuildProxylessClusters(const Proxy& proxy, const PushContext& push,
                                             const std::vector<std::string>& names) {
  // By the default cluster, of which a client may ask for some subsets only. istiod goes through them in no certain
  // order.
  std::map<std::string, std::set<std::string>> by_default;
  for (const std::string& name : names) {
    const auto key = ParseSubsetKey(name);
    if (!key || key->hostname.empty() || key->port == 0) continue;
    by_default[BuildSubsetKey(key->direction, "", std::string(key->hostname), key->port)].insert(name);
  }
  std::vector<Resource> out;
  for (const auto& [default_name, wanted] : by_default) {
    PortClusters(proxy, push, *ParseSubsetKey(default_name)).Build(default_name, wanted, out);
  }
  return out;
}

}  // namespace wavetank::pilot
