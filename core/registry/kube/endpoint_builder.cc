#include "core/registry/kube/endpoint_builder.h"

#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/containers/memo.h"
#include "core/kube/made_of_pod.h"
#include "core/registry/kube/kube_controller.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {
namespace {

std::string TlsModeOf(const Labels& labels) {
  const auto it = labels.find(kTlsModeLabel);
  return it == labels.end() ? std::string(kDisabledTlsMode) : it->second;
}

// What registries made of a pod. They differ in little but the trust domain, and each asks for the workload and for
// every slice that lists it.
struct OfPod final : kube::Object::View {
  mutable std::vector<std::pair<std::string, std::shared_ptr<const EndpointProfile>>> profiles;  // by trust domain
  mutable std::vector<WorkloadRef> workloads;

  static const OfPod& At(const kube::Object& pod) {
    kube::Object::ViewSlot& slot = kube::MadeOfPod(pod);
    if (slot.kept == nullptr) slot.kept = std::make_unique<const OfPod>();
    return static_cast<const OfPod&>(*slot.kept);
  }
};

}  // namespace

EndpointBuilder::EndpointBuilder(const KubeController& controller, std::string_view) : controller_(controller) {
  common_.locality.cluster = controller.cluster();
  common_.tls_mode = std::string(kDisabledTlsMode);
  network_ = NetworkOf("");
  AugmentLabels(common_.labels, controller.cluster(), "", "", network_);
}

EndpointBuilder::EndpointBuilder(const KubeController& controller, std::string_view trust_domain,
                                 const kube::Object& object, const kube::Pod& pod, const std::string& locality)
    : controller_(controller), object_(&object), pod_(&pod), trust_domain_(trust_domain) {
  common_.locality = {locality, controller.cluster()};
  network_ = NetworkOf(pod.ip);
}

EndpointBuilder::EndpointBuilder(const KubeController& controller, std::string_view, const Proxy& proxy)
    : controller_(controller), metadata_network_(proxy.metadata.network) {
  const std::string locality = proxy.locality.Label();
  common_.labels = proxy.labels;
  common_.service_account = proxy.metadata.service_account;
  common_.locality = {locality, controller.cluster()};
  common_.tls_mode = TlsModeOf(proxy.labels);
  common_.node_name = proxy.metadata.node_name;
  if (!proxy.ip_addresses.empty()) network_ = NetworkOf(proxy.ip_addresses[0]);
  AugmentLabels(common_.labels, controller.cluster(), locality, proxy.metadata.node_name, network_);
  if (const auto label = common_.labels.find(kNetworkLabel); label != common_.labels.end()) {
    network_ = NetworkId(label->second);
  }
}

const Labels& EndpointBuilder::OwnLabels() const { return object_ == nullptr ? common_.labels : object_->meta.labels; }

NetworkId EndpointBuilder::NetworkOf(std::string_view ip) const {
  return metadata_network_.empty() ? controller_.NetworkOf(ip, OwnLabels()) : metadata_network_;
}

void EndpointBuilder::UseAllAddresses() {
  WAVETANK_ASSERT(pod_ != nullptr && !pod_->ips.empty());
  common_.more_addresses.assign(pod_->ips.begin() + 1, pod_->ips.end());
}

std::shared_ptr<const EndpointProfile> EndpointBuilder::MakeProfile(const std::string& service_port_name) const {
  auto out = std::make_shared<EndpointProfile>(common_);
  if (object_ != nullptr) {
    out->labels = object_->meta.labels;
    out->service_account = SpiffeId(trust_domain_, object_->meta.ns, pod_->service_account);
    out->tls_mode = TlsModeOf(object_->meta.labels);
    out->workload_name = kube::WorkloadNameOf(*object_, *pod_);
    out->ns = object_->meta.ns;
    out->sub_domain = pod_->subdomain;
    if (!pod_->subdomain.empty()) out->host_name = pod_->hostname.empty() ? object_->meta.name : pod_->hostname;
    out->node_name = pod_->node_name;
    AugmentLabels(out->labels, controller_.cluster(), common_.locality.label, pod_->node_name, network_);
  }
  out->labels[std::string(kNetworkLabel)] = network_.str();
  out->service_port_name = service_port_name;
  out->network = network_;
  return out;
}

std::shared_ptr<const EndpointProfile> EndpointBuilder::ProfileFor(const std::string& service_port_name) const {
  if (object_ == nullptr || MemosOff::Any()) return MakeProfile(service_port_name);
  auto& known = OfPod::At(*object_).profiles;
  for (const auto& [trust_domain, profile] : known) {
    if (profile->service_port_name == service_port_name && profile->network == network_ &&
        profile->locality == common_.locality && trust_domain == trust_domain_ &&
        profile->more_addresses == common_.more_addresses &&
        profile->discoverable_in_same_cluster_only == common_.discoverable_in_same_cluster_only) {
      return profile;
    }
  }
  return known.emplace_back(trust_domain_, MakeProfile(service_port_name)).second;
}

IstioEndpoint EndpointBuilder::Build(const std::string& address, uint32_t port, const std::string& service_port_name,
                                     HealthStatus health) {
  if (network_.empty()) network_ = NetworkOf(address);
  if (last_ == nullptr || last_->service_port_name != service_port_name || last_->network != network_ ||
      last_->discoverable_in_same_cluster_only != common_.discoverable_in_same_cluster_only ||
      last_->more_addresses != common_.more_addresses) {
    last_ = ProfileFor(service_port_name);
  }
  IstioEndpoint out;
  out.address = address;
  out.endpoint_port = port;
  out.health = health;
  out.profile = last_;
  return out;
}

WorkloadRef EndpointBuilder::Workload() {
  WAVETANK_ASSERT(object_ != nullptr);
  WorkloadInstance made;
  made.endpoint = Build(pod_->ip, 0, "", HealthStatus::kHealthy);
  std::vector<WorkloadRef>& known = OfPod::At(*object_).workloads;
  for (const WorkloadRef& workload : known) {
    if (workload->endpoint.profile == made.endpoint.profile) return workload;
  }
  made.name = object_->meta.name;
  made.ns = object_->meta.ns;
  made.kind = WorkloadInstance::Kind::kPod;
  for (const kube::ContainerPort& port : pod_->ports) {
    if (!port.name.empty() && port.protocol == "TCP") {
      made.port_map.emplace(port.name, static_cast<uint32_t>(port.container_port));
    }
  }
  const auto out = std::make_shared<const WorkloadInstance>(std::move(made));
  if (!MemosOff::Any()) known.push_back(out);
  return out;
}

}  // namespace wavetank::pilot
