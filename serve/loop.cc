#include "serve/loop.h"

#include <algorithm>

namespace wavetank::serve {

Time CalendarTime() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Time(std::chrono::duration_cast<Duration>(since) - std::chrono::seconds(kWorldEpochUnixSeconds));
}

Loop::Loop(std::unique_ptr<sim::World> world) : world_(std::move(world)) {}

Loop::~Loop() { Stop(); }

void Loop::Start(std::optional<Time> now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (started_ || stopping_) return;
  started_ = true;
  thread_ = std::thread([this, now] { Run(now); });
}

void Loop::Stop() {
  std::deque<Posted> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    dropped.swap(posted_);
  }
  if (thread_.joinable()) thread_.join();
}

bool Loop::Post(Task task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return false;
  // The time is taken under the lock, so that the queue is in order of it.
  posted_.push_back({RealClock::now(), std::move(task)});
  if (posted_.size() == 1) wake_.notify_one();
  return true;
}

void Loop::Run(std::optional<Time> now) {
  thread_id_ = std::this_thread::get_id();
  if (now) world_->RunUntil(*now);
  start_ = world_->Now();
  real_start_ = RealClock::now();
  while (true) {
    std::deque<Posted> batch;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto something = [this] { return stopping_ || !posted_.empty(); };
      if (const std::optional<Time> next = world_->kernel().NextTime(); !next) {
        wake_.wait(lock, something);
      } else if (*next > VirtualAt(RealClock::now())) {
        // A far event must not overflow the real clock; waking once an hour for nothing costs nothing.
        const Duration ahead = std::min<Duration>(*next - VirtualAt(RealClock::now()), 1h);
        wake_.wait_for(lock, std::max<Duration>(ahead, 0ns), something);
      }
      if (stopping_) break;
      batch.swap(posted_);
    }
    for (Posted& posted : batch) {
      world_->RunUntil(std::max(world_->Now(), VirtualAt(posted.at)));
      posted.task(*world_);
      posted.task = nullptr;  // what it holds goes before the next one runs
    }
    world_->RunUntil(std::max(world_->Now(), VirtualAt(RealClock::now())));
  }
  thread_id_ = std::thread::id();
}

}  // namespace wavetank::serve
