#include "core/registry/service_entry/service_instance_store.h"

#include "core/base/assert.h"

namespace wavetank::pilot {

HostKey HostKeyOf(const Service& service) { return {service.hostname, service.attributes.ns}; }

const InstanceList& ServiceInstanceStore::ByIp(std::string_view ip) const {
  static const InstanceList kNone;
  const auto it = by_ip_.find(ip);
  return it == by_ip_.end() ? kNone : it->second;
}

InstanceList ServiceInstanceStore::ByService(const HostKey& key) const {
  InstanceList out;
  const auto it = by_service_.find(key);
  if (it == by_service_.end()) return out;
  for (const auto& [source, instances] : it->second) out.insert(out.end(), instances.begin(), instances.end());
  return out;
}

bool ServiceInstanceStore::HasInstances(const HostKey& key) const {
  const auto it = by_service_.find(key);
  if (it == by_service_.end()) return false;
  for (const auto& [source, instances] : it->second) {
    if (!instances.empty()) return true;
  }
  return false;
}

const InstancesBySource& ServiceInstanceStore::OfServiceEntry(const kube::NamespacedName& entry) const {
  static const InstancesBySource kNone;
  const auto it = by_entry_.find(entry);
  return it == by_entry_.end() ? kNone : it->second;
}

void ServiceInstanceStore::Add(const InstanceSource& source, const InstanceList& instances) {
  for (const InstanceRef& instance : instances) {
    WAVETANK_ASSERT(instance != nullptr);
    WAVETANK_ASSERT(instance->service != nullptr, instance->endpoint.address);
    const std::pair<std::string, int> host_and_port{instance->service->hostname, instance->service_port.port};
    // A logical DNS cluster takes one endpoint only: the first wins.
    if (instance->service->resolution == Resolution::kDnsRoundRobinLb && hosts_and_ports_.contains(host_and_port)) {
      continue;
    }
    hosts_and_ports_.insert(host_and_port);
    by_service_[HostKeyOf(*instance->service)][source].push_back(instance);
    by_ip_[instance->endpoint.address].push_back(instance);
  }
}

void ServiceInstanceStore::Delete(const InstanceSource& source, const InstanceList& instances) {
  for (const InstanceRef& instance : instances) {
    hosts_and_ports_.erase({instance->service->hostname, instance->service_port.port});
    if (const auto it = by_service_.find(HostKeyOf(*instance->service)); it != by_service_.end()) {
      it->second.erase(source);
      if (it->second.empty()) by_service_.erase(it);
    }
    by_ip_.erase(instance->endpoint.address);
  }
}

void ServiceInstanceStore::Update(const InstanceSource& source, const InstanceList& instances) {
  Delete(source, instances);
  Add(source, instances);
}

void ServiceInstanceStore::SetServiceEntry(const kube::NamespacedName& entry, InstancesBySource instances) {
  by_entry_[entry] = std::move(instances);
}

void ServiceInstanceStore::SetServiceEntrySource(const kube::NamespacedName& entry, const InstanceSource& source,
                                                 InstanceList instances) {
  by_entry_[entry][source] = std::move(instances);
}

void ServiceInstanceStore::DeleteServiceEntrySource(const kube::NamespacedName& entry, const InstanceSource& source) {
  const auto it = by_entry_.find(entry);
  if (it != by_entry_.end()) it->second.erase(source);
}

}  // namespace wavetank::pilot
