// Services and instances of ServiceEntries as functions of what there is (istiod since 1.30:
// serviceentry/controller.go, conversion.go): of every entry its services with their instances, of every host and
// namespace the instances of all entries that declare it, the oldest entry's first.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/kube/object.h"
#include "core/registry/service_entry/service_instance_store.h"

namespace wavetank::pilot {

struct DerivedService {
  ServiceRef service;
  std::vector<uint32_t> target_ports;  // of the entry's ports
  InstanceList instances;
};

class DerivedInstances {
 public:
  enum class What : uint8_t { kAdded, kChanged, kGone };
  struct Changes {
    std::vector<std::pair<ServiceRef, What>> services;  // whose change needs a full push
    std::map<HostKey, What> hosts;                      // whose instances are others now
  };

  // What the entry comes to now; nothing: it is gone.
  Changes Set(const kube::NamespacedName& entry, std::vector<DerivedService> now);

  const InstanceList& ByIp(std::string_view ip) const;
  const InstanceList& ByService(const HostKey& key) const;

 private:
  // Whether the instances of `key` changed, and how.
  void Merge(const HostKey& key, Changes& changes);

  std::map<kube::NamespacedName, std::vector<DerivedService>> entries_;
  std::map<HostKey, std::set<kube::NamespacedName>> declared_by_;
  std::map<HostKey, InstanceList> merged_;
  std::map<std::string, InstanceList, std::less<>> by_ip_;  // by host and namespace, then as merged
};

}  // namespace wavetank::pilot
