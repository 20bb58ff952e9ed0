#include "sim/kernel.h"

#include <algorithm>
#include <utility>

namespace wavetank::sim {

class Kernel::KernelHost final : public Host {
 public:
  KernelHost(Kernel& kernel, std::string name, int cpus, const CostModel* costs)
      : kernel_(kernel), name_(std::move(name)), busy_until_(static_cast<size_t>(cpus)), costs_(costs) {}

  Time Now() const override { return kernel_.now_; }

  TimerId RunAfter(Duration delay, Callback fn) override {
    return TimerId(kernel_.queue_.Push(kernel_.now_ + delay, {std::move(fn), kernel_.cause_, 0}));
  }

  bool Cancel(TimerId timer) override { return kernel_.queue_.Cancel(static_cast<uint64_t>(timer)); }

  // Work is not preempted and runs in order of arrival, each piece on the processor that is free first.
  void Spend(const Work& work, Callback done) override {
    if (busy_until_.empty() || costs_ == nullptr) return Post(std::move(done));
    auto cpu = std::min_element(busy_until_.begin(), busy_until_.end());
    const Duration cost = costs_->Cost(work);
    *cpu = std::max(*cpu, kernel_.now_) + cost;
    kernel_.spent_ += cost;
    RunAfter(*cpu - kernel_.now_, std::move(done));
  }

  CauseId cause() const override { return kernel_.cause_; }
  void set_cause(CauseId cause) override { kernel_.cause_ = cause; }
  CauseId MergeCauses(CauseId a, CauseId b) override { return kernel_.causes_.Merge(a, b); }
  void Emit(const TraceRecord& record) override { kernel_.Emit(record); }
  NameId Intern(std::string_view name) override { return kernel_.names_.Intern(name); }

 private:
  Kernel& kernel_;
  std::string name_;
  std::vector<Time> busy_until_;
  const CostModel* costs_;
};

Kernel::Kernel(uint64_t seed) : seed_(seed) {}

Kernel::~Kernel() {
  // Callbacks may own what holds hosts; they go first, while the hosts still stand.
  Time ignored;
  while (!queue_.empty()) queue_.Pop(&ignored);
}

Host& Kernel::NewHost(std::string name, int cpus, const CostModel* costs) {
  hosts_.push_back(std::make_unique<KernelHost>(*this, std::move(name), cpus, costs));
  return *hosts_.back();
}

bool Kernel::Step() {
  if (queue_.empty()) return false;
  EventQueue::Event event = queue_.Pop(&now_);
  cause_ = event.cause;
  ++dispatched_;
  event.fn();
  cause_ = kNoCause;
  return true;
}

void Kernel::RunUntil(Time time) {
  while (!queue_.empty() && queue_.NextTime() <= time) Step();
  now_ = std::max(now_, time);
}

void Kernel::Emit(const TraceRecord& record) {
  const uint64_t index = digest_.records();
  const uint64_t hash =
      digest_.Add(now_, record, names_.Text(record.subject), names_.Text(record.object), causes_.Inputs(cause_));
  if (observers_.empty()) return;
  const TraceEvent event{index, now_, cause_, record, hash};
  for (const auto& observer : observers_) observer(event);
}

}  // namespace wavetank::sim
