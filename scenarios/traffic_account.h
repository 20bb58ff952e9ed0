// Adds up what became of the requests of one run of a flow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/name_table.h"
#include "scenarios/result.h"
#include "sim/traffic.h"

namespace wavetank::scenario {

class TrafficAccount {
 public:
  // `names`: of the kernel whose requests these are; must outlive it. `seconds_since`: keep TrafficResult::seconds,
  // counted from there.
  TrafficAccount(const NameTable& names, std::string flow, bool meanwhile, Time start,
                 std::optional<Time> seconds_since = std::nullopt);

  void Add(const sim::TrafficRecord& record);
  // `unanswered`: requests that are still under way; nobody waits for them any longer.
  TrafficResult Finish(Time end, int64_t unanswered);

 private:
  static constexpr Duration kBucket = 250ms;

  TrafficResult::Second* SecondOf(Time at);  // null if none are kept

  const NameTable& names_;
  TrafficResult result_;
  const std::optional<Time> seconds_since_;
  std::vector<int64_t> latencies_;
};

}  // namespace wavetank::scenario
