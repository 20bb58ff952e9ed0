// How long things take in the modelled world: one table of named quantities, each with its source. A scenario's
// `timing:` overrides any of them by name; `wavetank timing` prints them.
//
// Defaults are fitted to measurements of a real istiod 1.18.2 on two shared cores (docs/timing.md says how, and prints
// predicted against measured). What Wavetank itself takes has nothing to do with these numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/cost.h"
#include "core/base/time.h"

namespace wavetank::sim {

inline constexpr int kWorkKinds = static_cast<int>(WorkKind::kInjectPod) + 1;

// fixed + per_unit * units + per_extra * extra, in nanoseconds; a cached result costs `cached_ppm` of that.
struct WorkCost {
  int64_t fixed_ns = 0;
  int64_t per_unit_ps = 0;  // picoseconds, since a byte costs a few nanoseconds
  int64_t per_extra_ps = 0;
};

struct Timing {
  // Kubernetes.
  Duration api_request = 1ms;        // a read or write, request to response, without the line
  Duration watch_delay = 220us;      // written -> event on the watcher's socket
  Duration watch_jitter = 160us;     // uniform, added
  Duration schedule = 20ms;          // pod created -> bound to a node
  Duration container_start = 600ms;  // bound -> running, for an image that is there
  Duration readiness = 400ms;        // running -> ready
  Duration readiness_jitter = 200ms;
  Duration termination = 200ms;    // terminating -> gone, unless the pod says otherwise
  Duration endpoint_slice = 20ms;  // pod or service changed -> slice written
  Duration load_balancer = 500ms;  // Service created -> address given
  Duration kube_proxy = 30ms;      // slice written -> VIPs and load balancers follow
  Duration dns_reload = 105s;      // CoreDNS's ConfigMap written -> it goes by it (kubelet and plugin reload), at most
  // Between a load balancer's health checks of a node; zero: it knows at once. So many in a row change its mind.
  Duration load_balancer_check{};
  int64_t load_balancer_failures = 3, load_balancer_successes = 2;

  // Lines.
  Duration line_inside = 100us;  // one way, between two pods of one site
  Duration line_between = 2ms;   // one way, between two sites

  // Envoy's wait before it opens its ADS stream again: uniform in [0, interval), the interval doubling.
  Duration xds_retry_base = 500ms;
  Duration xds_retry_max = 30s;

  // istiod.
  int64_t istiod_cpus = 2;
  // keepaliveMaxServerConnectionAge, 30m in Istio's charts; zero: connections have no age. What is still open so long
  // after it is cut off (istio: pkg/keepalive/options.go).
  Duration connection_age = 30min;
  Duration connection_age_grace = 10s;
  Duration debounce_after = 100ms;      // PILOT_DEBOUNCE_AFTER
  Duration debounce_max = 10s;          // PILOT_DEBOUNCE_MAX
  int64_t push_throttle = 100;          // PILOT_PUSH_THROTTLE
  int64_t connections_per_second = 25;  // PILOT_MAX_REQUESTS_PER_SECOND
  std::array<WorkCost, kWorkKinds> work = DefaultWork();
  int64_t cached_ppm = 500'000;  // share of the generation cost that a result of the XDS cache still costs

  // What `work` costs on one processor.
  Duration Cost(const Work& w) const;

  // Sets one quantity by name from text as a scenario writes it ("250us", "4ns", "100"). InvalidArgument names the
  // nearest known name, or says what the value should look like.
  absl::Status Set(std::string_view name, std::string_view value);

  static std::array<WorkCost, kWorkKinds> DefaultWork();
};

// One row of the table, for printing and for the schema.
struct TimingRow {
  std::string name, value, meaning;
};
std::vector<TimingRow> TimingTable(const Timing& timing);

}  // namespace wavetank::sim
