// The traffic by which a mesh is judged: a scenario's flows, or every client against every Service; sent in a settled
// world, and what became of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "check/mesh/mesh.h"
#include "core/base/time.h"
#include "scenarios/answers/address_names.h"
#include "sim/inputs/kinds/traffic.h"

namespace wavetank::check {

// The scenario's own, or, where it has none, each application's pods of each cluster against each Service that has
// pods, at most `limit` of them in order of name.
std::vector<scenario::FlowSpec> FlowsOf(const Mesh& mesh, size_t limit);

// The latter, whatever flows the scenario has. `injected`: of clients with a sidecar alone.
std::vector<scenario::FlowSpec> EveryFlow(const Mesh& mesh, size_t limit, bool injected);

// Why requests failed: Envoy's flags, the cause in words with the object that made it so, and where they went.
struct FailureReason {
  std::string flags, words, upstream;
  std::string details;  // %RESPONSE_CODE_DETAILS%, of the next proxy where that answered or closed by a policy
  friend auto operator<=>(const FailureReason&, const FailureReason&) = default;
  std::string Text() const;
  // The pod that sent them died, or none was there to send them: what they were sent to is not to blame.
  bool ClientGone() const { return details == "client pod gone" || details == "no client pod"; }
};

// What became of a flow's requests that were sent in one window.
struct Window {
  int64_t sent = 0, failed = 0, retried = 0;
  std::map<std::string, int64_t> by_cluster;  // answered, by the answering pod's
  std::vector<int64_t> latencies_ns;          // of answered ones
  std::map<FailureReason, int64_t> reasons;
  Duration Percentile(int percent) const;  // zero: nothing was answered
  void Merge(const Window& other);
};

// Sends flows and sorts their requests into windows of one second by when they were sent.
class FlowMeter {
 public:
  // Starts `flows` now, and `traffic` as flows behind them, each at most `rate` requests per second. Errors: a flow
  // that the world refuses.
  static absl::StatusOr<std::unique_ptr<FlowMeter>> Start(sim::World& world,
                                                          const std::vector<scenario::FlowSpec>& flows, int64_t rate,
                                                          std::vector<sim::inputs::StartTraffic> traffic = {});
  // No more is sent; waits for what is under way, `patience` at most. What then is unanswered has failed.
  void Finish(Duration patience);

  size_t flows() const { return ids_.size(); }
  Time start() const { return start_; }
  // Requests sent in [from, to), by seconds since the start.
  Window Between(size_t flow, int64_t from, int64_t to) const;
  // When the last failed request of those sent since `since` was sent; a time before `since`: none failed.
  Time LastFailure(size_t flow, Time since) const;

 private:
  explicit FlowMeter(sim::World& world) : world_(world), start_(world.Now()), names_(world) { names_.Learn(); }
  void Add(size_t flow, const sim::TrafficRecord& record);
  void CountUnanswered(size_t flow, int64_t pending);

  sim::World& world_;
  Time start_;
  scenario::AddressNames names_;
  Subscription requests_;
  std::vector<std::string> ids_;
  std::vector<Duration> periods_;
  std::vector<std::map<int64_t, Window>> windows_;
  std::vector<std::vector<Time>> failures_;
};

}  // namespace wavetank::check
