// Pending events of a world, ordered by (time, sequence number).
//
// A 4-ary implicit heap over small keys; the callbacks stay where they are, in slots that are used again. Push and pop
// are O(log n) with two to three cache lines touched, cancel is O(1): the key stays and is skipped when it comes up.
// bench/kernel.cc has the figures and those of the alternatives that were tried.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "core/base/host.h"

namespace wavetank::sim {

class EventQueue {
 public:
  struct Event {
    Callback fn;
    CauseId cause = kNoCause;
  };

  // Returns the event's handle for Cancel(); handles are never 0 and never used again.
  uint64_t Push(Time time, Event event);
  // False if it already ran or was cancelled.
  bool Cancel(uint64_t handle);

  bool empty() const { return live_ == 0; }
  size_t size() const { return live_; }
  // Of the earliest event; the queue must not be empty.
  Time NextTime();
  // Removes the earliest event.
  Event Pop(Time* time);

 private:
  // Sequence number in the upper 40 bits, slot in the lower 24: one comparison orders, and four children share a cache
  // line. A world may have 16 million events pending and 10^12 in its life.
  static constexpr int kSlotBits = 24;
  static constexpr uint64_t kMaxSlots = uint64_t{1} << kSlotBits, kMaxSequence = uint64_t{1} << (64 - kSlotBits);
  struct Key {
    int64_t time;
    uint64_t ticket;
    bool operator<(const Key& other) const { return time != other.time ? time < other.time : ticket < other.ticket; }
    size_t slot() const { return ticket & ((1u << kSlotBits) - 1); }
  };
  struct Slot {
    Event event;
    uint64_t ticket = 0;  // of the event that is here; 0 if none
  };

  bool Stale(const Key& key) const { return slots_[key.slot()].ticket != key.ticket; }
  Event Take(size_t slot);
  void DropStale();
  void RemoveTop();
  void SiftUp(size_t i);
  void SiftDown(size_t i);

  // The four children of an entry share a cache line: the first entry stands at kRoot of a line's four.
  static constexpr size_t kRoot = 3;
  struct Lines : std::allocator<Key> {
    template <typename U>
    struct rebind {
      using other = Lines;
    };
    Key* allocate(size_t n) { return static_cast<Key*>(::operator new (n * sizeof(Key), std::align_val_t{64})); }
    void deallocate(Key* at, size_t) { ::operator delete (at, std::align_val_t{64}); }
  };
  static constexpr size_t Parent(size_t i) { return i / 4 + kRoot - 1; }
  static constexpr size_t FirstChild(size_t i) { return 4 * (i - kRoot + 1); }

  std::vector<Key, Lines> heap_ = std::vector<Key, Lines>(kRoot);
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  uint64_t sequence_ = 1;
  size_t live_ = 0;
};

}  // namespace wavetank::sim
