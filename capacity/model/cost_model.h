// What istiod spends and holds, from the terms and their parameters.
#pragma once

#include <array>

#include "capacity/model/parameters.h"

namespace wavetank::capacity {

class CostModel {
 public:
  explicit CostModel(Parameters parameters = Parameters::OfIstiod()) : parameters_(std::move(parameters)) {}
  const Parameters& parameters() const { return parameters_; }

  // Processor time in all of the change, in ms.
  double Cpu(const Situation& s) const;
  // Resident set once the change is over, in MB.
  double Resident(const Situation& s) const;
  // Sent to one proxy, in KB.
  double Kilobytes(const Situation& s) const;

  // One push as the queue model needs it.
  struct Stage {
    double ms = 0;
    double kilobytes = 0;
    bool sent = false;
  };
  static constexpr int kCds = 0, kEds = 1, kLds = 2, kRds = 3, kTypes = 4;  // in the order of a push
  struct PushCost {
    double before_ms = 0;              // until the first proxy leaves the queue, on one processor
    std::array<Stage, kTypes> stages;  // for each proxy
    double miss_ms = 0;                // more, with the endpoints, for the first `misses` proxies
    int misses = 0;
  };
  PushCost Push(const Situation& s) const;

 private:
  double Sum(Place place, const Situation& s) const;

  const Parameters parameters_;
};

}  // namespace wavetank::capacity
