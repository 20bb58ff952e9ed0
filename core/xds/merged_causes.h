// The causes of what waits for one push. Merged one after the other, each would leave a set of all that came before it:
// the start of a large mesh has thousands. So sets of about the same number of causes are merged, as in a merge sort.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/host.h"

namespace wavetank::pilot {

class MergedCauses {
 public:
  void Add(CauseId cause, Host& host) {
    if (cause == kNoCause || (!piles_.empty() && piles_.back().cause == cause)) return;
    piles_.push_back({cause, 1});
    while (piles_.size() > 1 && piles_[piles_.size() - 2].causes <= piles_.back().causes) MergeTop(host);
  }
  // Of all; there are none afterwards.
  CauseId Take(Host& host) {
    while (piles_.size() > 1) MergeTop(host);
    const CauseId all = piles_.empty() ? kNoCause : piles_.back().cause;
    piles_.clear();
    return all;
  }

 private:
  struct Pile {
    CauseId cause;
    uint64_t causes;
  };
  void MergeTop(Host& host) {
    const Pile top = piles_.back();
    piles_.pop_back();
    piles_.back().cause = host.MergeCauses(piles_.back().cause, top.cause);
    piles_.back().causes += top.causes;
  }

  std::vector<Pile> piles_;  // each of more causes than the next
};

}  // namespace wavetank::pilot
