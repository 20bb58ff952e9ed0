// Instances of ServiceEntry services, by address, by service and by the ServiceEntry they came through
// (istiod: pilot/pkg/serviceregistry/serviceentry/store.go).
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kube/object.h"
#include "core/model/endpoint.h"

namespace wavetank::pilot {

using InstanceRef = std::shared_ptr<const ServiceInstance>;
using InstanceList = std::vector<InstanceRef>;

// What an instance was made of: the endpoints of a ServiceEntry, a WorkloadEntry or a pod.
struct InstanceSource {
  enum class Kind : uint8_t { kServiceEntry, kWorkloadEntry, kPod };
  Kind kind = Kind::kServiceEntry;
  std::string name, ns;
  friend auto operator<=>(const InstanceSource&, const InstanceSource&) = default;
};

// A service of a namespace: two ServiceEntries may declare the same one.
struct HostKey {
  std::string hostname, ns;
  friend auto operator<=>(const HostKey&, const HostKey&) = default;
};
HostKey HostKeyOf(const Service& service);

using InstancesBySource = std::map<InstanceSource, InstanceList>;

class ServiceInstanceStore {
 public:
  const InstanceList& ByIp(std::string_view ip) const;
  // Of all sources, in their order (istiod's is that of a Go map).
  InstanceList ByService(const HostKey& key) const;
  bool HasInstances(const HostKey& key) const;
  const InstancesBySource& OfServiceEntry(const kube::NamespacedName& entry) const;

  void Add(const InstanceSource& source, const InstanceList& instances);
  // Forgets whatever `source` gave to the services of `instances`, and every instance at their addresses, those of
  // other services included, as 1.18.2 does.
  void Delete(const InstanceSource& source, const InstanceList& instances);
  void Update(const InstanceSource& source, const InstanceList& instances);

  void SetServiceEntry(const kube::NamespacedName& entry, InstancesBySource instances);
  void SetServiceEntrySource(const kube::NamespacedName& entry, const InstanceSource& source, InstanceList instances);
  void DeleteServiceEntrySource(const kube::NamespacedName& entry, const InstanceSource& source);
  void DeleteServiceEntry(const kube::NamespacedName& entry) { by_entry_.erase(entry); }

 private:
  std::map<std::string, InstanceList, std::less<>> by_ip_;
  std::map<HostKey, InstancesBySource> by_service_;
  std::map<kube::NamespacedName, InstancesBySource> by_entry_;
  std::set<std::pair<std::string, int>> hosts_and_ports_;  // that have an instance
};

}  // namespace wavetank::pilot
