// All registries as one (istiod: pilot/pkg/serviceregistry/aggregate/controller.go).
#pragma once

#include <vector>

#include "core/model/environment.h"
#include "core/registry/registry.h"

namespace wavetank::pilot {

class Aggregate final : public ServiceDiscovery {
 public:
  // Registries are asked in order of addition; the config cluster's comes first.
  void Add(Registry& registry) { registries_.push_back(&registry); }
  // Whatever Kubernetes registry there is of the cluster; null if none.
  Registry* KubernetesOf(const ClusterId& cluster) const;
  void Remove(const Registry& registry);
  // `now` is asked where `old` was.
  void Replace(const Registry& old, Registry& now);
  const std::vector<Registry*>& registries() const { return registries_; }
  bool HasSynced() const;
  // Of a service of several clusters the identities of all, for trust domains may differ. Off at first: the first's.
  void MergeServiceAccounts(bool so) { merge_accounts_ = so; }
  std::vector<NetworkGateway> Gateways() const;

  // One service per host name: the first registry's definition with the VIPs of all clusters. O(services x registries).
  std::vector<ServiceRef> Services() const override;
  ServiceRef GetService(std::string_view hostname) const override;
  std::vector<ServiceInstance> InstancesByPort(const Service& service, int port) const override;
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy& proxy) const override;
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy& proxy) const override;

 private:
  void Merge(Service& into, const Service& from, const ClusterId& cluster) const;

  std::vector<Registry*> registries_;
  bool merge_accounts_ = false;
};

}  // namespace wavetank::pilot
