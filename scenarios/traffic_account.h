// Adds up what became of the requests of one run of a flow.
#pragma once

#include <string>
#include <vector>

#include "scenarios/result.h"
#include "sim/traffic.h"

namespace wavetank::scenario {

class TrafficAccount {
 public:
  TrafficAccount(std::string flow, bool meanwhile, Time start);

  void Add(const sim::TrafficRecord& record);
  // `unanswered`: requests that are still under way; nobody waits for them any longer.
  TrafficResult Finish(Time end, int64_t unanswered);

 private:
  static constexpr Duration kBucket = 250ms;

  TrafficResult result_;
  std::vector<int64_t> latencies_;
};

}  // namespace wavetank::scenario
