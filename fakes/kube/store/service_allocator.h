// Cluster IPs and node ports of Services: each held by one Service, given back when it lets go.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/kube/object.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/store/ip_pool.h"

namespace wavetank::fakekube {

class ServiceAllocator {
 public:
  // A range for each of the cluster's IP families: "10.96.0.0/16,fd00:96::/112".
  explicit ServiceAllocator(const std::string& service_cidrs) : ips_(IpPoolsOf(service_cidrs)) {}

  // Gives the (defaulted) Service what it needs and does not name. InvalidArgument if it names what another holds or a
  // node port outside of 30000-32767, ResourceExhausted if nothing is left; then nothing is taken. `previous` is the
  // stored version, null for a new Service. An address outside of the cluster's range is allowed, unlike in real
  // clusters: manifests exported from one cluster may be applied to another.
  absl::Status Assign(nlohmann::json& body, const kube::Object* previous);
  // `previous` was replaced by `now`, or deleted (null).
  void Release(const kube::Object& previous, const kube::Object* now);

 private:
  absl::StatusOr<int> FreePort(std::string_view key) const;
  IpPool* PoolOf(std::string_view family);
  // ipFamilies as ipFamilyPolicy and the cluster have it; an error of a field if they do not go together.
  std::optional<FieldError> FillFamilies(nlohmann::json& spec) const;

  std::vector<IpPool> ips_;  // by IP family, the cluster's first one first
  std::set<int> ports_;
};

}  // namespace wavetank::fakekube
