// Endpoints of one workload: what they have in common is worked out once, and shared per port
// (istiod: pilot/pkg/serviceregistry/kube/controller/endpoint_builder.go). A pod's is kept with the pod, for all
// istiods that watch its cluster.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/types.h"
#include "core/model/endpoint.h"
#include "core/model/proxy.h"
#include "core/registry/workload_instance.h"

namespace wavetank::pilot {

class KubeController;

class EndpointBuilder {
 public:
  // Of an address without a pod.
  EndpointBuilder(const KubeController& controller, std::string_view trust_domain);
  EndpointBuilder(const KubeController& controller, std::string_view trust_domain, const kube::Object& object,
                  const kube::Pod& pod, const std::string& locality);
  // Of a proxy whose pod is not known yet.
  EndpointBuilder(const KubeController& controller, std::string_view trust_domain, const Proxy& proxy);

  // Whether what is built from now on is for proxies of its own cluster alone.
  void Confine(bool so) { common_.discoverable_in_same_cluster_only = so; }

  // All addresses of the pod, the first of which is the endpoint's, stand for what is built from now on.
  void UseAllAddresses();

  IstioEndpoint Build(const std::string& address, uint32_t port, const std::string& service_port_name,
                      HealthStatus health);
  // The pod itself.
  WorkloadRef Workload();

 private:
  const Labels& OwnLabels() const;
  NetworkId NetworkOf(std::string_view ip) const;
  std::shared_ptr<const EndpointProfile> ProfileFor(const std::string& service_port_name) const;
  std::shared_ptr<const EndpointProfile> MakeProfile(const std::string& service_port_name) const;

  const KubeController& controller_;
  NetworkId metadata_network_;
  const kube::Object* object_ = nullptr;  // of the pod, which outlives this
  const kube::Pod* pod_ = nullptr;
  std::string trust_domain_;
  EndpointProfile common_;                       // of a pod: its locality alone, until it is asked for
  NetworkId network_;                            // of the endpoints; none: that of each address
  std::shared_ptr<const EndpointProfile> last_;  // shared by ports and addresses as long as nothing differs
};

}  // namespace wavetank::pilot
