#include "capacity/metrics/run_metrics.h"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "capacity/metrics/istiod_metrics.h"
#include "core/base/duration.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::capacity {

struct RunMetrics::Impl {
  Duration interval = 15s;
  IstiodMetrics metrics;
  Exposition samples;

  void Take(Time at) {
    samples.At(kWorldEpochUnixSeconds * 1000 +
               std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count());
    metrics.Collect(samples);
  }
};

absl::Status RunMetrics::Check(const std::string& interval) {
  const std::optional<Duration> time = ParseDuration(interval);
  if (time && *time >= 1ms) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("--metrics-interval '{}': write 1ms or more, as 15s", interval));
}

RunMetrics::RunMetrics(const std::string& interval) : impl_(std::make_shared<Impl>()) {
  impl_->interval = ParseDuration(interval).value_or(15s);
}
RunMetrics::~RunMetrics() = default;

void RunMetrics::Attach(scenario::RunOptions* options) {
  options->on_world = [impl = impl_, before = std::move(options->on_world)](sim::World& world) {
    if (before) before(world);
    impl->metrics.Every(impl->interval, [impl](Time at) { impl->Take(at); });
    impl->metrics.Observe(world.kernel());
  };
  options->on_end = [impl = impl_, before = std::move(options->on_end)](sim::World& world) {
    if (before) before(world);
    impl->metrics.TakeWhatIsDue(world.Now());
    impl->Take(world.Now());
  };
}

absl::Status RunMetrics::Write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  out << impl_->samples.Text();
  out.flush();
  if (!out) return absl::UnavailableError(fmt::format("--metrics {}: cannot be written", path));
  return absl::OkStatus();
}

}  // namespace wavetank::capacity
