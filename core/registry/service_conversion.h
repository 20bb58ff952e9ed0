// Kubernetes Services as services of the mesh, and small rules that both registries share
// (istiod: pilot/pkg/serviceregistry/kube/conversion.go).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kube/types.h"
#include "core/model/endpoint.h"
#include "core/model/labels.h"
#include "core/model/proxy.h"
#include "core/profile/profile.h"
#include "core/registry/workload_instance.h"

namespace wavetank::pilot {

inline constexpr uint32_t kDefaultNetworkGatewayPort = 15443;

std::string ServiceHostname(std::string_view name, std::string_view ns, std::string_view domain_suffix);
std::string SpiffeId(std::string_view trust_domain, std::string_view ns, std::string_view service_account);

// By appProtocol, else by the port's name up to the first "-" (istiod: pkg/config/kube/conversion.go, ConvertProtocol).
Protocol ConvertProtocol(int port, std::string_view name, std::string_view protocol, std::string_view app_protocol);

// By spec.trafficDistribution, else by annotation; as far as the release knows it.
TrafficDistribution DistributionOf(std::string_view field, const Labels& annotations,
                                   const Labels& namespace_annotations, const Profile& profile);

std::shared_ptr<Service> ConvertKubeService(const kube::Object& object, const kube::Service& typed,
                                            std::string_view domain_suffix, const ClusterId& cluster,
                                            std::string_view trust_domain, const Profile& profile = {},
                                            const Labels& namespace_annotations = {});
std::vector<ServiceInstance> ExternalNameInstances(const kube::Service& typed, const kube::Object& object,
                                                   const ServiceRef& service);

// Adds the labels of region, zone, subzone, cluster, node and network; what is empty adds none
// (istiod: pilot/pkg/serviceregistry/util/label/label.go, AugmentLabels).
void AugmentLabels(Labels& labels, const ClusterId& cluster, std::string_view locality, std::string_view node,
                   const NetworkId& network);

// True if every label of `selector` is among `labels`; an empty selector selects nothing.
bool SelectorMatches(const Labels& selector, const Labels& labels);

// The annotation's JSON mapping of node labels; empty if it cannot be read.
Labels ParseNodeSelector(const std::string& json);
// nullopt: the text is no whole number, or holds more than one.
std::optional<int> ParseWholeNumber(std::string_view text);
// "region.zone.subzone" or with slashes, as slashes.
std::string LocalityFromLabel(std::string_view label);

// Where a Service port leads on a workload that is no pod.
struct TargetPort {
  int number = 0;  // 0: not given
  std::string name;
  bool explicit_name = false;
};
TargetPort FindTargetPort(const Port& port, const kube::Service& service);
// nullopt: the port leads to a name that the workload has no port for.
std::optional<IstioEndpoint> EndpointOfWorkload(const WorkloadInstance& workload, const Port& port,
                                                const TargetPort& target);
// The WorkloadEntry that a proxy runs on, by address, then name, then namespace.
const WorkloadInstance* WorkloadForProxy(const std::map<kube::NamespacedName, WorkloadInstance>& workloads,
                                         const Proxy& proxy);

}  // namespace wavetank::pilot
