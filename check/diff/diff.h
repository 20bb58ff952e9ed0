// Two meshes, brought to rest and sent the same traffic: what a change of manifests does to flows and to what proxies
// hold.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/mesh/source.h"
#include "check/traffic/flows.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {

struct FlowState {
  int64_t sent = 0, failed = 0;
  std::map<std::string, int64_t> by_cluster;
  Duration p50{}, p99{};
  std::string reason;  // why most of the failed ones did
};

struct FlowChange {
  std::string flow;
  bool before_there = false, after_there = false;  // the flow exists in that mesh
  FlowState before, after;
  std::vector<std::string> what;  // "fate", "share", "latency", "appears", "vanishes"
};

// Proxies of one application in one cluster hold the same.
struct EndpointChange {
  std::string group;    // "sleep.sample@cluster1"
  std::string cluster;  // "outbound|5000||helloworld.sample.svc.cluster.local"
  std::vector<std::string> appear,
      vanish;  // what they stand for: "pod helloworld-v1.sample@cluster1", "gateway of cluster2"
};

// What an API server holds that somebody wrote: Istio's configuration, Services, workloads, Secrets and settings.
struct ObjectChange {
  std::string cluster, object;  // "AuthorizationPolicy shop/deny-all"
  std::string what;             // "appears", "vanishes", "changes"
};

struct MeshDiff {
  std::vector<FlowChange> flows;  // those that change
  std::vector<EndpointChange> endpoints;
  std::vector<ObjectChange> objects;  // by cluster and name
  int flows_compared = 0;
  // Whether it makes no difference to traffic; objects may differ all the same.
  bool Empty() const { return flows.empty() && endpoints.empty(); }
};

struct DiffOptions {
  int64_t requests = 200;  // of each flow
  size_t flow_limit = 200;
  int64_t rate = 100;
};

// Errors are about the inputs; they name which of the two.
absl::StatusOr<MeshDiff> Diff(const MeshSource& before, const MeshSource& after, const DiffOptions& options);

// A comment for a pull request.
std::string DiffMarkdown(const MeshDiff& diff);
nlohmann::ordered_json DiffJson(const MeshDiff& diff);

}  // namespace wavetank::check
