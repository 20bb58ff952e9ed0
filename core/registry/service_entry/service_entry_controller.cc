#include "core/registry/service_entry/service_entry_controller.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "core/base/assert.h"
#include "core/base/ip.h"
#include "core/profile/changes.h"
#include "core/registry/service_conversion.h"
#include "core/registry/service_entry/auto_allocate.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

Event ToEvent(config::ConfigEvent event) {
  switch (event) {
    case config::ConfigEvent::kAdd:
      return Event::kAdd;
    case config::ConfigEvent::kUpdate:
      return Event::kUpdate;
    case config::ConfigEvent::kDelete:
      break;
  }
  return Event::kDelete;
}

// The entry with the object's labels laid over those of the spec.
config::WorkloadEntry Merged(const config::TypedConfig<config::WorkloadEntry>& config) {
  config::WorkloadEntry out = config.spec;
  for (const auto& [name, value] : config.meta.labels) out.labels[name] = value;
  return out;
}

// istiod: model.WorkloadInstancesEqual; the name of the workload and its health do not count.
bool SameWorkload(const WorkloadInstance& a, const WorkloadInstance& b) {
  const auto weight = [](const WorkloadInstance& w) { return std::max(1u, w.endpoint.lb_weight); };
  const EndpointProfile &p = a.endpoint.p(), &q = b.endpoint.p();
  return a.endpoint.address == b.endpoint.address && p.network == q.network && p.tls_mode == q.tls_mode &&
         (&p == &q || p.labels == q.labels) && p.service_account == q.service_account && p.locality == q.locality &&
         weight(a) == weight(b) && a.ns == b.ns && a.name == b.name && a.kind == b.kind && a.port_map == b.port_map;
}

struct ServicesDiff {
  std::vector<ServiceRef> added, deleted, updated, unchanged;
};

// By host name; of several services of one host the last counts for the comparison, as in istiod's maps.
ServicesDiff Diff(const std::vector<ServiceRef>& old, const std::vector<ServiceRef>& now, bool resolution_counts) {
  std::map<std::string_view, const ServiceRef*> old_hosts, new_hosts;
  for (const ServiceRef& service : old) old_hosts[service->hostname] = &service;
  for (const ServiceRef& service : now) new_hosts[service->hostname] = &service;
  ServicesDiff out;
  for (const ServiceRef& service : old) {
    const auto it = new_hosts.find(service->hostname);
    if (it == new_hosts.end()) {
      out.deleted.push_back(service);
    } else {
      const bool same = SameService(*service, **it->second) &&
                        (!resolution_counts || service->resolution == (*it->second)->resolution);
      (same ? out.unchanged : out.updated).push_back(*it->second);
    }
  }
  for (const ServiceRef& service : now) {
    if (!old_hosts.contains(service->hostname)) out.added.push_back(service);
  }
  return out;
}

ConfigKey KeyOf(const Service& service) { return {ConfigKind::kServiceEntry, service.hostname, service.attributes.ns}; }

void AddKeys(const InstanceList& instances, std::set<HostKey>& keys) {
  for (const InstanceRef& instance : instances) keys.insert(HostKeyOf(*instance->service));
}

}  // namespace

ServiceEntryController::ServiceEntryController(config::ConfigStore& store, XdsUpdater& updater, Options options)
    : updater_(updater),
      options_(std::move(options)),
      shard_{options_.cluster, Provider::kExternal},
      converter_{options_.cluster,
                 options_.trust_domain,
                 options_.network,
                 options_.profile.Has(Change::kEntryEndpointsNamed),
                 options_.profile.Has(Change::kLocalityLabelOfEntries),
                 options_.profile.Has(Change::kWorkloadNamesOfEntries),
                 options_.profile.Has(Change::kEntriesWithoutAddress)},
      derived_(options_.profile.Has(Change::kEntriesDerived)) {
  store.AddHandler(config::Kind::kWorkloadEntry,
                   [this](config::ConfigEvent event, const config::AnyConfigRef* old, const config::AnyConfigRef& now) {
                     OnWorkloadEntry(old == nullptr ? nullptr : &std::get<config::WorkloadEntryRef>(*old),
                                     std::get<config::WorkloadEntryRef>(now), ToEvent(event));
                   });
  if (options_.workload_entries_only) return;
  store.AddHandler(config::Kind::kServiceEntry,
                   [this](config::ConfigEvent event, const config::AnyConfigRef*, const config::AnyConfigRef& now) {
                     const auto& entry = std::get<config::ServiceEntryRef>(now);
                     // Older releases cannot read the word, and go on with what was there before.
                     if (event != config::ConfigEvent::kDelete &&
                         entry->spec.resolution == config::ServiceEntry::Resolution::kDynamicDns &&
                         !options_.profile.Has(Change::kDynamicDns)) {
                       return;
                     }
                     OnServiceEntry(entry, ToEvent(event));
                   });
}

