// The terms of the cost model: what is counted, and where it falls in a push. A term's parameter says what one of it
// costs (model/parameters.h). docs/cost-model.md prints them.
#pragma once

#include <string_view>
#include <vector>

#include "capacity/model/situation.h"

namespace wavetank::capacity {

// Where a term falls.
enum class Place {
  kProcess,  // once, when istiod starts (milliseconds of processor time)
  kClient,   // for each proxy that connects (ms)
  kPush,     // once for a push, before the first proxy leaves the queue (ms)
  kCds,      // for each proxy of a push, with its response of that type (ms)
  kEds,
  kLds,
  kRds,
  kMiss,      // for each proxy that generates what the cache does not hold yet (ms)
  kResident,  // resident set (MB)
  kBytes,     // bytes of a push for one proxy, by type in the name (KB)
  kBench,     // the measuring bench's own clients (ms)
  kShape,     // a constant of the model's shape
  kGiven,     // said by others or round figures, not fitted
};

struct Term {
  std::string_view name;  // of its parameter
  std::string_view unit;
  Place place;
  double (*count)(const Situation&);  // how many of it; null for kBench, kShape and kGiven
  std::string_view meaning;
};

const std::vector<Term>& Terms();
// Null: there is none.
const Term* FindTerm(std::string_view name);

}  // namespace wavetank::capacity
