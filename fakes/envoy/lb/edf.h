// Earliest-deadline-first scheduler: weighted round robin as Envoy does it. Envoy:
// source/common/upstream/edf_scheduler.h
//
// Deadlines advance by 1/weight. Envoy computes in double; here they are integers in units of 1/kScale, which is a
// multiple of every number up to 40, so that weights of practical size tie exactly as fractions do, on every compiler.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/assert.h"

namespace wavetank::envoysim {

class EdfScheduler {
 public:
  // lcm(1..40)
  static constexpr uint64_t kScale = 5342931457063200ull;

  // A weight as numerator / denominator; both > 0.
  struct Weight {
    uint64_t numerator = 1;
    uint64_t denominator = 1;
  };

  bool empty() const { return heap_.empty(); }
  void Clear() {
    heap_.clear();
    now_ = 0;
    order_ = 0;
  }

  // O(log n).
  void Add(Weight weight, uint32_t value) {
    heap_.push_back(Entry{now_ + Step(weight), order_++, value});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  // The next value, put back with weight_of(value). Must not be empty. O(log n).
  template <typename WeightOf>
  uint32_t PickAndAdd(WeightOf weight_of) {
    WAVETANK_ASSERT(!heap_.empty());
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    Entry& entry = heap_.back();
    WAVETANK_ASSERT(entry.deadline >= now_, entry.value);  // the scheduler's time never runs backwards
    now_ = entry.deadline;
    entry.deadline = now_ + Step(weight_of(entry.value));
    entry.order = order_++;
    const uint32_t value = entry.value;
    std::push_heap(heap_.begin(), heap_.end(), Later);
    return value;
  }

 private:
  using Deadline = unsigned __int128;
  struct Entry {
    Deadline deadline;
    uint64_t order;
    uint32_t value;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.deadline != b.deadline ? a.deadline > b.deadline : a.order > b.order;
  }
  static Deadline Step(Weight w) {
    WAVETANK_ASSERT(w.numerator > 0, w.denominator);
    WAVETANK_ASSERT(w.denominator > 0, w.numerator);
    const Deadline n = static_cast<Deadline>(kScale) * w.denominator;
    return std::max<Deadline>(n / w.numerator, 1);
  }

  std::vector<Entry> heap_;
  Deadline now_ = 0;
  uint64_t order_ = 0;
};

}  // namespace wavetank::envoysim
