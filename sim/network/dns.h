// Names: what a cluster's DNS says to its pods, and what the world's DNS says to all.
//
// Fault model: a name of the world's zone may be set to nothing, to other addresses, or to no answer at all. Answers
// take no time of their own.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/ip.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

// Names outside clusters: load balancers' host names, and what scenarios set.
class WorldDns {
 public:
  // Empty: NXDOMAIN.
  void Set(const std::string& name, std::vector<IpAddress> addresses) { zone_[name] = std::move(addresses); }
  // Sorted by nothing: in the order given. NotFound: NXDOMAIN; Unavailable: no server answers.
  absl::StatusOr<std::vector<IpAddress>> Resolve(std::string_view name) const;

 private:
  std::map<std::string, std::vector<IpAddress>, std::less<>> zone_;
};

// CoreDNS of one cluster, with a pod's search list.
class ClusterDns {
 public:
  ClusterDns(const fakekube::ApiServer& api, const WorldDns& world, std::string domain = "cluster.local")
      : api_(api), world_(world), domain_(std::move(domain)) {}

  // As a pod of namespace `ns` asks: "helloworld", "helloworld.sample", fully qualified names, names of the world. An
  // IP literal is itself. ClusterIP Services give their VIP, headless ones their ready endpoints.
  absl::StatusOr<std::vector<IpAddress>> Resolve(std::string_view name, std::string_view ns) const;

 private:
  absl::StatusOr<std::vector<IpAddress>> Service(std::string_view name, std::string_view ns, int depth) const;
  absl::StatusOr<std::vector<IpAddress>> Qualified(std::string_view name, int depth) const;

  const fakekube::ApiServer& api_;
  const WorldDns& world_;
  std::string domain_;
};

}  // namespace wavetank::sim
