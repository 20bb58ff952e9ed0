// What the aggregate asks of each registry (istiod: pilot/pkg/serviceregistry/instance.go).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/model/endpoint.h"
#include "core/model/network_manager.h"

namespace wavetank::pilot {

struct Proxy;

class Registry {
 public:
  virtual ~Registry() = default;
  virtual Provider provider() const = 0;
  virtual const ClusterId& cluster() const = 0;
  virtual bool HasSynced() const = 0;
  virtual std::vector<ServiceRef> Services() const = 0;  // by host name
  virtual ServiceRef GetService(std::string_view hostname) const = 0;
  virtual std::vector<ServiceInstance> InstancesByPort(const Service& service, int port) const = 0;
  virtual std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy& proxy) const = 0;
  // nullopt: this registry does not know the workload.
  virtual std::optional<Labels> GetProxyWorkloadLabels(const Proxy& proxy) const = 0;
  virtual std::vector<NetworkGateway> Gateways() const = 0;
};

}  // namespace wavetank::pilot
