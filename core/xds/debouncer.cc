#include "core/xds/debouncer.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/text/go_duration.h"
#include "fmt/format.h"

namespace wavetank::pilot {

// istiod: pilot/pkg/xds/discovery.go, debounce.
std::string DebouncedLine(uint64_t number, int64_t events, std::string_view what, Duration since_change,
                          Duration since_push, bool full) {
  return fmt::format("Push debounce stable[{}] {} for {}: {} since last change, {} since last push, full={}", number,
                     events, what, GoDurationText(since_change.count()), GoDurationText(since_push.count()), full);
}

// istiod: configsUpdated.
std::string DebouncedConfigs(std::string_view first, size_t keys) {
  return fmt::format("config {}{}", first, keys > 1 ? fmt::format(" and {} more configs", keys - 1) : "");
}

void Debouncer::Add(PushRequest request) {
  ++inbound_;
  if (request.reasons == 0) request.reasons = Reason(TriggerReason::kUnknown);
  if (!options_.debounce_eds && !request.full) return Start(std::move(request), 1, false);
  last_ = host_.Now();
  if (events_ == 0) {
    SetTimer(std::max(options_.after, Duration::zero()));  // as Go's timers: at once
    start_ = last_;
  }
  WAVETANK_ASSERT(pending_.has_value() == (events_ > 0), events_);
  WAVETANK_ASSERT(start_ <= last_, start_, last_);
  ++events_;
  causes_.Add(std::exchange(request.cause, kNoCause), host_);
  if (pending_) {
    pending_->Merge(std::move(request), host_);
  } else {
    pending_ = std::move(request);
  }
}

void Debouncer::SetTimer(Duration delay) {
  WAVETANK_ASSERT(delay >= Duration::zero(), delay);
  host_.Cancel(timer_);
  timer_ = host_.RunAfter(delay + BuggifyDelay(BuggifyPoint::kDebounceLate), [this] {
    timer_ = kNoTimer;
    if (free_) MaybePush();
  });
}

void Debouncer::MaybePush() {
  WAVETANK_ASSERT(free_);  // one push at a time
  const Duration since_first = host_.Now() - start_, quiet = host_.Now() - last_;
  // What is not over yet ends later than now, so that nothing spins at one instant.
  if (since_first < options_.max && quiet < options_.after) return SetTimer(options_.after - quiet);
  if (!pending_) return;
  free_ = false;
  PushRequest request = *std::move(pending_);
  pending_.reset();
  request.cause = causes_.Take(host_);
  Start(std::move(request), std::exchange(events_, 0), true);
}

void Debouncer::Start(PushRequest request, int events, bool debounced) {
  WAVETANK_ASSERT(events > 0, events);
  WAVETANK_ASSERT(committed_ + static_cast<uint64_t>(events) <= inbound_, committed_, events, inbound_);
  request.events = events;
  const ScopedCause cause(host_, request.cause);
  push_(std::move(request), [this, events, debounced, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    committed_ += static_cast<uint64_t>(events);
    WAVETANK_ASSERT(committed_ <= inbound_, committed_, inbound_);
    if (!debounced) return;
    WAVETANK_ASSERT(!free_);  // done is called once
    free_ = true;
    MaybePush();
  });
}

}  // namespace wavetank::pilot
