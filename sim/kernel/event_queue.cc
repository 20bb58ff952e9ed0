#include "sim/kernel/event_queue.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace wavetank::sim {

uint64_t EventQueue::Push(Time time, Event event) {
  uint64_t slot;
  if (free_.empty()) {
    slot = slots_.size();
    slots_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  // A slot or a number that does not fit would make two events one.
  WAVETANK_ASSERT(slot < kMaxSlots, slot, live_);
  WAVETANK_ASSERT(sequence_ < kMaxSequence, sequence_);
  WAVETANK_ASSERT(slots_[slot].ticket == 0, slot);
  const uint64_t ticket = sequence_++ << kSlotBits | slot;
  slots_[slot].event = std::move(event);
  slots_[slot].ticket = ticket;
  heap_.push_back(Key{time.time_since_epoch().count(), ticket});
  SiftUp(heap_.size() - 1);
  ++live_;
  return ticket;
}

EventQueue::Event EventQueue::Take(size_t slot) {
  WAVETANK_ASSERT(slot < slots_.size(), slot, slots_.size());
  WAVETANK_ASSERT(slots_[slot].ticket != 0, slot);
  WAVETANK_ASSERT(live_ > 0, slot);
  Event event = std::move(slots_[slot].event);
  slots_[slot].event = Event();
  slots_[slot].ticket = 0;
  free_.push_back(static_cast<uint32_t>(slot));
  --live_;
  return event;
}

bool EventQueue::Cancel(uint64_t handle) {
  const size_t slot = Key{0, handle}.slot();
  if (handle == 0 || slot >= slots_.size() || slots_[slot].ticket != handle) return false;
  // Destroyed at the end only: a callback's captures may schedule or cancel when they go.
  const Event doomed = Take(slot);
  // Keys of cancelled events would otherwise pile up when timers are set and cancelled far ahead of time.
  if (heap_.size() > 64 && heap_.size() > 2 * live_) {
    heap_.erase(std::remove_if(heap_.begin() + kRoot, heap_.end(), [this](const Key& key) { return Stale(key); }),
                heap_.end());
    for (size_t i = Parent(heap_.size()) + 1; i-- > kRoot;) {
      if (i < heap_.size()) SiftDown(i);
    }
  }
  return true;
}

void EventQueue::DropStale() {
  while (heap_.size() > kRoot && Stale(heap_[kRoot])) RemoveTop();
}

Time EventQueue::NextTime() {
  DropStale();
  WAVETANK_ASSERT(heap_.size() > kRoot, live_);
  return Time(Duration(heap_[kRoot].time));
}

EventQueue::Event EventQueue::Pop(Time* time) {
  DropStale();
  WAVETANK_ASSERT(heap_.size() > kRoot, live_);
  const Key top = heap_[kRoot];
  *time = Time(Duration(top.time));
  RemoveTop();
  return Take(top.slot());
}

void EventQueue::RemoveTop() {
  WAVETANK_DEBUG_ASSERT(heap_.size() > kRoot, heap_.size());
  heap_[kRoot] = heap_.back();
  heap_.pop_back();
  if (heap_.size() == kRoot) return;
  SiftDown(kRoot);
  __builtin_prefetch(slots_.data() + heap_[kRoot].slot());  // which the next Pop() takes
}

void EventQueue::SiftUp(size_t i) {
  const Key key = heap_[i];
  while (i > kRoot) {
    const size_t parent = Parent(i);
    if (!(key < heap_[parent])) break;
    heap_[i] = heap_[parent];
    i = parent;
  }
  heap_[i] = key;
}

void EventQueue::SiftDown(size_t i) {
  const Key key = heap_[i];
  const size_t size = heap_.size();
  while (true) {
    const size_t first = FirstChild(i);
    if (first >= size) break;
    // While these four are compared, the lines of all of theirs are on their way.
    const size_t next = FirstChild(first);
    if (next < size) {
      for (size_t line = 0; line < 16; line += 4) __builtin_prefetch(heap_.data() + next + line);
    }
    size_t least = first;
    const size_t last = std::min(first + 4, size);
    for (size_t child = first + 1; child < last; ++child) {
      if (heap_[child] < heap_[least]) least = child;
    }
    if (!(heap_[least] < key)) break;
    heap_[i] = heap_[least];
    i = least;
  }
  heap_[i] = key;
}

}  // namespace wavetank::sim
