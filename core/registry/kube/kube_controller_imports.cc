// Exported and imported Services: endpoints that are made anew, and Services of the clusterset.
#include <algorithm>
#include <utility>

#include "core/registry/kube/kube_controller.h"
#include "core/registry/kube/multi_cluster_services.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

std::vector<std::string> KubeController::HostnamesOf(const kube::NamespacedName& service) const {
  std::vector<std::string> out = {ServiceHostname(service.name, service.ns, options_.domain_suffix)};
  if (options_.mcs.Hosts()) out.push_back(ClusterSetHostname(service));
  return out;
}

std::vector<ServiceRef> KubeController::ServicesOf(const kube::NamespacedName& service) const {
  std::vector<ServiceRef> out;
  for (const std::string& hostname : HostnamesOf(service)) {
    if (ServiceRef known = GetService(hostname)) out.push_back(std::move(known));
  }
  return out;
}

bool KubeController::Confined(const std::string& hostname, const kube::NamespacedName& service) const {
  return mcs_ != nullptr && mcs_->Confines(hostname, service, GetService(hostname) != nullptr);
}

void KubeController::RemakeSlices(const std::string& hostname, const kube::NamespacedName& service) {
  for (const kube::ObjectRef& slice : slices_.List(service.ns)) {
    const auto label = slice->meta.labels.find(kServiceNameLabel);
    if (slice->meta.labels.contains(kMcsServiceNameLabel) || label == slice->meta.labels.end()) continue;
    if (label->second == service.name) UpdateSliceCache(hostname, *slice);
  }
}

EndpointList KubeController::EndpointsOf(const Service& service) const {
  EndpointList out = CachedEndpoints(service.hostname);
  const EndpointList more = WorkloadEndpoints(service);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

// istiod: serviceExportCacheImpl.updateXDS. A changed export says nothing new.
void KubeController::OnServiceExport(const kube::ObjectRef& object, Event event) {
  if (event == Event::kUpdate) return;
  const kube::NamespacedName name{object->meta.ns, object->meta.name};
  for (const ServiceRef& service : ServicesOf(name)) {
    RemakeSlices(service->hostname, name);
    updater_.EdsUpdate(shard_, service->hostname, name.ns, EndpointsOf(*service));
  }
}

// As the Service is in this or another cluster, under the clusterset's name and addresses. istiod: genMCSService.
std::shared_ptr<Service> KubeController::ImportedService(const Service& real, const kube::NamespacedName& name,
                                                         const std::vector<std::string>& ips) const {
  auto out = std::make_shared<Service>(real);
  out->hostname = ClusterSetHostname(name);
  out->default_address = ips.front();
  out->cluster_vips = {{options_.cluster, ips}};
  out->hash = {};
  return out;
}

void KubeController::OnServiceImport(const kube::ObjectRef& object, Event event) {
  const kube::NamespacedName name{object->meta.ns, object->meta.name};
  const std::string hostname = ClusterSetHostname(name);
  const std::vector<std::string> ips = event == Event::kDelete ? std::vector<std::string>() : mcs_->ImportedIps(name);
  const ServiceRef known = GetService(hostname);
  if (ips.empty()) {
    if (known != nullptr) ForgetService(known);
    return;
  }
  if (known == nullptr) {
    const ServiceRef real = options_.mesh_service(ServiceHostname(name.name, name.ns, options_.domain_suffix));
    if (real == nullptr) return;  // nothing of that name in the mesh; its coming is an event of its own
    return PutImportedService(ImportedService(*real, name, ips), Event::kAdd, true);
  }
  const auto before = known->cluster_vips.find(options_.cluster);
  const bool moved = before == known->cluster_vips.end() || before->second != ips;
  auto service = std::make_shared<Service>(*known);  // its default address stays the one that it came with
  service->cluster_vips[options_.cluster] = ips;
  service->hash = {};
  PutImportedService(std::move(service), Event::kUpdate, true);
  if (!moved) return;
  updater_.ConfigUpdate({.full = true,
                         .configs_updated = {{ConfigKind::kServiceEntry, hostname, name.ns}},
                         .reasons = Reason(TriggerReason::kService)});
}

// istiod: serviceImportCacheImpl.onServiceEvent.
void KubeController::OnMeshService(const ServiceRef& service, Event event) {
  if (mcs_ == nullptr || !options_.mcs.Hosts() || service->hostname.ends_with(kClusterSetDomain)) return;
  Push(host_.cause(), "Service/" + service->attributes.ns + "/" + service->attributes.name, [this, service, event] {
    const kube::NamespacedName name{service->attributes.ns, service->attributes.name};
    const std::vector<std::string> ips = mcs_->ImportedIps(name);
    const ServiceRef known = GetService(ClusterSetHostname(name));
    const bool gone = event == Event::kDelete && options_.mesh_service(service->hostname) == nullptr;
    if (ips.empty() || gone) {
      if (known != nullptr) ForgetService(known);
      return;
    }
    PutImportedService(ImportedService(*service, name, ips), known == nullptr ? Event::kAdd : Event::kUpdate, false);
  });
}

void KubeController::PutImportedService(const std::shared_ptr<Service>& service, Event event, bool remake_endpoints) {
  const auto addresses = service->attributes.cluster_external_addresses.find(options_.cluster);
  const bool has_addresses =
      addresses != service->attributes.cluster_external_addresses.end() && !addresses->second.empty();
  const bool networks_changed = has_addresses && ExtractGateways(*service);
  StoreService(service, event, networks_changed, remake_endpoints);
}

}  // namespace wavetank::pilot
