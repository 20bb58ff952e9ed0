// What a proxy serves, and what a Service has, WorkloadEntries included.
#include "core/registry/kube/kube_controller.h"

#include <algorithm>
#include <utility>

#include "core/registry/kube/endpoint_builder.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {

// --- Instances ---

std::vector<ServiceInstance> KubeController::InstancesByPort(const Service& service, int port_number) const {
  std::vector<ServiceInstance> out;
  const Port* port = service.FindPort(port_number);
  if (port == nullptr) return out;
  const auto own = std::make_shared<Service>(service);
  for (const IstioEndpoint& endpoint : CachedEndpoints(service.hostname)) {
    if (endpoint.p().service_port_name == port->name) out.push_back({own, *port, endpoint});
  }
  for (const ServiceInstance& instance : WorkloadInstancesFor(service, *port)) out.push_back(instance);
  if (!out.empty()) return out;
  if (const auto external = external_name_instances_.find(service.hostname);
      external != external_name_instances_.end()) {
    for (const ServiceInstance& instance : external->second) {
      if (instance.service->attributes.ns == service.attributes.ns && instance.service_port.port == port_number) {
        out.push_back(instance);
      }
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::GetProxyServiceInstances(const Proxy& proxy) const {
  if (proxy.ip_addresses.empty()) return {};
  if (const WorkloadInstance* workload = WorkloadForProxy(workload_instances_, proxy)) {
    return InstancesFromWorkload(*workload);
  }
  const bool ours = proxy.metadata.cluster_id.empty() || proxy.metadata.cluster_id == options_.cluster;
  if (const kube::ObjectRef pod = PodByProxy(proxy)) {
    if (!ours) return {};
    const std::vector<kube::ObjectRef> services = PodServices(pod->meta.ns, pod->meta.labels);
    // A headless Service without selector may name the pod in its slices only.
    if (services.empty()) return InstancesFromSlices(proxy);
    std::vector<ServiceInstance> out;
    for (const kube::ObjectRef& object : services) {
      for (const ServiceRef& service : ServicesOf({object->meta.ns, object->meta.name})) {
        for (ServiceInstance& one : InstancesByPod(*pod, *object, service, proxy)) out.push_back(std::move(one));
      }
    }
    return out;
  }
  return ours ? InstancesFromMetadata(proxy) : std::vector<ServiceInstance>();
}

std::vector<ServiceInstance> KubeController::InstancesByPod(const kube::Object& pod_object, const kube::Object& object,
                                                            const ServiceRef& service, const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  const kube::Pod& pod = kube::ParsePod(pod_object);
  // Several ports may lead to one target: one inbound listener each, the first port wins.
  std::vector<std::pair<std::pair<int, Protocol>, const Port*>> targets;
  for (const kube::ServicePort& port : kube::ParseService(object).ports) {
    const Port* service_port = service->FindPort(std::string_view(port.name));
    if (service_port == nullptr) continue;
    const int number = port.target_port_name.empty() ? port.target_port : kube::TargetPortOf(port, pod);
    if (number == 0 && !port.target_port_name.empty()) continue;
    const std::pair<int, Protocol> target{number, service_port->protocol};
    if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return t.first == target; })) {
      targets.emplace_back(target, service_port);
    }
  }
  EndpointBuilder builder = BuilderFor(&pod_object);
  for (const auto& [target, port] : targets) {
    for (const std::string& ip : proxy.ip_addresses) {
      out.push_back(
          {service, *port, builder.Build(ip, static_cast<uint32_t>(target.first), port->name, HealthStatus::kHealthy)});
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesFromSlices(const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  const kube::ObjectRef pod = PodByProxy(proxy);
  for (const kube::ObjectRef& object : slices_.List(proxy.metadata.ns)) {
    const auto label = object->meta.labels.find(kServiceNameLabel);
    if (object->meta.labels.count(kMcsServiceNameLabel) != 0 || label == object->meta.labels.end()) continue;
    const kube::EndpointSlice& slice = kube::ParseEndpointSlice(*object);
    if (slice.address_type == "FQDN") continue;
    for (const ServiceRef& service : ServicesOf({object->meta.ns, label->second})) {
      for (ServiceInstance& one : InstancesOfSlice(slice, service, pod.get(), proxy)) out.push_back(std::move(one));
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesOfSlice(const kube::EndpointSlice& slice,
                                                              const ServiceRef& service, const kube::Object* pod,
                                                              const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  EndpointBuilder builder = BuilderFor(pod);
  for (const auto& port : slice.ports) {
    if (!port.name || !port.port) continue;
    const Port* service_port = service->FindPort(std::string_view(*port.name));
    if (service_port == nullptr) continue;
    for (const std::string& ip : proxy.ip_addresses) {
      for (const auto& endpoint : slice.endpoints) {
        for (const std::string& address : endpoint.addresses) {
          if (address != ip) continue;
          out.push_back(
              {service, *service_port,
               builder.Build(ip, static_cast<uint32_t>(*port.port), service_port->name, HealthStatus::kHealthy)});
        }
      }
    }
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesFromMetadata(const Proxy& proxy) const {
  std::vector<ServiceInstance> out;
  if (proxy.labels.empty()) return out;
  EndpointBuilder builder(*this, options_.trust_domain ? options_.trust_domain() : "cluster.local", proxy);
  for (const kube::ObjectRef& object : PodServices(proxy.config_namespace, proxy.labels)) {
    if (GetService(HostnameOf(object->meta)) == nullptr) return {};
    for (const ServiceRef& service : ServicesOf({object->meta.ns, object->meta.name})) {
      std::vector<std::pair<std::pair<int, Protocol>, const Port*>> targets;
      for (const kube::ServicePort& port : kube::ParseService(*object).ports) {
        const Port* service_port = service->FindPort(std::string_view(port.name));
        if (service_port == nullptr) return {};
        // Without the pod's ports only numbers can be resolved.
        const std::pair<int, Protocol> target{port.target_port, service_port->protocol};
        if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return t.first == target; })) {
          targets.emplace_back(target, service_port);
        }
      }
      for (const auto& [target, port] : targets) {
        for (const std::string& ip : proxy.ip_addresses) {
          out.push_back({service, *port,
                         builder.Build(ip, static_cast<uint32_t>(target.first), port->name, HealthStatus::kHealthy)});
        }
      }
    }
  }
  return out;
}

// --- WorkloadEntries that Services select ---

std::vector<ServiceInstance> KubeController::WorkloadInstancesFor(const Service& service, const Port& port) const {
  std::vector<ServiceInstance> out;
  if (workload_instances_.empty() || GetService(service.hostname) == nullptr ||
      service.attributes.registry != Provider::kKubernetes || service.mesh_external ||
      service.resolution != Resolution::kClientSideLb || service.attributes.label_selectors.empty()) {
    return out;
  }
  const kube::ObjectRef object = services_.Get({service.attributes.ns, service.attributes.name});
  if (object == nullptr) return out;
  const TargetPort target = FindTargetPort(port, kube::ParseService(*object));
  const auto own = std::make_shared<Service>(service);
  for (const auto& [name, instance] : workload_instances_) {
    if (instance.ns != service.attributes.ns ||
        !SelectorMatches(service.attributes.label_selectors, instance.endpoint.p().labels)) {
      continue;
    }
    if (std::optional<IstioEndpoint> endpoint = EndpointOfWorkload(instance, port, target)) {
      out.push_back({own, port, *std::move(endpoint)});
    }
  }
  return out;
}

EndpointList KubeController::WorkloadEndpoints(const Service& service) const {
  EndpointList out;
  if (workload_instances_.empty() || service.resolution != Resolution::kClientSideLb) return out;
  for (const Port& listed : service.ports) {
    // Ports are asked for by number: of two with one number, the first answers for both.
    const Port& port = *service.FindPortOfAnyProtocol(listed.port);
    for (ServiceInstance& instance : WorkloadInstancesFor(service, port)) out.push_back(std::move(instance.endpoint));
  }
  return out;
}

std::vector<ServiceInstance> KubeController::InstancesFromWorkload(const WorkloadInstance& workload) const {
  std::vector<ServiceInstance> out;
  for (const kube::ObjectRef& object : PodServices(workload.ns, workload.endpoint.p().labels)) {
    const ServiceRef service = GetService(HostnameOf(object->meta));
    if (service == nullptr || service->resolution != Resolution::kClientSideLb) continue;
    const kube::Service& typed = kube::ParseService(*object);
    for (const Port& port : service->ports) {
      if (port.protocol == Protocol::kUdp) continue;
      if (std::optional<IstioEndpoint> endpoint = EndpointOfWorkload(workload, port, FindTargetPort(port, typed))) {
        out.push_back({service, port, *std::move(endpoint)});
      }
    }
  }
  return out;
}

void KubeController::OnWorkloadInstance(const WorkloadRef& told, Event event) {
  const WorkloadInstance& instance = *told;
  const Labels& labels = instance.endpoint.p().labels;
  if (instance.ns.empty() || labels.empty()) return;
  const kube::NamespacedName name{instance.ns, instance.name};
  if (event == Event::kDelete) {
    workload_instances_.erase(name);
  } else {
    workload_instances_[name] = instance;
  }
  for (const kube::ObjectRef& object : PodServices(instance.ns, labels)) {
    const ServiceRef service = GetService(HostnameOf(object->meta));
    if (service == nullptr || service->resolution != Resolution::kClientSideLb) continue;
    EndpointList endpoints;
    for (const Port& port : service->ports) {
      if (port.protocol == Protocol::kUdp) continue;
      for (ServiceInstance& i : InstancesByPort(*service, port.port)) endpoints.push_back(std::move(i.endpoint));
    }
    updater_.EdsUpdate(shard_, service->hostname, service->attributes.ns, std::move(endpoints));
  }
}

}  // namespace wavetank::pilot