// --- Services ---

namespace {

// istiod: pilot/pkg/networking/serviceentry, shouldV2AutoAllocateIPFromPieces; of all but the label its services tell.
bool RefusesAddresses(const config::ConfigMeta& meta) {
  const auto label = meta.labels.find("networking.istio.io/enable-autoallocate-ip");
  return label != meta.labels.end() && absl::EqualsIgnoreCase(label->second, "false");
}

}  // namespace

// istiod: pilot/pkg/controllers/ipallocate; what it writes to the status of a ServiceEntry it reads back from there. An
// address is never given twice, not even when its host is gone (reconcileServiceEntry frees none).
void ServiceEntryController::KeepAddresses(const EntryName& entry, const std::vector<ServiceRef>& services) {
  if (!options_.profile.Has(Change::kAddressesByController)) return;
  ReadKeptAddresses();
  auto& own = addresses_[entry];
  const bool had_some = !own.empty();
  std::map<std::string, uint32_t, std::less<>> kept;
  for (const ServiceRef& service : services) {
    if (!NeedsAutoAllocation(*service)) continue;
    if (const auto known = own.find(service->hostname); known != own.end()) kept.insert(own.extract(known));
  }
  for (const ServiceRef& service : services) {
    // Nor is one that somebody has written down (checkInSpecAddresses).
    const absl::StatusOr<IpAddress> fixed = IpAddress::Parse(service->default_address);
    const uint64_t range = IpAddress::V4(240, 240, 0, 0).low();
    if (fixed.ok() && fixed->is_v4() && (fixed->low() & ~uint64_t{0xffff}) == range) {
      addresses_used_.insert(static_cast<uint32_t>(fixed->low() & 0xffff));
    }
  }
  const auto now = entries_.find(entry);
  const bool refused = now != entries_.end() && RefusesAddresses(now->second->meta);
  if (refused) kept.clear();  // what it had is taken out of its status (clearStaleAddresses)
  for (const ServiceRef& service : services) {
    if (refused || !NeedsAutoAllocation(*service) || kept.contains(service->hostname)) continue;
    uint32_t free = 1;
    for (const uint32_t used : addresses_used_) free += used == free ? 1 : 0;
    constexpr uint32_t kMost = 0xffff;  // of 240.240.0.0/16
    if (free > kMost) continue;
    const bool fresh = addresses_used_.insert(free).second;
    WAVETANK_ASSERT(fresh, free, service->hostname);  // no address is given twice
    kept.emplace(service->hostname, free);
  }
  if (options_.addresses != nullptr) {
    AllocatedAddresses all;  // in the order of its hosts
    for (const ServiceRef& service : services) {
      const auto number = kept.find(service->hostname);
      if (number != kept.end()) all.push_back({service->hostname, number->second});
    }
    if (had_some || !all.empty()) options_.addresses->Keep(entry, all);
  }
  if (kept.empty()) {
    addresses_.erase(entry);
  } else {
    own = std::move(kept);
  }
}

// istiod: populateControllerDatastructures, before the first is given.
void ServiceEntryController::ReadKeptAddresses() {
  if (std::exchange(kept_read_, true) || options_.addresses == nullptr) return;
  for (const auto& [entry, addresses] : options_.addresses->Kept()) {
    for (const AllocatedAddress& address : addresses) {
      // Of two that have the same, the second is given another one (resolveConflict).
      if (addresses_used_.insert(address.number).second) addresses_[entry].emplace(address.host, address.number);
    }
  }
}

