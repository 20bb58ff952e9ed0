#include "core/registry/aggregate.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "core/base/assert.h"
#include "core/model/proxy.h"

namespace wavetank::pilot {
namespace {

void MergeVips(Service& into, const Service& from, const ClusterId& cluster) {
  const auto it = from.cluster_vips.find(cluster);
  if (it == from.cluster_vips.end()) {
    into.cluster_vips.erase(cluster);
  } else {
    into.cluster_vips[cluster] = it->second;
  }
}

}  // namespace

void Aggregate::Merge(Service& into, const Service& from, const ClusterId& cluster) const {
  MergeVips(into, from, cluster);
  if (!merge_accounts_) return;
  std::vector<std::string>& accounts = into.service_accounts;
  for (const std::string& account : from.service_accounts) {
    if (std::find(accounts.begin(), accounts.end(), account) == accounts.end()) accounts.push_back(account);
  }
}

Registry* Aggregate::KubernetesOf(const ClusterId& cluster) const {
  const auto it = std::find_if(registries_.begin(), registries_.end(), [&](const Registry* r) {
    return r->provider() == Provider::kKubernetes && r->cluster() == cluster;
  });
  return it == registries_.end() ? nullptr : *it;
}

void Aggregate::Replace(const Registry& old, Registry& now) {
  const auto it = std::find(registries_.begin(), registries_.end(), &old);
  WAVETANK_ASSERT(it != registries_.end(), old.cluster().str());
  *it = &now;
}

void Aggregate::Remove(const Registry& registry) {
  const size_t gone = std::erase(registries_, &registry);
  WAVETANK_ASSERT(gone <= 1, gone);  // else its Services were told twice
}

bool Aggregate::HasSynced() const {
  return std::all_of(registries_.begin(), registries_.end(), [](const Registry* r) { return r->HasSynced(); });
}

std::vector<NetworkGateway> Aggregate::Gateways() const {
  std::vector<NetworkGateway> out;
  for (const Registry* registry : registries_) {
    for (NetworkGateway& gateway : registry->Gateways()) out.push_back(std::move(gateway));
  }
  return out;
}

std::vector<ServiceRef> Aggregate::Services() const {
  std::vector<ServiceRef> out;
  absl::flat_hash_map<std::string, size_t> index;
  std::vector<std::shared_ptr<Service>> merged;  // beside `out`: set where a copy was made
  for (const Registry* registry : registries_) {
    for (ServiceRef& service : registry->Services()) {
      if (registry->provider() != Provider::kKubernetes) {
        out.push_back(std::move(service));
        merged.emplace_back();
        continue;
      }
      const auto [it, fresh] = index.try_emplace(service->hostname, out.size());
      if (fresh) {
        out.push_back(std::move(service));
        merged.emplace_back();
        continue;
      }
      std::shared_ptr<Service>& copy = merged[it->second];
      if (copy == nullptr) out[it->second] = copy = std::make_shared<Service>(*out[it->second]);
      Merge(*copy, *service, registry->cluster());
    }
  }
  return out;
}

ServiceRef Aggregate::GetService(std::string_view hostname) const {
  std::shared_ptr<Service> out;
  ServiceRef first;
  for (const Registry* registry : registries_) {
    ServiceRef service = registry->GetService(hostname);
    if (service == nullptr) continue;
    if (registry->provider() != Provider::kKubernetes) return service;
    if (first == nullptr) {
      first = std::move(service);
      continue;
    }
    if (out == nullptr) out = std::make_shared<Service>(*first);
    Merge(*out, *service, registry->cluster());
  }
  return out != nullptr ? out : first;
}

std::vector<ServiceInstance> Aggregate::InstancesByPort(const Service& service, int port) const {
  std::vector<ServiceInstance> out;
  for (const Registry* registry : registries_) {
    for (ServiceInstance& instance : registry->InstancesByPort(service, port)) out.push_back(std::move(instance));
  }
  return out;
}

std::vector<ServiceInstance> Aggregate::GetProxyServiceInstances(const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  for (const Registry* registry : registries_) {
    // A Kubernetes registry knows proxies of its own cluster only.
    if (registry->provider() == Provider::kKubernetes && !proxy.cluster().empty() &&
        registry->cluster() != proxy.cluster()) {
      continue;
    }
    for (ServiceInstance& instance : registry->GetProxyServiceInstances(proxy)) out.push_back(std::move(instance));
  }
  return out;
}

std::optional<Labels> Aggregate::GetProxyWorkloadLabels(const Proxy& proxy) const {
  for (const Registry* registry : registries_) {
    if (!proxy.cluster().empty() && registry->cluster() != proxy.cluster()) continue;
    if (std::optional<Labels> labels = registry->GetProxyWorkloadLabels(proxy)) return labels;
  }
  return std::nullopt;
}

}  // namespace wavetank::pilot
