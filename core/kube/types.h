// Typed views of the Kubernetes objects that istiod reads. Each is read once and lives as long as its object: a new
// version is another object. What is missing or of the wrong type reads as absent, as Go's decoder would have refused
// it long before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/kube/object.h"

namespace wavetank::kube {

struct ServicePort {
  std::string name, protocol = "TCP", app_protocol;
  int port = 0, node_port = 0;
  int target_port = 0;  // 0: named or not given
  std::string target_port_name;
  int Target() const { return target_port == 0 ? port : target_port; }  // where no name says otherwise
};

struct Service {
  std::string type, cluster_ip, external_name, internal_traffic_policy, traffic_distribution;
  std::vector<std::string> cluster_ips, external_ips;
  std::vector<ServicePort> ports;
  Labels selector;
  bool has_selector = false;
  struct Ingress {
    std::string ip, hostname;
  };
  std::vector<Ingress> ingress;
  bool publish_not_ready = false;
};
const Service& ParseService(const Object& object);

struct ContainerPort {
  std::string name, protocol = "TCP";
  int container_port = 0;
};

struct Pod {
  std::string ip, node_name, service_account, phase, hostname, subdomain, generate_name;
  std::vector<std::string> ips;      // podIPs, of both IP families
  std::vector<ContainerPort> ports;  // of all containers, in order
  bool ready = false, host_network = false;
};

// The pod's port that a Service's port leads to: by number, or by the name that a container gives it. 0: no container
// has a port of that name and protocol (kubernetes: pkg/api/v1/pod/util.go, FindPort()).
int TargetPortOf(const ServicePort& port, const Pod& pod);
const Pod& ParsePod(const Object& object);
// The Deployment, Job, ... behind a pod, or the pod itself (istiod: pkg/kube/util.go, GetDeployMetaFromPod).
struct WorkloadReference {
  std::string name, kind = "Pod", api_version = "v1";
};
WorkloadReference WorkloadOf(const Object& pod, const Pod& typed);
inline std::string WorkloadNameOf(const Object& pod, const Pod& typed) { return WorkloadOf(pod, typed).name; }

// Which application a pod belongs to, and which version of it, by its labels: `app` and `version`, as Istio's samples
// have them, else those that Kubernetes recommends and Helm's charts have, `app.kubernetes.io/name` and
// `app.kubernetes.io/version` (kubernetes.io, concepts/overview/working-with-objects/common-labels). Empty: neither.
std::string AppOf(const Labels& labels);
std::string VersionOf(const Labels& labels);
// The same of metadata.labels as they stand in an object.
std::string AppOf(const nlohmann::json& labels);
std::string VersionOf(const nlohmann::json& labels);

struct EndpointSlice {
  struct Port {
    std::optional<std::string> name;
    std::optional<int> port;
  };
  struct Endpoint {
    std::vector<std::string> addresses;
    std::optional<bool> ready, serving, terminating;
    std::string target_kind, target_name, target_namespace;
    bool has_target = false;
  };
  std::string address_type;
  std::vector<Port> ports;
  std::vector<Endpoint> endpoints;
};
const EndpointSlice& ParseEndpointSlice(const Object& object);

struct Node {
  std::string external_ip;
};
Node ParseNode(const Object& object);

// Data of a ConfigMap, by key. (Of a Secret: core/kube/secret.h.)
std::map<std::string, std::string> ConfigMapData(const Object& object);

}  // namespace wavetank::kube
