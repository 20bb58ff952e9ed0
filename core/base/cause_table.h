// Interned sets of inputs. A cause says which inputs of the event log led to something; most are single inputs, and
// merging happens where events merge (debounce, push queue), so sets stay few and small.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/base/trace.h"

namespace wavetank {

class CauseTable {
 public:
  CauseTable() : sets_(1) {}  // kNoCause

  CauseId Of(uint64_t input) { return Intern({input}); }
  // O(size of both) for a pair that was not merged before, O(log pairs) afterwards.
  CauseId Merge(CauseId a, CauseId b);
  // Sorted.
  const std::vector<uint64_t>& Inputs(CauseId cause) const { return sets_[static_cast<uint32_t>(cause)]; }
  bool Contains(CauseId cause, uint64_t input) const;

 private:
  CauseId Intern(std::vector<uint64_t> inputs);

  std::vector<std::vector<uint64_t>> sets_;
  std::map<std::vector<uint64_t>, CauseId> ids_;
  std::map<std::pair<CauseId, CauseId>, CauseId> merged_;
};

}  // namespace wavetank
