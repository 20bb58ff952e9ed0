#include "core/registry/service_entry/derived_instances.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace wavetank::pilot {
namespace {

bool Same(const InstanceList& a, const InstanceList& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const InstanceRef& x, const InstanceRef& y) {
    return x->service_port == y->service_port && x->endpoint == y->endpoint && SameService(*x->service, *y->service) &&
           x->service->resolution == y->service->resolution;
  });
}

const DerivedService* Find(const std::vector<DerivedService>& services, const Service& wanted) {
  const auto it = std::find_if(services.begin(), services.end(), [&](const DerivedService& candidate) {
    return candidate.service->hostname == wanted.hostname &&
           candidate.service->default_address == wanted.default_address;
  });
  return it == services.end() ? nullptr : &*it;
}

const InstanceList& None() {
  static const InstanceList* const none = new InstanceList();
  return *none;
}

}  // namespace

DerivedInstances::Changes DerivedInstances::Set(const kube::NamespacedName& entry, std::vector<DerivedService> now) {
  Changes out;
  const auto it = entries_.find(entry);
  const std::vector<DerivedService> before = it == entries_.end() ? std::vector<DerivedService>() : it->second;
  std::set<HostKey> keys;
  for (const DerivedService& old : before) {
    keys.insert(HostKeyOf(*old.service));
    if (Find(now, *old.service) == nullptr) out.services.emplace_back(old.service, What::kGone);
  }
  for (const DerivedService& derived : now) {
    keys.insert(HostKeyOf(*derived.service));
    const DerivedService* old = Find(before, *derived.service);
    if (old == nullptr) {
      out.services.emplace_back(derived.service, What::kAdded);
    } else if (!SameService(*old->service, *derived.service) ||
               old->service->resolution != derived.service->resolution || old->target_ports != derived.target_ports) {
      out.services.emplace_back(derived.service, What::kChanged);
    }
  }
  for (const DerivedService& old : before) declared_by_[HostKeyOf(*old.service)].erase(entry);
  for (const DerivedService& derived : now) declared_by_[HostKeyOf(*derived.service)].insert(entry);
  if (now.empty()) {
    entries_.erase(entry);
  } else {
    entries_[entry] = std::move(now);
  }
  for (const HostKey& key : keys) Merge(key, out);
  return out;
}

void DerivedInstances::Merge(const HostKey& key, Changes& changes) {
  struct Part {
    const kube::NamespacedName* entry;
    const DerivedService* derived;
  };
  std::vector<Part> parts;
  const auto declared = declared_by_.find(key);
  if (declared != declared_by_.end()) {
    for (const kube::NamespacedName& entry : declared->second) {
      for (const DerivedService& derived : entries_.at(entry)) {
        if (HostKeyOf(*derived.service) == key) parts.push_back({&entry, &derived});
      }
    }
    if (declared->second.empty()) declared_by_.erase(declared);
  }
  // istiod: sortServicesByCreationTime; host and namespace are one.
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.derived->service->creation_unix_seconds, a.entry->name) <
           std::tie(b.derived->service->creation_unix_seconds, b.entry->name);
  });
  InstanceList now;
  std::set<int> ports;
  for (const Part& part : parts) {
    for (const InstanceRef& instance : part.derived->instances) {
      // A logical DNS cluster takes one endpoint only: the first wins.
      const bool added = ports.insert(instance->service_port.port).second;
      if (!added && instance->service->resolution == Resolution::kDnsRoundRobinLb) continue;
      now.push_back(instance);
    }
  }
  const auto known = merged_.find(key);
  if (known != merged_.end() && !parts.empty() && Same(known->second, now)) return;
  changes.hosts[key] = parts.empty() ? What::kGone : known == merged_.end() ? What::kAdded : What::kChanged;
  if (known != merged_.end()) {
    for (const InstanceRef& instance : known->second) {
      const auto at = by_ip_.find(instance->endpoint.address);
      if (at == by_ip_.end()) continue;
      std::erase_if(at->second, [&](const InstanceRef& i) { return HostKeyOf(*i->service) == key; });
      if (at->second.empty()) by_ip_.erase(at);
    }
  }
  for (const InstanceRef& instance : now) {
    InstanceList& at = by_ip_[instance->endpoint.address];
    const auto place = std::upper_bound(
        at.begin(), at.end(), key, [](const HostKey& k, const InstanceRef& i) { return k < HostKeyOf(*i->service); });
    at.insert(place, instance);
  }
  if (parts.empty()) {
    if (known != merged_.end()) merged_.erase(known);
  } else {
    merged_[key] = std::move(now);
  }
}

const InstanceList& DerivedInstances::ByIp(std::string_view ip) const {
  const auto it = by_ip_.find(ip);
  return it == by_ip_.end() ? None() : it->second;
}

const InstanceList& DerivedInstances::ByService(const HostKey& key) const {
  const auto it = merged_.find(key);
  return it == merged_.end() ? None() : it->second;
}

}  // namespace wavetank::pilot
