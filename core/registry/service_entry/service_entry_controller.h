// The registry of ServiceEntries and WorkloadEntries (istiod: pilot/pkg/serviceregistry/serviceentry/controller.go).
//
// Selection goes both ways: WorkloadEntries are told to Kubernetes registries, whose Services may select them
// (AddWorkloadHandler), and pods of Kubernetes registries are told to this one, whose ServiceEntries may select them
// (OnWorkloadInstance). In a remote cluster only WorkloadEntries are read; such a registry has no services of its own
// and passes what it finds on.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/store/store.h"
#include "core/model/proxy.h"
#include "core/model/xds_updater.h"
#include "core/profile/profile.h"
#include "core/registry/registry.h"
#include "core/registry/service_entry/address_keeper.h"
#include "core/registry/service_entry/derived_instances.h"
#include "core/registry/service_entry/service_entry_conversion.h"

namespace wavetank::pilot {

class ServiceEntryController final : public Registry {
 public:
  struct Options {
    ClusterId cluster;
    bool workload_entries_only = false;  // of a remote cluster
    std::function<std::string()> trust_domain;
    // The network of WorkloadEntries that name none; null in the config cluster.
    std::function<NetworkId(std::string_view ip, const Labels& labels)> network;
    Profile profile;
    // Annotations of a namespace of the config cluster; null: none are known.
    std::function<Labels(const std::string& ns)> namespace_annotations = {};
    AddressKeeper* addresses = nullptr;  // null: nothing outlives it
  };

  // Follows `store` from now on; store and updater must outlive it.
  ServiceEntryController(config::ConfigStore& store, XdsUpdater& updater, Options options);

  // Registry
  Provider provider() const override { return Provider::kExternal; }
  const ClusterId& cluster() const override { return options_.cluster; }
  bool HasSynced() const override { return true; }
  // By creation time, then name; addresses are allocated to those that need one.
  std::vector<ServiceRef> Services() const override;
  ServiceRef GetService(std::string_view hostname) const override;
  std::vector<ServiceInstance> InstancesByPort(const Service& service, int port) const override;
  std::vector<ServiceInstance> GetProxyServiceInstances(const Proxy& proxy) const override;
  std::optional<Labels> GetProxyWorkloadLabels(const Proxy& proxy) const override;
  std::vector<NetworkGateway> Gateways() const override { return {}; }

  // Annotations of a namespace have changed: its ServiceEntries may take something from them.
  void OnNamespaceAnnotations(const std::string& ns);

  // WorkloadEntries with an IP address are told to `handler`.
  using WorkloadHandler = std::function<void(const WorkloadRef&, Event)>;
  void AddWorkloadHandler(WorkloadHandler handler) { workload_handlers_.push_back(std::move(handler)); }
  // A pod, or a WorkloadEntry of a remote cluster, came, changed or went.
  void OnWorkloadInstance(const WorkloadRef& workload, Event event);

 private:
  using EntryName = kube::NamespacedName;
  using HostKeys = std::set<HostKey>;

  void OnServiceEntry(const config::ServiceEntryRef& entry, Event event);
  void OnWorkloadEntry(const config::WorkloadEntryRef* old, const config::WorkloadEntryRef& now, Event event);

  // The ServiceEntries of a namespace that select by labels.
  std::map<EntryName, config::ServiceEntryRef> SelectingEntries(std::string_view ns) const;
  const std::vector<ServiceRef>& ServicesOf(const EntryName& entry) const;
  InstancesBySource BuildInstances(const config::TypedConfig<config::ServiceEntry>& entry,
                                   const std::vector<ServiceRef>& services) const;

  // Sends the present endpoints of `keys`. If none of them has any, all are emptied; if some have, the others are left
  // as they were (istiod: doEdsUpdate).
  void SendEndpoints(const HostKeys& keys, bool push);
  void FullPush(std::set<ConfigKey> configs, TriggerReason reason);

  // With Change::kEntriesDerived: the entry anew, and whoever selects workloads of the namespace.
  void Derive(const EntryName& entry);
  void DeriveSelecting(std::string_view ns);
  std::vector<DerivedService> DeriveServices(const config::TypedConfig<config::ServiceEntry>& entry,
                                             const std::vector<ServiceRef>& services) const;
  void OnDerivedWorkloadEntry(const WorkloadRef& workload, Event event);

  struct Published {
    std::vector<ServiceRef> services;
    std::map<std::string, ServiceRef, std::less<>> by_host;
  };
  const Published& Publish() const;
  // With Change::kAddressesByController: each host of the entry has the first free address when it is first seen.
  void KeepAddresses(const EntryName& entry, const std::vector<ServiceRef>& services);
  void ReadKeptAddresses();

  XdsUpdater& updater_;
  const Options options_;
  const ShardKey shard_;
  const EndpointConverter converter_;

  std::map<EntryName, config::ServiceEntryRef> entries_;
  // Allocated addresses are part of it, hence mutable: Services() allocates when something has changed.
  mutable std::map<EntryName, std::vector<ServiceRef>> services_;
  mutable bool allocate_needed_ = false;
  mutable std::optional<Published> published_;
  std::map<EntryName, std::map<std::string, uint32_t, std::less<>>> addresses_;  // by host, from 240.240.0.0 on
  std::set<uint32_t> addresses_used_;
  bool kept_read_ = false;
  ServiceInstanceStore instances_;
  WorkloadSet workloads_;  // pods and WorkloadEntries, one name space
  const bool derived_;
  DerivedInstances derived_instances_;
  WorkloadSet own_workloads_;  // WorkloadEntries of the registry itself, which hide others of their names
  std::vector<WorkloadHandler> workload_handlers_;
};

}  // namespace wavetank::pilot
