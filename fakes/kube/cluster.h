// A Kubernetes cluster: one API server and the controllers that make a mesh's objects live.
//
// Fault model of the controllers: pods take time to schedule, start, become ready and terminate (delays with jitter,
// drawn per pod); addresses of load balancers come late, or are taken away. Admission may refuse a pod, which is then
// tried again with growing back-off.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class DaemonSetController;
class DeploymentController;
class Kubelet;
class NodeLifecycle;
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

  // A recorded cluster goes on as a live one: its pods stay, their workloads are inferred (workloads/inferred.h), and
  // controllers run from now on. InvalidArgument: it lives already.
  absl::Status GoLive();
  // What its record did not tell then: pods that nobody makes again, say.
  const std::vector<std::string>& untold() const { return untold_; }
  bool live() const { return kubelet_ != nullptr; }

  // Nothing is pending: every pod is ready or gone for good, every slice and address written.
  bool Settled() const;
  // The same, but for pods that have not become ready yet, and those that nobody has admitted for more than a minute:
  // only what runs in them, or what admits them, can change that.
  bool SettledButForPods() const;

  // Takes a load balancer's address away ("none"), gives another of the range ("new"), or a certain one.
  // InvalidArgument if the Service is no LoadBalancer.
  absl::Status SetLoadBalancerAddress(const NamespacedName& service, std::string_view address);

  // A node's machine is gone at once, or back. InvalidArgument names the nodes that there are.
  absl::Status SetNodeLost(const std::string& node, bool lost);

 private:
  void StartControllers();

  ClusterOptions options_;
  ApiServer api_;
  PodAdmission* admission_;
  PodRuntime* runtime_;
  std::unique_ptr<LoadBalancerController> load_balancers_;
  std::unique_ptr<EndpointSliceController> endpoint_slices_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<NodeLifecycle> node_lifecycle_;
  std::unique_ptr<DeploymentController> deployments_;
  std::unique_ptr<StatefulSetController> stateful_sets_;
  std::unique_ptr<DaemonSetController> daemon_sets_;
  std::unique_ptr<TokenController> tokens_;
  std::vector<std::unique_ptr<Controller>> housekeeping_;
  std::unique_ptr<ObservedPods> observed_;  // of a record: instead of all the controllers, or what ran before them
  std::vector<std::string> untold_;
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
