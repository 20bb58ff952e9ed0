#include "serve/agent/real_host.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

namespace wavetank::serve {
namespace {

int64_t Steady() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Says so when it is destroyed, run or not.
struct Signal {
  std::mutex mutex;
  std::condition_variable done;
  bool ran = false, over = false;
};
struct Ticket {
  explicit Ticket(std::shared_ptr<Signal> s) : signal(std::move(s)) {}
  Ticket(Ticket&&) = default;
  ~Ticket() {
    if (signal == nullptr) return;
    const std::lock_guard<std::mutex> lock(signal->mutex);
    signal->over = true;
    signal->done.notify_all();
  }
  std::shared_ptr<Signal> signal;
};

}  // namespace

Time RealHost::Now() const {
  const auto unix_time = std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
  return Time(unix_time - std::chrono::seconds(kWorldEpochUnixSeconds));
}

TimerId RealHost::RunAfter(Duration delay, Callback fn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t id = next_++;
  // A timer that is due after three hundred years is never due.
  const int64_t now = Steady();
  const int64_t at = now + std::clamp<int64_t>(delay.count(), 0, std::numeric_limits<int64_t>::max() - now);
  waiting_.emplace(Due{at, id}, std::move(fn));
  timers_[id] = {at, id};
  wake_.notify_all();
  return TimerId{id};
}

bool RealHost::Cancel(TimerId timer) {
  Callback gone;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = timers_.find(static_cast<uint64_t>(timer));
  if (it == timers_.end()) return false;
  const auto waiting = waiting_.find(it->second);
  if (waiting != waiting_.end()) {
    gone = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  timers_.erase(it);
  return true;
}

void RealHost::Spend(const Work& /*work*/, Callback done) { RunAfter(Duration::zero(), std::move(done)); }
void RealHost::set_cause(CauseId /*cause*/) {}
CauseId RealHost::MergeCauses(CauseId /*a*/, CauseId /*b*/) { return kNoCause; }
void RealHost::Emit(const TraceRecord& /*record*/) {}
NameId RealHost::Intern(std::string_view /*name*/) { return kNoName; }

bool RealHost::Call(Callback fn) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return false;
  }
  RunAfter(Duration::zero(), std::move(fn));
  return true;
}

bool RealHost::CallAndWait(Callback fn) {
  auto signal = std::make_shared<Signal>();
  if (!Call([ticket = Ticket(signal), fn = std::move(fn)]() mutable {
        fn();
        const std::lock_guard<std::mutex> lock(ticket.signal->mutex);
        ticket.signal->ran = true;
      })) {
    return false;
  }
  std::unique_lock<std::mutex> lock(signal->mutex);
  signal->done.wait(lock, [&] { return signal->over; });
  return signal->ran;
}

void RealHost::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    if (waiting_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto first = waiting_.begin();
    const int64_t left = first->first.first - Steady();
    if (left > 0) {
      wake_.wait_for(lock, std::chrono::nanoseconds(std::min<int64_t>(left, int64_t{3600} * 1'000'000'000)));
      continue;
    }
    Callback fn = std::move(first->second);
    timers_.erase(first->first.second);
    waiting_.erase(first);
    lock.unlock();
    fn();
    fn = nullptr;
    lock.lock();
  }
}

void RealHost::Stop() {
  std::map<Due, Callback> gone;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  gone.swap(waiting_);
  timers_.clear();
  wake_.notify_all();
}

}  // namespace wavetank::serve
