#include "fakes/kube/cluster.h"

#include <fmt/format.h>

#include "fakes/kube/deployments.h"
#include "fakes/kube/endpoint_slices.h"
#include "fakes/kube/kubelet.h"
#include "fakes/kube/load_balancers.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

ApiServer::Options ServerOptions(const ClusterOptions& options) {
  ApiServer::Options server;
  server.name = options.name;
  server.service_cidr = options.service_cidr;
  server.create_namespaces = options.create_namespaces;
  return server;
}

}  // namespace

Cluster::Cluster(Host& host, const ClusterOptions& options, PodAdmission* admission, PodRuntime* runtime)
    : options_(options), api_(host, ServerOptions(options)) {
  api_.Observe("Namespace", [this](const Change& change) {
    if (change.type != kube::WatchEventType::kAdded) return;
    api_.Create({{"apiVersion", "v1"},
                 {"kind", "ServiceAccount"},
                 {"metadata", {{"name", "default"}, {"namespace", change.object->meta.name}}}})
        .IgnoreError();
  });
  load_balancers_ = std::make_unique<LoadBalancerController>(api_, options_);
  endpoint_slices_ = std::make_unique<EndpointSliceController>(api_, options_);
  kubelet_ = std::make_unique<Kubelet>(api_, options_, runtime);
  deployments_ = std::make_unique<DeploymentController>(api_, options_, admission);

  for (const char* ns : {"default", "kube-system", "kube-public"}) {
    api_.Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}).IgnoreError();
  }
  for (const NodeOptions& node : options_.nodes) {
    json labels = {{"kubernetes.io/hostname", node.name}, {"kubernetes.io/os", "linux"}};
    if (!node.region.empty()) labels["topology.kubernetes.io/region"] = node.region;
    if (!node.zone.empty()) labels["topology.kubernetes.io/zone"] = node.zone;
    json addresses = json::array({{{"type", "Hostname"}, {"address", node.name}}});
    if (!node.address.empty()) addresses.push_back({{"type", "ExternalIP"}, {"address", node.address}});
    api_.Create({{"apiVersion", "v1"},
                 {"kind", "Node"},
                 {"metadata", {{"name", node.name}, {"labels", labels}}},
                 {"status",
                  {{"addresses", addresses}, {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}})
        .IgnoreError();
  }
}

Cluster::~Cluster() = default;

bool Cluster::Settled() const {
  return load_balancers_->Settled() && endpoint_slices_->Settled() && kubelet_->Settled() && deployments_->Settled();
}

absl::Status Cluster::SetLoadBalancerAddress(const NamespacedName& service, std::string_view address) {
  return load_balancers_->Set(service, address);
}

}  // namespace wavetank::fakekube
