#include "import/evidence/traffic.h"

#include <algorithm>
#include <cmath>

namespace wavetank::importing {
namespace {

// 5, 6, 7.2, ...: the boundaries of steps, in tenths of a millisecond for the first ones, so that 1 ms is one.
int16_t StepOf(int64_t ms) {
  if (ms <= 5) return static_cast<int16_t>(std::max<int64_t>(ms, 0));
  double bound = 5;
  int16_t step = 5;
  while (bound * 1.2 <= static_cast<double>(ms) && step < 200) {
    bound *= 1.2;
    ++step;
  }
  return step;
}

int64_t MiddleOf(int16_t step) {
  if (step <= 5) return step;
  double bound = 5;
  for (int16_t i = 5; i < step; ++i) bound *= 1.2;
  return static_cast<int64_t>(std::llround(bound * 1.1));
}

}  // namespace

void Durations::Add(int64_t ms) {
  ++steps_[StepOf(ms)];
  ++count_;
}

void Durations::Add(const Durations& other) {
  for (const auto& [step, count] : other.steps_) steps_[step] += count;
  count_ += other.count_;
}

int64_t Durations::Quantile(double share) const {
  uint64_t seen = 0;
  for (const auto& [step, count] : steps_) {
    seen += count;
    if (static_cast<double>(seen) >= share * static_cast<double>(count_)) return MiddleOf(step);
  }
  return -1;
}

void TrafficWindow::Add(const TrafficWindow& other) {
  if (requests == 0 || other.first < first) {
    first = other.first;
    place = other.place;
  }
  last = requests == 0 ? other.last : std::max(last, other.last);
  requests += other.requests;
  for (const auto& [code, count] : other.codes) codes[code] += count;
  for (const auto& [flag, count] : other.flags) flags[flag] += count;
  for (const auto& [upstream, count] : other.upstreams) upstreams[upstream] += count;
  durations.Add(other.durations);
}

}  // namespace wavetank::importing
