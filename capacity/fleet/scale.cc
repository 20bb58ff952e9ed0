#include "capacity/fleet/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"

namespace wavetank::capacity {
namespace {

constexpr double kLeastScale = 0.001, kMostScale = 10'000;

int64_t Times(int64_t value, double times) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::llround(static_cast<double>(value) * times)));
}

// Zero, never, stays so.
Duration Oftener(Duration every, double times) {
  if (every <= Duration::zero()) return every;
  return std::max<Duration>(1ms, Duration(static_cast<int64_t>(static_cast<double>(every.count()) / times)));
}

}  // namespace

Fleet Scaled(Fleet fleet, double times) {
  for (int64_t* count : {&fleet.proxies, &fleet.services, &fleet.nodes}) *count = Times(*count, times);
  fleet.zones = std::min(fleet.zones, fleet.nodes);
  if (fleet.traffic.entries > 0) fleet.traffic.entries = std::min<int64_t>(Times(fleet.traffic.entries, times), 1000);
  return fleet;
}

Fleet ScaledWithChurn(const Fleet& fleet, double times) {
  Fleet out = Scaled(fleet, times);
  ChurnSpec& churn = out.churn;
  for (Duration* every : {&churn.deploys, &churn.autoscaling, &churn.node_loss, &churn.config_edits}) {
    *every = Oftener(*every, times);
  }
  if (churn.flapping > 0) churn.flapping = Times(churn.flapping, times);
  return out;
}

absl::StatusOr<double> ParseScale(std::string_view text) {
  std::string_view number = text;
  if (number.ends_with('x')) number.remove_suffix(1);
  double times = 0;
  if (absl::SimpleAtod({number.data(), number.size()}, &times) && times >= kLeastScale && times <= kMostScale) {
    return times;
  }
  return absl::InvalidArgumentError(fmt::format("--scale '{}': write how many times as large, as 10x or 0.5x", text));
}

}  // namespace wavetank::capacity