const ServiceEntryController::Published& ServiceEntryController::Publish() const {
  if (published_) return *published_;
  std::vector<ServiceRef*> all;
  for (auto& [entry, services] : services_) {
    for (ServiceRef& service : services) all.push_back(&service);
  }
  const bool name_first = options_.profile.Has(Change::kNameBeforeNamespace);
  std::stable_sort(all.begin(), all.end(), [&](const ServiceRef* a, const ServiceRef* b) {
    const Service &x = **a, &y = **b;
    if (x.creation_unix_seconds != y.creation_unix_seconds) return x.creation_unix_seconds < y.creation_unix_seconds;
    if (name_first) return std::tie(x.attributes.name, x.attributes.ns) < std::tie(y.attributes.name, y.attributes.ns);
    return x.attributes.name + "." + x.attributes.ns < y.attributes.name + "." + y.attributes.ns;
  });
  Published& out = published_.emplace();
  for (ServiceRef* slot : all) out.services.push_back(*slot);
  if (options_.profile.Has(Change::kAddressesByController)) {
    size_t i = 0;
    std::map<const Service*, const EntryName*> entry_of;
    for (const auto& [entry, services] : services_) {
      for (const ServiceRef& service : services) entry_of.emplace(service.get(), &entry);
    }
    for (ServiceRef* slot : all) {
      const auto of_entry = addresses_.find(*entry_of.at(slot->get()));
      ServiceRef& service = out.services[i++];
      if (of_entry == addresses_.end()) continue;
      const auto number = of_entry->second.find(service->hostname);
      if (number == of_entry->second.end()) continue;
      const std::string address = fmt::format("240.240.{}.{}", number->second >> 8, number->second & 0xff);
      if (service->auto_allocated_ipv4 == address) continue;
      auto copy = std::make_shared<Service>(*service);
      copy->auto_allocated_ipv4 = address;
      *slot = service = std::move(copy);
    }
    allocate_needed_ = false;
  }
  if (allocate_needed_) {
    allocate_needed_ = false;
    const std::vector<std::string> addresses = AutoAllocateIps(out.services);
    WAVETANK_ASSERT(addresses.size() == all.size(), addresses.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (addresses[i].empty() || addresses[i] == out.services[i]->auto_allocated_ipv4) continue;
      auto copy = std::make_shared<Service>(*out.services[i]);
      copy->auto_allocated_ipv4 = addresses[i];
      *all[i] = out.services[i] = std::move(copy);
    }
  }
  for (const ServiceRef& service : out.services) out.by_host.emplace(service->hostname, service);
  return out;
}

std::vector<ServiceRef> ServiceEntryController::Services() const { return Publish().services; }

ServiceRef ServiceEntryController::GetService(std::string_view hostname) const {
  const Published& published = Publish();
  const auto it = published.by_host.find(hostname);
  return it == published.by_host.end() ? nullptr : it->second;
}

const std::vector<ServiceRef>& ServiceEntryController::ServicesOf(const EntryName& entry) const {
  static const std::vector<ServiceRef> kNone;
  const auto it = services_.find(entry);
  return it == services_.end() ? kNone : it->second;
}

// --- Instances ---

std::vector<ServiceInstance> ServiceEntryController::InstancesByPort(const Service& service, int port) const {
  std::vector<ServiceInstance> out;
  const HostKey key = HostKeyOf(service);
  for (const InstanceRef& instance : derived_ ? derived_instances_.ByService(key) : instances_.ByService(key)) {
    if (port == 0 || port == instance->service_port.port) out.push_back(*instance);
  }
  return out;
}

// Only of the proxy's own namespace: others could else put services in front of workloads that are not theirs.
std::vector<ServiceInstance> ServiceEntryController::GetProxyServiceInstances(const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  for (const std::string& ip : proxy.ip_addresses) {
    for (const InstanceRef& instance : derived_ ? derived_instances_.ByIp(ip) : instances_.ByIp(ip)) {
      if (proxy.metadata.ns.empty() || instance->service->attributes.ns == proxy.metadata.ns) out.push_back(*instance);
    }
  }
  return out;
}

std::optional<Labels> ServiceEntryController::GetProxyWorkloadLabels(const Proxy& proxy) const {
  for (const std::string& ip : proxy.ip_addresses) {
    for (const InstanceRef& instance : derived_ ? derived_instances_.ByIp(ip) : instances_.ByIp(ip)) {
      if (!proxy.metadata.ns.empty() && instance->service->attributes.ns != proxy.metadata.ns) continue;
      // Go's nil map of an instance without labels is an answer "not known" to the aggregate.
      if (instance->endpoint.p().labels.empty()) return std::nullopt;
      return instance->endpoint.p().labels;
    }
  }
  return std::nullopt;
}

