// What can fail in a mesh, one thing each, and how it is made to fail in a world.
//
// Fault model: a pod dies without a goodbye and its controller makes another; a node or a zone is gone at once with all
// that runs there, which Kubernetes notices after 40 s; a gateway or an istiod stays gone; an address is taken away; an
// API server answers nobody; a remote Secret is deleted; a line between two clusters swallows packets; a cluster is cut
// off and everything in it is gone; a root certificate is replaced by one that nobody else has, and istiod starts
// again; a DNS name is not found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "check/mesh/mesh.h"
#include "core/base/time.h"

namespace wavetank::check {

struct Failure {
  std::string kind;  // "pod", "node", "zone", "gateway", "gateway address", "istiod", ...
  std::string name;  // "helloworld-v1-... .sample@cluster1"
  std::function<absl::Status(sim::World&)> happen;
  Duration horizon{};  // it is watched for so long at least
  std::string Text() const { return kind + " " + name; }
};

// In order of kind, then name; the same for the same mesh.
std::vector<Failure> SingleFailures(const Mesh& mesh);

}  // namespace wavetank::check
