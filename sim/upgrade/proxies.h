// What an operator does to a cluster's proxies once another injector is there: labels that lead to it, and rollouts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/profile/profile.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

// A workload whose pods have proxies.
struct ProxyWorkload {
  std::string kind, ns, name;  // "Deployment"; "Pod": nothing makes it anew
  bool gateway = false;
  auto operator<=>(const ProxyWorkload&) const = default;
};
// Of the pods that there are, in order.
std::vector<ProxyWorkload> ProxyWorkloads(const fakekube::ApiServer& api);

// All gateways, or all workloads with sidecars, get proxies of the injector of `revision` (empty: of the one that they
// have) by a rollout: namespaces that ask for injection are labelled, elsewhere the templates of pods are. A pod that
// no workload makes stays as it is. The first refusal of the API server; so below.
absl::Status MoveProxies(fakekube::ApiServer& api, bool gateways, std::string_view revision);

// In a recorded cluster, where no controller runs: the pods become `profile`'s where they stand, at once and at their
// addresses. One of istiods, gateways, sidecars.
enum class PodsOf : uint8_t { kIstiod, kGateways, kSidecars };
absl::Status ExchangePods(fakekube::ApiServer& api, PodsOf which, const pilot::Profile& profile);

}  // namespace wavetank::sim
