// A fleet under its churn: what one istiod of it does, over several samples.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "capacity/fleet/fleet.h"
#include "capacity/model/cost_model.h"
#include "capacity/plan/api_server.h"
#include "capacity/plan/slo.h"
#include "capacity/queue/istiod_queue.h"

namespace wavetank::capacity {

// Of one kind of change, until the last proxy has it.
struct KindOutcome {
  int64_t changes = 0;
  Duration p50{}, p99{}, worst{};
};

struct Outcome {
  MeshSize mesh;
  std::map<Change, KindOutcome> kinds;
  Duration p50{}, p90{}, p99{}, worst{};  // of all changes, of all samples
  Duration p99_low{}, p99_high{};         // the least and the most of the samples
  Duration debounced{};                   // mean wait in the debouncer
  int64_t changes = 0, missing = 0;       // missing: still under way when the time was over
  double cpus = 0;                        // used on average, idle included
  double busiest = 0;                     // of the samples
  double resident_mb = 0, after_full_mb = 0;
  double kilobytes_per_second = 0;
  double pushes_per_second = 0, full_share = 0, merged_share = 0;
  int64_t most_waiting = 0;
  // Proxies of an istiod that died (its share) and a node's are served again.
  Duration start{}, istiod_recovery{}, node_recovery{}, all_connect{};

  ApiLoad api;  // of each istiod
  // Of each proxy, for its configuration: memory, processors used on average, and its first configuration.
  double envoy_mb = 0, envoy_cpus = 0;
  Duration envoy_first{};

  Duration Quantile(int64_t ppm) const;
};

// `samples`: seeds that are tried. ResourceExhausted: too many changes.
absl::StatusOr<Outcome> Evaluate(const CostModel& model, const Fleet& fleet, int samples, double faster = 1);

// One istiod of the fleet.
QueueOptions QueueOf(const Fleet& fleet);
// Always used, by the process and its proxies.
double IdleCpus(const CostModel& model, const MeshSize& mesh);
// A cluster's `proxies` are connected again, so long after an istiod died (at most its share of them: ProxiesOfOne) or
// after all its istiods began.
Duration ServedAgain(const CostModel& model, const Fleet& fleet, const Outcome& outcome, double proxies);
Duration AllServed(const CostModel& model, const Fleet& fleet, const Outcome& outcome, double proxies);
// In a cluster; and the share of one of its istiods.
double ProxiesOf(const Fleet& fleet);
double ProxiesOfOne(const Fleet& fleet);

// Why the SLO is not kept; empty if it is.
std::string Breaks(const Slo& slo, const Fleet& fleet, const Outcome& outcome);

}  // namespace wavetank::capacity
