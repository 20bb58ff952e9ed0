// In which order the parts of a mesh get another release of Istio.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/inputs/input.h"
#include "sim/world_options.h"

namespace wavetank::check {

enum class UpgradeMethod : uint8_t {
  kCanary,        // a second istiod as a revision; proxies move to it; the old one goes
  kInPlace,       // istiod is replaced; its proxies follow
  kProxiesFirst,  // the reverse of what is supported: newer proxies on the old istiod
};
// "canary", "in-place", "proxies-first".
std::string_view NameOf(UpgradeMethod method);

struct UpgradeOrder {
  UpgradeMethod method = UpgradeMethod::kCanary;
  bool gateways_first = true;  // of a cluster's proxies
  std::vector<std::string> clusters;
  std::string Name() const;  // "canary, gateways first, cluster1 then cluster2"
};

struct UpgradeStep {
  std::string name, cluster, part;
  std::vector<sim::Input> inputs;
};

// `to`: a profile's name.
std::vector<UpgradeStep> StepsOf(const UpgradeOrder& order, const std::string& to, const std::string& revision);

struct OrdersWanted {
  std::vector<std::string> methods;   // their names; empty: all that the mesh allows
  std::string gateways;               // "first", "last"; empty: both
  std::vector<std::string> clusters;  // in this order; empty: as the mesh has them, and the other way round
};
// Those to try, the usual one first. InvalidArgument: a name that there is not, or a way that this mesh has not.
// `notes`: what was left out, and why.
absl::StatusOr<std::vector<UpgradeOrder>> OrdersOf(const std::vector<sim::WorldCluster>& clusters,
                                                   const OrdersWanted& wanted, std::vector<std::string>* notes);

// "1-30-3", as istio.io names revisions.
std::string RevisionNameOf(std::string_view istio);

}  // namespace wavetank::check
