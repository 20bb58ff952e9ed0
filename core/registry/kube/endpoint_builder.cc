#include "core/registry/kube/endpoint_builder.h"

#include "core/registry/kube/kube_controller.h"
#include "core/registry/service_conversion.h"

namespace wavetank::pilot {
namespace {

std::string TlsModeOf(const Labels& labels) {
  const auto it = labels.find(kTlsModeLabel);
  return it == labels.end() ? std::string(kDisabledTlsMode) : it->second;
}

}  // namespace

EndpointBuilder::EndpointBuilder(const KubeController& controller, std::string_view) : controller_(controller) {
  common_.locality.cluster = controller.cluster();
  common_.tls_mode = std::string(kDisabledTlsMode);
  AugmentLabels(common_.labels, controller.cluster(), "", "", NetworkOf(""));
}

EndpointBuilder::EndpointBuilder(const KubeController& controller, std::string_view trust_domain,
                                 const kube::Object& object, const kube::Pod& pod, const std::string& locality)
    : controller_(controller) {
  common_.labels = object.meta.labels;
  common_.service_account = SpiffeId(trust_domain, object.meta.ns, pod.service_account);
  common_.locality = {locality, controller.cluster()};
  common_.tls_mode = TlsModeOf(object.meta.labels);
  common_.workload_name = kube::WorkloadNameOf(object, pod);
  common_.ns = object.meta.ns;
  common_.sub_domain = pod.subdomain;
  if (!pod.subdomain.empty()) common_.host_name = pod.hostname.empty() ? object.meta.name : pod.hostname;
  common_.node_name = pod.node_name;
  AugmentLabels(common_.labels, controller.cluster(), locality, pod.node_name, NetworkOf(pod.ip));
}

EndpointBuilder::EndpointBuilder(const KubeController& controller, std::string_view, const Proxy& proxy)
    : controller_(controller), metadata_network_(proxy.metadata.network) {
  const std::string locality = proxy.locality.Label();
  common_.labels = proxy.labels;
  common_.service_account = proxy.metadata.service_account;
  common_.locality = {locality, controller.cluster()};
  common_.tls_mode = TlsModeOf(proxy.labels);
  common_.node_name = proxy.metadata.node_name;
  AugmentLabels(common_.labels, controller.cluster(), locality, proxy.metadata.node_name,
                proxy.ip_addresses.empty() ? NetworkId() : NetworkOf(proxy.ip_addresses[0]));
}

NetworkId EndpointBuilder::NetworkOf(std::string_view ip) const {
  return metadata_network_.empty() ? controller_.NetworkOf(ip, common_.labels) : metadata_network_;
}

IstioEndpoint EndpointBuilder::Build(const std::string& address, uint32_t port, const std::string& service_port_name,
                                     HealthStatus health) {
  const auto label = common_.labels.find(kNetworkLabel);
  NetworkId network(label == common_.labels.end() ? std::string() : label->second);
  if (network.empty()) {
    network = NetworkOf(address);
    common_.labels[std::string(kNetworkLabel)] = network.str();
  }
  if (last_ == nullptr || last_->service_port_name != service_port_name || last_->network != network ||
      last_->labels != common_.labels ||
      last_->discoverable_in_same_cluster_only != common_.discoverable_in_same_cluster_only) {
    auto profile = std::make_shared<EndpointProfile>(common_);
    profile->service_port_name = service_port_name;
    profile->network = network;
    last_ = std::move(profile);
  }
  IstioEndpoint out;
  out.address = address;
  out.endpoint_port = port;
  out.health = health;
  out.profile = last_;
  return out;
}

}  // namespace wavetank::pilot
