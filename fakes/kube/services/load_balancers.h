// The cloud: addresses of Services of type LoadBalancer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"
#include "fakes/kube/store/ip_pool.h"

namespace wavetank::fakekube {

// The address behind a load balancer's host name, by which the cloud made it
// up; nullopt for names of others.
std::optional<std::string> AddressOfLoadBalancerName(std::string_view hostname);

class LoadBalancerController {
 public:
  LoadBalancerController(ApiServer& api, const ClusterOptions& options);
  bool Settled() const { return pending_.idle(); }
  // `address`: one of the range, "new" or "none". InvalidArgument: no such load balancer, or the address is another's;
  // ResourceExhausted: the range is used up.
  absl::Status Set(const NamespacedName& service, std::string_view address);

 private:
  void Queue(const NamespacedName& service);
  // "" takes the address away.
  void Assign(const NamespacedName& service, const std::string& address);
  void Release(const NamespacedName& service);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  IpPool addresses_;
  std::map<NamespacedName, std::string> held_;
  std::set<NamespacedName> without_address_;  // wait until one is given back
  std::set<NamespacedName> withheld_;         // the cloud was told to give nothing
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
