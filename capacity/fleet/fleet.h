// A fleet on a page of YAML: clusters, services, proxies, configuration, churn. docs/capacity.md is the manual.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "capacity/model/situation.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::capacity {

// How many endpoints a Service has.
struct EndpointsSpec {
  enum class Kind { kFixed, kRange, kZipf };
  Kind kind = Kind::kFixed;
  int64_t fixed = 2;
  int64_t least = 1, most = 10;  // kRange, uniform; kZipf: `most` of the first, most / rank^exponent of the others
  double exponent = 1;
};

// How often each kind of churn happens in the whole mesh; zero: never.
struct ChurnSpec {
  Duration deploys{};  // a rolling update of one Service's pods
  int64_t surge_ppm = 250'000;
  Duration pod_start = 5s;
  int64_t flapping = 0;  // pods that turn unready and ready again
  Duration flapping_every = 30s;
  Duration autoscaling{};  // a Service grows or shrinks by `swing_ppm`
  int64_t swing_ppm = 200'000;
  // Instead of those: each Service's share of its pods at hours that divide the day evenly, the first at midnight.
  std::vector<int64_t> day_ppm;
  Duration day_begins{};  // the time of day at which the fleet begins
  Duration node_loss{};
  Duration config_edits{};  // a VirtualService
  Duration secret_rotation{};
  Duration istiod_restarts{};
};

// Requests, and who calls whom (service_graph.h), in each cluster.
struct ServiceGraphSpec {
  int64_t entries = 0;                   // Services that clients call; 0: nobody sends anything
  int64_t rate_per_kilosecond = 10'000;  // to each of them
  int64_t calls = 2;                     // Services that each one calls, before it answers
  int64_t depth = 2;                     // layers below the entries
  Duration latency = 5ms;                // half of the answers take less, without the calls
};

struct IstiodSpec {
  int64_t replicas = 1;  // in each cluster
  double cpus = 2;
  double memory_mb = 4096;
  Duration debounce_after = 100ms, debounce_max = 10s;
  int64_t push_throttle = 100, requests_per_second = 25;
  int64_t api_qps = 80, api_burst = 160;  // of its client (istiod: pilot/cmd/pilot-discovery/app/cmd.go)
};

struct Fleet {
  std::string name;
  uint64_t seed = 1;
  Duration duration = 10min;
  int64_t clusters = 1;
  bool one_network = false;
  int64_t namespaces = 1, nodes = 3, zones = 1;  // in each cluster
  int64_t services = 10;                         // in each cluster
  int64_t shared_ppm = 0;                        // of them, of the same name in every cluster
  EndpointsSpec endpoints;
  int64_t proxies = 10, gateways = 1;  // in each cluster
  int64_t scope = 0;                   // services that a Sidecar lets its workloads see; 0: all
  int64_t virtual_services_ppm = 0, destination_rules_ppm = 0, authorization_policies_ppm = 0;  // of the services
  ServiceGraphSpec traffic;
  ChurnSpec churn;
  IstiodSpec istiod;
};

// Errors name file, line, column and remedy.
absl::StatusOr<Fleet> LoadFleet(const std::string& path);
absl::StatusOr<Fleet> ParseFleet(const std::string& name, const std::string& text);
// For editors.
nlohmann::ordered_json FleetSchema();

// Endpoints of each Service of a cluster, from the fleet's seed and the cluster alone: another part of the fleet never
// changes them.
std::vector<int64_t> DrawEndpoints(const Fleet& fleet, int64_t cluster);
int64_t TotalEndpoints(const Fleet& fleet);

// As one istiod sees it, with its share of its cluster's proxies.
MeshSize SizeOf(const Fleet& fleet);

}  // namespace wavetank::capacity
