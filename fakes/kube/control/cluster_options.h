// What a simulated cluster is made of, and how long its controllers take.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "fakes/kube/store/kubernetes_release.h"

namespace wavetank::fakekube {

struct NodeOptions {
  std::string name, region, zone, address;
};

struct ClusterOptions {
  std::string name;
  // A range, or two with a comma between them of a cluster of both IP families: "10.1.0.0/16,fd00:10:1::/64".
  std::string pod_cidr = "10.1.0.0/16";
  std::string service_cidr = "10.96.0.0/16";
  std::string load_balancer_cidr = "172.30.1.0/24";
  bool load_balancer_hostname = false;
  KubernetesRelease release;
  std::vector<NodeOptions> nodes;
  bool nodes_untold = false;  // nobody says which it has: another like the first comes where pods want to be apart
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

}  // namespace wavetank::fakekube
