// What a world does for users who left something out. A real mesh does none of it.
//
// Without a choice, only what manifests leave out altogether is filled in: a mesh whose manifests bring no control
// plane is a sketch, and gets one. Where they bring one, it is taken as it is. With a choice (`--mend roots,tokens`)
// exactly what it names is done, wherever it is missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::sim {

enum class Mend : uint8_t {
  kIstiod,        // istiod, its Service, webhook configuration and ConfigMaps
  kClusterId,     // istiod without CLUSTER_ID has the cluster's name instead of "Kubernetes"
  kExternal,      // EXTERNAL_ISTIOD where a remote cluster names the istiod
  kControlPlane,  // annotation topology.istio.io/controlPlaneClusters of a remote cluster
  kAddress,       // a remote cluster's Service and Endpoints istiod, once the primary's gateway has an address
  kServers,       // a kubeconfig's server that no cluster of the world has stands for the cluster of that name
  kRbac,          // the reader's role
  kRoots,         // Secret cacerts under a common root
  kTokens,        // a remote Secret of each cluster in every other primary
  kNetwork,       // label topology.istio.io/network of the system namespace, as its gateway has it
};

class Mending {
 public:
  enum class Choice : uint8_t { kSketch, kNo, kYes };

  // Nothing chosen.
  Mending() = default;
  // "roots,tokens", "all", "none"; empty: nothing chosen. InvalidArgument lists the names.
  static absl::StatusOr<Mending> Parse(std::string_view text);
  // As Parse() reads it.
  std::string Text() const;

  Choice Of(Mend what) const;
  // `sketch`: whether the manifests leave it out altogether.
  bool Does(Mend what, bool sketch) const;
  bool chosen() const { return chosen_; }
  // Without that, if it was chosen.
  Mending Without(Mend what) const;
  friend bool operator==(const Mending&, const Mending&) = default;

 private:
  bool chosen_ = false;
  uint32_t done_ = 0;
};

// "roots".
std::string_view MendName(Mend what);

}  // namespace wavetank::sim