InstancesBySource ServiceEntryController::BuildInstances(const config::TypedConfig<config::ServiceEntry>& entry,
                                                         const std::vector<ServiceRef>& services) const {
  InstancesBySource out;
  if (!entry.spec.workload_selector) {
    out[{InstanceSource::Kind::kServiceEntry, entry.meta.name, entry.meta.ns}] =
        converter_.InstancesOf(entry, services);
    return out;
  }
  for (const WorkloadRef& one : workloads_.In(entry.meta.ns)) {
    const WorkloadInstance& workload = *one;
    if (!SelectorMatches(*entry.spec.workload_selector, workload.endpoint.p().labels)) continue;
    if (workload.dns_service_entry_only && !IsDns(entry.spec)) continue;
    const auto kind = workload.kind == WorkloadInstance::Kind::kPod ? InstanceSource::Kind::kPod
                                                                    : InstanceSource::Kind::kWorkloadEntry;
    out[{kind, workload.name, workload.ns}] = InstancesOnWorkload(workload, services, entry.spec);
  }
  return out;
}

void ServiceEntryController::SendEndpoints(const HostKeys& keys, bool push) {
  std::map<HostKey, EndpointList> endpoints;
  for (const HostKey& key : keys) {
    for (const InstanceRef& instance : instances_.ByService(key)) endpoints[key].push_back(instance->endpoint);
  }
  if (endpoints.empty()) {
    for (const HostKey& key : keys) endpoints[key] = {};
  }
  for (auto& [key, list] : endpoints) {
    if (push) {
      updater_.EdsUpdate(shard_, key.hostname, key.ns, std::move(list));
    } else {
      updater_.EdsCacheUpdate(shard_, key.hostname, key.ns, std::move(list));
    }
  }
}

void ServiceEntryController::FullPush(std::set<ConfigKey> configs, TriggerReason reason) {
  updater_.ConfigUpdate({.full = true, .configs_updated = std::move(configs), .reasons = Reason(reason)});
}

// --- ServiceEntries ---

void ServiceEntryController::OnNamespaceAnnotations(const std::string& ns) {
  std::vector<config::ServiceEntryRef> of_namespace;
  for (auto it = entries_.lower_bound({ns, ""}); it != entries_.end() && it->first.ns == ns; ++it) {
    of_namespace.push_back(it->second);
  }
  for (const config::ServiceEntryRef& entry : of_namespace) OnServiceEntry(entry, Event::kUpdate);
}

void ServiceEntryController::OnServiceEntry(const config::ServiceEntryRef& entry, Event event) {
  const EntryName name{entry->meta.ns, entry->meta.name};
  const std::vector<ServiceRef> services =
      ConvertServiceEntry(*entry, options_.profile,
                          options_.namespace_annotations ? options_.namespace_annotations(entry->meta.ns) : Labels());
  ServicesDiff diff;
  if (event == Event::kUpdate) {
    diff = Diff(ServicesOf(name), services, options_.profile.Has(Change::kResolutionCounts));
  } else {
    (event == Event::kDelete ? diff.deleted : diff.added) = services;
  }
  if (event == Event::kDelete) {
    services_.erase(name);
    entries_.erase(name);
    KeepAddresses(name, {});
  } else {
    services_[name] = services;
    entries_[name] = entry;
    allocate_needed_ = true;
    KeepAddresses(name, services);
  }
  published_.reset();
  if (derived_) return Derive(name);

  InstancesBySource by_source = BuildInstances(*entry, services);
  HostKeys keys;
  for (const auto& [source, instances] : by_source) AddKeys(instances, keys);
  for (const auto& [source, old] : InstancesBySource(instances_.OfServiceEntry(name))) instances_.Delete(source, old);
  if (event == Event::kDelete) {
    instances_.DeleteServiceEntry(name);
  } else {
    for (const auto& [source, instances] : by_source) instances_.Add(source, instances);
    instances_.SetServiceEntry(name, std::move(by_source));
  }

  std::set<ConfigKey> configs;
  const auto service_update = [&](const Service& service, Event what) {
    updater_.SvcUpdate(shard_, service.hostname, service.attributes.ns, what);
  };
  for (const ServiceRef& service : diff.added) {
    service_update(*service, Event::kAdd);
    configs.insert(KeyOf(*service));
  }
  for (const ServiceRef& service : diff.updated) {
    service_update(*service, Event::kUpdate);
    configs.insert(KeyOf(*service));
  }
  for (const ServiceRef& service : diff.deleted) {
    // Another ServiceEntry of the namespace may declare the same host: its endpoints are then sent again.
    if (instances_.HasInstances(HostKeyOf(*service))) {
      diff.updated.push_back(service);
    } else {
      service_update(*service, Event::kDelete);
    }
    configs.insert(KeyOf(*service));
  }
  // Endpoints with host names are part of clusters, so that only a full push brings them.
  if (IsDns(entry->spec)) {
    for (const ServiceRef& service : diff.unchanged) configs.insert(KeyOf(*service));
  }
  if (configs.empty()) return SendEndpoints(keys, true);

  keys.clear();
  for (const auto* list : {&diff.added, &diff.updated, &diff.unchanged}) {
    for (const ServiceRef& service : *list) {
      const bool dns = service->resolution == Resolution::kDnsLb || service->resolution == Resolution::kDnsRoundRobinLb;
      if (!dns || options_.profile.Has(Change::kDnsEndpointsInShards)) {
        keys.insert({service->hostname, entry->meta.ns});
      }
    }
  }
  SendEndpoints(keys, false);
  FullPush(std::move(configs), TriggerReason::kService);
}

