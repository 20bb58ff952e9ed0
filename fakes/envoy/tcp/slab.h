// Objects at stable addresses, named by ids that notice when their object is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/assert.h"

namespace wavetank::envoysim {

// An id is generation << 32 | (index + 1). Ids of freed objects are never valid again until a slot was reused 2^32
// times. Allocation and lookup are O(1); memory is returned only on destruction.
template <typename T, typename Id>
class Slab {
 public:
  Id Allocate() {
    uint32_t index;
    if (free_.empty()) {
      index = size_++;
      if (index % kChunk == 0) chunks_.push_back(std::make_unique<Slot[]>(kChunk));
    } else {
      index = free_.back();
      free_.pop_back();
    }
    Slot& slot = At(index);
    WAVETANK_ASSERT(!slot.used, index, size_);  // else two holders have one object
    slot.used = true;
    return static_cast<Id>(static_cast<uint64_t>(slot.generation) << 32 | (index + 1));
  }

  T* Get(Id id) {
    const uint64_t raw = static_cast<uint64_t>(id);
    const uint32_t position = static_cast<uint32_t>(raw);
    if (position == 0 || position > size_) return nullptr;
    Slot& slot = At(position - 1);
    return slot.used && slot.generation == raw >> 32 ? &slot.value : nullptr;
  }
  const T* Get(Id id) const { return const_cast<Slab*>(this)->Get(id); }

  // `id` must be valid. The value is reset to T{}.
  void Free(Id id) {
    const uint32_t index = static_cast<uint32_t>(static_cast<uint64_t>(id)) - 1;
    WAVETANK_ASSERT(index < size_, index, size_);
    Slot& slot = At(index);
    WAVETANK_ASSERT(slot.used, index, slot.generation);
    WAVETANK_ASSERT(slot.generation == static_cast<uint64_t>(id) >> 32, index, slot.generation);
    slot.used = false;
    ++slot.generation;
    slot.value = T{};
    free_.push_back(index);
  }

  uint32_t in_use() const { return size_ - static_cast<uint32_t>(free_.size()); }

  // In order of slots.
  template <typename Fn>
  void ForEach(Fn fn) {
    for (uint32_t i = 0; i < size_; ++i) {
      Slot& slot = At(i);
      if (slot.used) fn(static_cast<Id>(static_cast<uint64_t>(slot.generation) << 32 | (i + 1)), slot.value);
    }
  }

 private:
  static constexpr uint32_t kChunk = 64;
  struct Slot {
    uint32_t generation = 0;
    bool used = false;
    T value{};
  };
  Slot& At(uint32_t index) { return chunks_[index / kChunk][index % kChunk]; }

  std::vector<std::unique_ptr<Slot[]>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t size_ = 0;
};

}  // namespace wavetank::envoysim
