// A registry of services by hand.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/model/environment.h"
#include "core/model/proxy.h"

namespace wavetank::pilot {

class FakeDiscovery final : public ServiceDiscovery {
 public:
  std::vector<ServiceRef> Services() const override { return services; }
  ServiceRef GetService(std::string_view hostname) const override {
    for (const ServiceRef& s : services) {
      if (s->hostname == hostname) return s;
    }
    return nullptr;
  }
  std::vector<ServiceInstance> InstancesByPort(const Service& service, int port) const override {
    std::vector<ServiceInstance> out;
    for (const ServiceInstance& i : instances) {
      if (i.service->hostname == service.hostname && i.service_port.port == port) out.push_back(i);
    }
    return out;
  }
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy&) const override { return proxy_instances; }
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy&) const override { return workload_labels; }

  std::vector<ServiceRef> services;
  std::vector<ServiceInstance> instances;
  std::vector<ServiceInstance> proxy_instances;
  std::optional<Labels> workload_labels;
};

}  // namespace wavetank::pilot
