// What proxies of Istio tell each other of the workloads that they stand before.
// istio/proxy: extensions/common/metadata_object.h, WorkloadMetadataObject
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace wavetank::envoysim {

// Texts are empty where nothing is said.
struct PeerInfo {
  std::string workload, ns, canonical_name, canonical_revision, app, version, cluster;
  std::vector<std::pair<std::string, std::string>> labels;  // all of them, in order
  bool operator<(const PeerInfo& o) const {
    const auto all = [](const PeerInfo& p) {
      return std::tie(p.workload, p.ns, p.canonical_name, p.canonical_revision, p.app, p.version, p.cluster, p.labels);
    };
    return all(*this) < all(o);
  }
};

}  // namespace wavetank::envoysim