std::map<ServiceEntryController::EntryName, config::ServiceEntryRef> ServiceEntryController::SelectingEntries(
    std::string_view ns) const {
  std::map<EntryName, config::ServiceEntryRef> out;
  for (auto it = entries_.lower_bound({std::string(ns), ""}); it != entries_.end() && it->first.ns == ns; ++it) {
    if (it->second->spec.workload_selector) out.insert(*it);
  }
  return out;
}

// --- WorkloadEntries ---

void ServiceEntryController::OnWorkloadEntry(const config::WorkloadEntryRef* old, const config::WorkloadEntryRef& now,
                                             Event event) {
  const config::ConfigMeta& meta = now->meta;
  const config::WorkloadEntry entry = Merged(*now);
  const InstanceSource source{InstanceSource::Kind::kWorkloadEntry, meta.name, meta.ns};
  const auto made = std::make_shared<const WorkloadInstance>(converter_.Workload(meta, entry));
  if (derived_) return OnDerivedWorkloadEntry(made, event);
  const WorkloadInstance& workload = *made;
  if (!workload.dns_service_entry_only) {
    for (const WorkloadHandler& handler : workload_handlers_) handler(made, event);
  }

  const std::map<EntryName, config::ServiceEntryRef> selecting = SelectingEntries(meta.ns);
  std::optional<config::WorkloadEntry> before;
  if (old != nullptr) {
    before = Merged(**old);
    // Compared are the old labels with the object's own new ones only, so that labels of the spec count as a change
    // each time. istiod: workloadEntryHandler.
    if (before->labels == meta.labels) {
      before->labels = entry.labels;
    } else {
      updater_.ProxyUpdate(options_.cluster, entry.address);
    }
  }
  InstanceList updated, deleted;
  bool full = false;
  std::set<ConfigKey> configs;
  for (const auto& [name, service_entry] : selecting) {
    const config::ServiceEntry& spec = service_entry->spec;
    const bool selected = SelectorMatches(*spec.workload_selector, entry.labels);
    const bool was_selected = before && SelectorMatches(*spec.workload_selector, before->labels);
    if (!selected && !was_selected) continue;
    if (workload.dns_service_entry_only && !IsDns(spec)) continue;
    const std::vector<ServiceRef>& services = ServicesOf(name);
    InstanceList instances;
    converter_.Append(entry, services, spec, source, instances);
    if (selected && event != Event::kDelete) {
      instances_.SetServiceEntrySource(name, source, instances);
    } else {
      instances_.DeleteServiceEntrySource(name, source);
    }
    InstanceList& to = selected ? updated : deleted;
    to.insert(to.end(), instances.begin(), instances.end());
    if (IsDns(spec)) {
      full = true;
      for (const ServiceRef& service : services) configs.insert(KeyOf(*service));
    }
  }
  instances_.Delete(source, deleted);
  if (event == Event::kDelete) {
    workloads_.Erase(made->ns, made->name);
    instances_.Delete(source, updated);
  } else {
    workloads_.Put(made);
    instances_.Update(source, updated);
  }

  HostKeys keys;
  AddKeys(updated, keys);
  AddKeys(deleted, keys);
  if (!full) {
    // The sidecar of a new workload learns what it serves.
    if (event == Event::kAdd) updater_.ProxyUpdate(options_.cluster, entry.address);
    return SendEndpoints(keys, true);
  }
  SendEndpoints(keys, false);
  FullPush(std::move(configs), TriggerReason::kEndpoint);
}

