// A registry of services by hand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
    const auto it = instances.find({service.hostname, port});
    return it == instances.end() ? std::vector<ServiceInstance>() : it->second;
  }
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy&) const override { return proxy_instances; }
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy&) const override { return workload_labels; }

  std::vector<ServiceRef> services;
  std::map<std::pair<std::string, int>, std::vector<ServiceInstance>> instances;
  std::vector<ServiceInstance> proxy_instances;
  std::optional<Labels> workload_labels;
};

}  // namespace wavetank::pilot
