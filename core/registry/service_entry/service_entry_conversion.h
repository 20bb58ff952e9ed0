// ServiceEntries and WorkloadEntries as services and instances of the mesh
// (istiod: pilot/pkg/serviceregistry/serviceentry/conversion.go).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/kinds/service_entry.h"
#include "core/profile/profile.h"
#include "core/registry/service_entry/service_instance_store.h"
#include "core/registry/workload_instance.h"

namespace wavetank::pilot {

// One service per host and address; hosts without address get 0.0.0.0. Addresses that are neither IP nor prefix are
// left out.
std::vector<ServiceRef> ConvertServiceEntry(const config::TypedConfig<config::ServiceEntry>& entry,
                                            const Profile& profile = {}, const Labels& namespace_annotations = {});

// How endpoints of ServiceEntries and WorkloadEntries come to their identity and network labels.
struct EndpointConverter {
  ClusterId cluster;
  std::function<std::string()> trust_domain;
  // The network of what names none; null: it has none.
  std::function<NetworkId(std::string_view ip, const Labels& labels)> network;
  // Endpoints written into a ServiceEntry are workloads of its namespace and name (Change::kEntryEndpointsNamed).
  bool names_endpoints = false;
  bool locality_by_label = false;  // Change::kLocalityLabelOfEntries
  bool names_by_group = false;     // Change::kWorkloadNamesOfEntries
  bool without_address = false;    // Change::kEntriesWithoutAddress

  // Instances of every service and port on one workload. `source` names the WorkloadEntry, empty for an endpoint
  // written into the ServiceEntry.
  void Append(const config::WorkloadEntry& workload, const std::vector<ServiceRef>& services,
              const config::ServiceEntry& entry, const InstanceSource& source, InstanceList& out) const;
  // Of a ServiceEntry without workloadSelector.
  InstanceList InstancesOf(const config::TypedConfig<config::ServiceEntry>& entry,
                           const std::vector<ServiceRef>& services) const;
  // The same workload as Services of Kubernetes select it: without port.
  WorkloadInstance Workload(const config::ConfigMeta& meta, const config::WorkloadEntry& workload) const;

 private:
  EndpointProfile Profile(const config::WorkloadEntry& workload, std::string_view account_namespace) const;
};

// Instances of every service and port on a pod or a WorkloadEntry of another registry.
InstanceList InstancesOnWorkload(const WorkloadInstance& workload, const std::vector<ServiceRef>& services,
                                 const config::ServiceEntry& entry);

inline bool IsDns(const config::ServiceEntry& entry) {
  return entry.resolution == config::ServiceEntry::Resolution::kDns ||
         entry.resolution == config::ServiceEntry::Resolution::kDnsRoundRobin;
}

}  // namespace wavetank::pilot
