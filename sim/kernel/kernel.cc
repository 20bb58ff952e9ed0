#include "sim/kernel/kernel.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/assert.h"

namespace wavetank::sim {

class Kernel::KernelHost final : public Host {
 public:
  KernelHost(Kernel& kernel, std::string name, int cpus, const CostModel* costs)
      : kernel_(kernel), name_(std::move(name)), processors_(cpus), idle_(cpus), costs_(costs) {
    WAVETANK_ASSERT(cpus >= 0, cpus, name_);
  }

  // Callbacks may own what holds hosts; they go before the first host does.
  void DropWork() {
    waiting_.clear();
    at_work_.clear();
  }

  Time Now() const override { return kernel_.now_; }
  Time WallClock() const override { return kernel_.now_ + ahead_; }
  void set_clock(Duration ahead) { ahead_ = ahead; }

  TimerId RunAfter(Duration delay, Callback fn) override {
    WAVETANK_ASSERT(delay >= Duration::zero(), delay, name_);
    WAVETANK_ASSERT(fn != nullptr, name_);
    // As Go's timers: what lies beyond the end of time is at its end (go: runtime/proc.go, when).
    const Time at = delay > Time::max() - kernel_.now_ ? Time::max() : kernel_.now_ + delay;
    return TimerId(kernel_.queue_.Push(at, {std::move(fn), kernel_.cause_}));
  }

  bool Cancel(TimerId timer) override { return kernel_.queue_.Cancel(static_cast<uint64_t>(timer)); }

  // As Go's scheduler does it: work waits in order of arrival for a free processor, but what the end of a piece of work
  // spends at once goes on where it is, up to a time slice (go: runtime/proc.go, forcePreemptNS). So a push to one
  // proxy is done when the next begins, and long ones still let others in.
  void Spend(const Work& work, Callback done) override {
    if (idle_ + running_ == 0 || costs_ == nullptr) return Post(std::move(done));
    Piece piece{costs_->Cost(work), kernel_.cause_, std::move(done)};
    WAVETANK_ASSERT(piece.cost >= Duration::zero(), piece.cost, work.kind, work.units, name_);
    kernel_.spent_ += piece.cost;
    if (holding_ && kernel_.now_ - slice_ < kSlice) {
      holding_ = false;
      Start(std::move(piece), slice_);
    } else if (idle_ > 0) {
      --idle_;
      ++running_;
      Start(std::move(piece), kernel_.now_);
    } else {
      waiting_.push_back(std::move(piece));
    }
  }

  CauseId cause() const override { return kernel_.cause_; }
  void set_cause(CauseId cause) override { kernel_.cause_ = cause; }
  CauseId MergeCauses(CauseId a, CauseId b) override { return kernel_.causes_.Merge(a, b); }
  void Emit(const TraceRecord& record) override { kernel_.Emit(record); }
  NameId Intern(std::string_view name) override { return kernel_.names_.Intern(name); }

 private:
  Kernel& kernel_;
  struct Piece {
    Duration cost;
    CauseId cause;
    Callback done;
  };
  struct AtWork {
    Callback done;
    Time slice;
  };
  static constexpr Duration kSlice = 10ms;

  // `slice`: since when its processor works on what belongs together.
  void Start(Piece piece, Time slice) {
    WAVETANK_ASSERT(running_ > 0, running_, name_);
    WAVETANK_ASSERT(idle_ + running_ == processors_, idle_, running_, processors_, name_);
    WAVETANK_ASSERT(slice <= kernel_.now_, slice, kernel_.now_, name_);
    const ScopedCause cause(*this, piece.cause);
    size_t at = at_work_.size();
    if (free_.empty()) {
      at_work_.emplace_back();
    } else {
      at = free_.back();
      free_.pop_back();
    }
    at_work_[at] = {std::move(piece.done), slice};
    RunAfter(piece.cost, [this, at] { Finish(at); });
  }

  void Finish(size_t at) {
    WAVETANK_ASSERT(at < at_work_.size(), at, at_work_.size(), name_);
    WAVETANK_ASSERT(!holding_, name_);  // a processor finishes one piece at a time
    AtWork work = std::exchange(at_work_[at], {});
    WAVETANK_ASSERT(work.done != nullptr, at, name_);
    free_.push_back(at);
    holding_ = true;
    slice_ = work.slice;
    work.done();
    if (!std::exchange(holding_, false)) return;
    if (waiting_.empty()) {
      ++idle_;
      --running_;
      WAVETANK_ASSERT(idle_ <= processors_, idle_, processors_, name_);
      return;
    }
    Piece next = std::move(waiting_.front());
    waiting_.pop_front();
    Start(std::move(next), kernel_.now_);
  }

  std::string name_;
  Duration ahead_{};
  const int processors_;
  int idle_, running_ = 0;     // of them
  std::deque<Piece> waiting_;  // for a processor
  // Pieces that are worked on, where their timers find them: a timer's own callback then needs no memory.
  std::vector<AtWork> at_work_;
  std::vector<size_t> free_;
  // While a piece's callback runs: its processor is still its own.
  bool holding_ = false;
  Time slice_{};
  const CostModel* costs_;
};

Kernel::Kernel(uint64_t seed) : seed_(seed), run_(now_, seed) {}

Kernel::~Kernel() {
  // Callbacks may own what holds hosts; they go first, while the hosts still stand.
  Time ignored;
  while (!queue_.empty()) queue_.Pop(&ignored);
  for (const auto& host : hosts_) host->DropWork();
}

Host& Kernel::NewHost(std::string name, int cpus, const CostModel* costs) {
  hosts_.push_back(std::make_unique<KernelHost>(*this, std::move(name), cpus, costs));
  return *hosts_.back();
}

void Kernel::SetClock(Host& host, Duration ahead) { static_cast<KernelHost&>(host).set_clock(ahead); }

bool Kernel::Step() {
  const assertion::ScopedRun scope(run_);
  return StepOnce();
}

bool Kernel::StepOnce() {
  if (queue_.empty()) return false;
  Time due;
  EventQueue::Event event = queue_.Pop(&due);
  WAVETANK_ASSERT(due >= now_, due, now_);  // time never runs backwards
  WAVETANK_ASSERT(event.fn != nullptr, due);
  now_ = due;
  cause_ = event.cause;
  ++dispatched_;
  event.fn();
  cause_ = kNoCause;
  return true;
}

void Kernel::RunUntil(Time time) {
  const assertion::ScopedRun scope(run_);
  while (!queue_.empty() && queue_.NextTime() <= time) StepOnce();
  now_ = std::max(now_, time);
}

void Kernel::AddObserver(std::function<void(const TraceEvent&)> observer) {
  WAVETANK_ASSERT(observer != nullptr);
  WAVETANK_ASSERT(!emitting_);  // it would miss the record that is being shown
  observers_.push_back(std::move(observer));
}

void Kernel::Emit(const TraceRecord& record) {
  WAVETANK_ASSERT(record.kind != TraceKind::kNone);
  WAVETANK_ASSERT(!emitting_, record.kind);  // an observer that emits would put its record before the one it sees
  const uint64_t index = digest_.records();
  digest_.Add(now_, record, names_.Text(record.subject), names_.Text(record.object), causes_.Inputs(cause_));
  if (observers_.empty()) return;
  const TraceEvent event{index, now_, cause_, record, digest_};
  emitting_ = true;
  for (const auto& observer : observers_) observer(event);
  emitting_ = false;
  WAVETANK_ASSERT(digest_.records() == index + 1, digest_.records(), index);
}

}  // namespace wavetank::sim