// --- Pods, and WorkloadEntries of remote clusters ---

void ServiceEntryController::OnWorkloadInstance(const WorkloadRef& told, Event event) {
  const WorkloadInstance& workload = *told;
  if (derived_) {
    if (event == Event::kDelete) {
      workloads_.Erase(told->ns, told->name);
    } else {
      workloads_.Put(told);
    }
    return DeriveSelecting(told->ns);
  }
  // One kind for both, also where BuildInstances names a WorkloadEntry's instances otherwise: 1.18.2 then leaves them
  // behind when the WorkloadEntry of a remote cluster goes. istiod: WorkloadInstanceHandler.
  const InstanceSource source{InstanceSource::Kind::kPod, workload.name, workload.ns};
  WorkloadRef old = event == Event::kDelete ? workloads_.Erase(told->ns, told->name) : workloads_.Put(told);
  std::string old_address;  // that the workload has left
  bool labels_changed = false;
  if (event == Event::kDelete) {
    if (old == nullptr) return;
    old = nullptr;
  } else if (old != nullptr) {
    if (old == told) return;
    if (old->endpoint.address != workload.endpoint.address) old_address = old->endpoint.address;
    labels_changed =
        old->endpoint.profile != workload.endpoint.profile && old->endpoint.p().labels != workload.endpoint.p().labels;
    if (SameWorkload(*old, workload)) return;
  }

  const Labels& labels = workload.endpoint.p().labels;
  InstanceList instances, deleted;
  std::set<ConfigKey> configs;
  bool full = false;
  for (const auto& [name, entry] : SelectingEntries(workload.ns)) {
    const config::ServiceEntry& spec = entry->spec;
    const bool selected = SelectorMatches(*spec.workload_selector, labels);
    if (!selected) {
      if (!labels_changed || !SelectorMatches(*spec.workload_selector, old->endpoint.p().labels)) continue;
      const InstanceList gone = InstancesOnWorkload(*old, ServicesOf(name), spec);
      deleted.insert(deleted.end(), gone.begin(), gone.end());
      instances_.DeleteServiceEntrySource(name, source);
      continue;
    }
    const InstanceList current = InstancesOnWorkload(workload, ServicesOf(name), spec);
    instances.insert(instances.end(), current.begin(), current.end());
    if (!old_address.empty()) {
      for (const InstanceRef& instance : current) {
        auto at_old = std::make_shared<ServiceInstance>(*instance);
        at_old->endpoint.address = old_address;
        deleted.push_back(std::move(at_old));
      }
      instances_.DeleteServiceEntrySource(name, source);
    } else if (event == Event::kDelete) {
      instances_.DeleteServiceEntrySource(name, source);
    } else {
      instances_.SetServiceEntrySource(name, source, current);
    }
    if (IsDns(spec)) {
      full = true;
      for (const InstanceRef& instance : current) {
        configs.insert({ConfigKind::kServiceEntry, instance->service->hostname, entry->meta.ns});
      }
    }
  }
  instances_.Delete(source, deleted);
  if (event == Event::kDelete) {
    instances_.Delete(source, instances);
  } else {
    instances_.Update(source, instances);
  }
  HostKeys keys;
  AddKeys(instances, keys);
  AddKeys(deleted, keys);
  SendEndpoints(keys, true);
  if (full) FullPush(std::move(configs), TriggerReason::kEndpoint);
}

// --- What there is, and nothing else: istiod since 1.30 ---

