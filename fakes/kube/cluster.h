// A Kubernetes cluster: one API server and the controllers that make a mesh's objects live.
//
// Fault model of the controllers: pods take time to schedule, start, become ready and terminate (delays with jitter,
// drawn per pod); addresses of load balancers come late, or are taken away. Admission may refuse a pod, which is then
// tried again with growing back-off.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "fakes/kube/api_server.h"

namespace wavetank::fakekube {

struct NodeOptions {
  std::string name, region, zone, address;
};

struct ClusterOptions {
  std::string name;
  std::string pod_cidr = "10.1.0.0/16";  // a /16 in dotted form
  std::string service_cidr = "10.96.0.0/16";
  std::string load_balancer_cidr = "172.30.1.0/24";
  bool load_balancer_hostname = false;
  std::vector<NodeOptions> nodes;
  uint64_t seed = 1;
  int64_t first_resource_version = 1000;
  bool create_namespaces = false;
  // The record of another cluster: no controller runs, no object is made, and none is admitted; pods run while their
  // recorded status says so (observed_pods.h).
  bool observed = false;

  // Issues a ServiceAccount's token without end, for Secrets of type kubernetes.io/service-account-token; null: nobody
  // fills them. `ca_pem`: what else they hold.
  std::function<std::string(const std::string& ns, const std::string& service_account)> issue_token;
  std::string ca_pem;

  Duration schedule = 20ms;
  Duration container_start = 600ms;
  Duration readiness = 400ms;
  Duration readiness_jitter = 200ms;
  Duration termination = 200ms;
  Duration endpoint_slice = 20ms;
  Duration load_balancer = 500ms;
};

// The mutating webhook that pods pass before they are created. The answer may come any time later.
class PodAdmission {
 public:
  virtual ~PodAdmission() = default;
  // `pod` as it would be stored; `namespace_labels` as they are now. An error refuses the pod (failurePolicy Fail).
  virtual void Review(nlohmann::json pod, const kube::Labels& namespace_labels,
                      absl::AnyInvocable<void(absl::StatusOr<nlohmann::json>)> done) = 0;
};

// What runs in pods. The kubelet asks it; without one, pods become ready by themselves after the readiness delay.
class PodRuntime {
 public:
  virtual ~PodRuntime() = default;
  // The pod's containers run, it has an address. Call `ready` once it may serve, as often as that changes.
  virtual void Start(const ObjectRef& pod, std::function<void(bool)> ready) = 0;
  // The pod got a deletionTimestamp.
  virtual void Terminate(const ObjectRef& pod) = 0;
  // It is gone.
  virtual void Remove(const ObjectRef& pod) = 0;
};

class DaemonSetController;
class DeploymentController;
class Kubelet;
class EndpointSliceController;
class LoadBalancerController;
class StatefulSetController;
class TokenController;
class ObservedPods;

class Cluster {
 public:
  // `admission` and `runtime` may be null; both must outlive the cluster.
  Cluster(Host& host, const ClusterOptions& options, PodAdmission* admission, PodRuntime* runtime);
  ~Cluster();

  ApiServer& api() { return api_; }
  const ApiServer& api() const { return api_; }
  const ClusterOptions& options() const { return options_; }

  // Nothing is pending: every pod is ready or gone for good, every slice and address written.
  bool Settled() const;

  // Takes a load balancer's address away ("none"), gives another of the range ("new"), or a certain one.
  // InvalidArgument if the Service is no LoadBalancer.
  absl::Status SetLoadBalancerAddress(const NamespacedName& service, std::string_view address);

 private:
  ClusterOptions options_;
  ApiServer api_;
  std::unique_ptr<LoadBalancerController> load_balancers_;
  std::unique_ptr<EndpointSliceController> endpoint_slices_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<DeploymentController> deployments_;
  std::unique_ptr<StatefulSetController> stateful_sets_;
  std::unique_ptr<DaemonSetController> daemon_sets_;
  std::unique_ptr<TokenController> tokens_;
  std::unique_ptr<ObservedPods> observed_;  // instead of all the controllers
};

}  // namespace wavetank::fakekube
