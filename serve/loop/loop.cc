#include "serve/loop/loop.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace wavetank::serve {

Time CalendarTime() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Time(std::chrono::duration_cast<Duration>(since) - std::chrono::seconds(kWorldEpochUnixSeconds));
}

Loop::Loop(std::unique_ptr<sim::World> world) : owned_(std::move(world)), world_(owned_.get()) {}

Loop::Loop(sim::World& world) : world_(&world) {}

Loop::~Loop() { Stop(); }

void Loop::Drive() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (started_ || stopping_) return;
    started_ = true;
  }
  thread_id_ = std::this_thread::get_id();
  start_ = world_->Now();
  real_start_ = RealClock::now();
  world_->pace = [this](Time time) { RunUntil(time); };
}

void Loop::RunUntil(Time time) {
  while (world_->Now() < time && Turn(time)) {
  }
  world_->kernel().RunUntil(time);
}

Time Loop::VirtualNow() {
  const Time now = VirtualAt(RealClock::now());
  if (!never_hurries_) return now;
  constexpr Duration kMostAtOnce = 1ms;
  const std::optional<Time> next = world_->kernel().NextTime();
  if (!next || now - *next <= kMostAtOnce) return now;
  real_start_ += std::chrono::duration_cast<RealClock::duration>(now - *next - kMostAtOnce);
  return *next + kMostAtOnce;
}

void Loop::Start(std::optional<Time> now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (started_ || stopping_) return;
  started_ = true;
  thread_ = std::thread([this, now] { Run(now); });
}

void Loop::Stop() {
  std::deque<Task> dropped;
  FairQueue<Task> dropped_clients;
  std::multimap<RealClock::time_point, Task> dropped_later;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    dropped.swap(posted_);
    std::swap(dropped_clients, clients_);
    dropped_later.swap(later_);
  }
  if (thread_.joinable()) {
    thread_.join();
  } else if (OnLoopThread()) {
    world_->pace = nullptr;
    thread_id_ = std::thread::id();
  }
}

bool Loop::Post(Task task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return false;
  posted_.push_back(std::move(task));
  if (posted_.size() == 1) wake_.notify_one();
  return true;
}

bool Loop::PostFor(const std::string& client, Task task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return false;
  if (clients_.empty()) wake_.notify_one();
  clients_.Push(client, std::move(task));
  return true;
}

bool Loop::PostAfter(Duration delay, Task task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return false;
  const auto at = RealClock::now() + std::chrono::duration_cast<RealClock::duration>(delay);
  if (later_.empty() || at < later_.begin()->first) wake_.notify_one();
  later_.emplace(at, std::move(task));
  return true;
}

void Loop::Run(std::optional<Time> now) {
  thread_id_ = std::this_thread::get_id();
  if (now) world_->RunUntil(*now);
  start_ = world_->Now();
  real_start_ = RealClock::now();
  while (Turn(std::nullopt)) {
  }
  MaybeCommit(true);
  thread_id_ = std::thread::id();
}

void Loop::WhenDurable(Release fn) {
  WAVETANK_ASSERT(OnLoopThread());
  if (held_.empty() && (durability_.pending == nullptr || !durability_.pending())) return fn(absl::OkStatus());
  if (held_.empty()) held_since_ = RealClock::now();
  held_.push_back(std::move(fn));
}

void Loop::MaybeCommit(bool last) {
  // While requests wait, answers gather, but none is held for longer than a commit takes on most disks.
  constexpr auto kLongest = std::chrono::milliseconds(2);
  constexpr size_t kMost = 512;
  if (held_.empty()) return;
  if (!last && held_.size() < kMost && RealClock::now() - held_since_ < kLongest) return;
  const absl::Status status = durability_.commit();
  std::deque<Release> released = std::exchange(held_, {});
  for (Release& fn : released) fn(status);
}

bool Loop::Turn(std::optional<Time> limit) {
  // A driven world's RunUntil() leads here.
  sim::Kernel& kernel = world_->kernel();
  const auto bounded = [&](Time time) { return std::max(world_->Now(), limit ? std::min(*limit, time) : time); };
  std::deque<Task> batch;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // A far event must not overflow the real clock; waking once an hour for nothing costs nothing.
    const auto now_real = RealClock::now();
    std::optional<Time> next = kernel.NextTime();
    if (limit) next = std::min(next.value_or(*limit), *limit);
    auto until = now_real + 1h;
    if (next) until = now_real + std::clamp<Duration>(*next - VirtualAt(now_real), 0ns, 1h);
    if (!later_.empty()) until = std::min(until, later_.begin()->first);
    if (until > now_real && posted_.empty() && clients_.empty() && !stopping_) wake_.wait_until(lock, until);
    if (stopping_) return false;
    batch.swap(posted_);
    while (!later_.empty() && later_.begin()->first <= RealClock::now()) {
      batch.push_back(std::move(later_.begin()->second));
      later_.erase(later_.begin());
    }
    if (!clients_.empty()) batch.push_back(clients_.Pop());
  }
  for (Task& task : batch) {
    kernel.RunUntil(bounded(VirtualNow()));
    task(*world_);
    task = nullptr;  // what it holds goes before the next one runs
  }
  kernel.RunUntil(bounded(VirtualNow()));
  bool more = false;
  if (!held_.empty()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    more = !posted_.empty() || !clients_.empty();
  }
  MaybeCommit(!more);
  return true;
}

}  // namespace wavetank::serve