std::vector<DerivedService> ServiceEntryController::DeriveServices(
    const config::TypedConfig<config::ServiceEntry>& entry, const std::vector<ServiceRef>& services) const {
  const config::ServiceEntry& spec = entry.spec;
  std::vector<WorkloadRef> selected;
  if (spec.workload_selector) {
    const Labels& selector = *spec.workload_selector;
    const auto take = [&](const WorkloadRef& workload) {
      const Labels& labels = workload->endpoint.p().labels;
      const bool matches = std::all_of(selector.begin(), selector.end(), [&](const auto& wanted) {
        const auto it = labels.find(wanted.first);
        return it != labels.end() && it->second == wanted.second;
      });
      if (matches && (!workload->dns_service_entry_only || IsDns(spec))) selected.push_back(workload);
    };
    for (const WorkloadRef& own : own_workloads_.In(entry.meta.ns)) take(own);
    for (const WorkloadRef& other : workloads_.In(entry.meta.ns)) {
      if (!own_workloads_.Contains(other->ns, other->name)) take(other);
    }
    std::stable_sort(selected.begin(), selected.end(), [](const WorkloadRef& a, const WorkloadRef& b) {
      return std::tie(a->kind, a->name) < std::tie(b->kind, b->name);
    });
  }
  std::vector<DerivedService> out;
  for (const ServiceRef& service : services) {
    DerivedService& derived = out.emplace_back();
    derived.service = service;
    for (const config::PortSpec& port : spec.ports) derived.target_ports.push_back(port.target_port);
    if (!spec.workload_selector) {
      derived.instances = converter_.InstancesOf(entry, {service});
      continue;
    }
    for (const WorkloadRef& workload : selected) {
      InstanceList on_workload = InstancesOnWorkload(*workload, {service}, spec);
      derived.instances.insert(derived.instances.end(), on_workload.begin(), on_workload.end());
    }
  }
  return out;
}

void ServiceEntryController::Derive(const EntryName& name) {
  const auto entry = entries_.find(name);
  const DerivedInstances::Changes changes = derived_instances_.Set(
      name, entry == entries_.end() ? std::vector<DerivedService>() : DeriveServices(*entry->second, ServicesOf(name)));
  using What = DerivedInstances::What;
  std::set<ConfigKey> full;
  for (const auto& [key, what] : changes.hosts) {
    const InstanceList& instances = derived_instances_.ByService(key);
    EndpointList endpoints;
    for (const InstanceRef& instance : instances) endpoints.push_back(instance->endpoint);
    if (what == What::kGone) updater_.SvcUpdate(shard_, key.hostname, key.ns, Event::kDelete);
    updater_.EdsUpdate(shard_, key.hostname, key.ns, std::move(endpoints));
    // Endpoints with host names are part of clusters.
    const bool by_dns = std::any_of(instances.begin(), instances.end(), [](const InstanceRef& instance) {
      return instance->service->resolution == Resolution::kDnsLb ||
             instance->service->resolution == Resolution::kDnsRoundRobinLb;
    });
    if (by_dns && what == What::kChanged) full.insert({ConfigKind::kServiceEntry, key.hostname, key.ns});
  }
  if (!full.empty()) FullPush(std::move(full), TriggerReason::kEndpoint);
  std::set<ConfigKey> configs;
  for (const auto& [service, what] : changes.services) {
    configs.insert(KeyOf(*service));
    if (what == What::kGone) continue;
    updater_.SvcUpdate(shard_, service->hostname, service->attributes.ns,
                       what == What::kAdded ? Event::kAdd : Event::kUpdate);
  }
  if (!configs.empty()) FullPush(std::move(configs), TriggerReason::kService);
}

void ServiceEntryController::DeriveSelecting(std::string_view ns) {
  for (const auto& [name, entry] : SelectingEntries(ns)) Derive(name);
}

void ServiceEntryController::OnDerivedWorkloadEntry(const WorkloadRef& workload, Event event) {
  const WorkloadRef old =
      event == Event::kDelete ? own_workloads_.Erase(workload->ns, workload->name) : own_workloads_.Put(workload);
  if (event == Event::kDelete && old == nullptr) return;
  const bool same = event != Event::kDelete && old != nullptr && SameWorkload(*old, *workload) &&
                    old->endpoint.p() == workload->endpoint.p();
  if (same) return;
  if (!workload->dns_service_entry_only) {
    for (const WorkloadHandler& handler : workload_handlers_) handler(workload, event);
  }
  // The sidecar of a workload learns what it serves.
  if (event != Event::kDelete && (old == nullptr || old->endpoint.p().labels != workload->endpoint.p().labels)) {
    updater_.ProxyUpdate(options_.cluster, workload->endpoint.address);
  }
  DeriveSelecting(workload->ns);
}

}  // namespace wavetank::pilot
