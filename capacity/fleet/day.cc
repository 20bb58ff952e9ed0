#include "capacity/fleet/day.h"

#include <algorithm>

#include "core/base/assert.h"

namespace wavetank::capacity {
namespace {

constexpr Duration kDay = 24h;
constexpr Duration kLook = 15s;  // kube-controller-manager: --horizontal-pod-autoscaler-sync-period

}  // namespace

int64_t LoadAt(const ChurnSpec& churn, Duration at) {
  WAVETANK_ASSERT(!churn.day_ppm.empty());
  const auto points = static_cast<int64_t>(churn.day_ppm.size());
  const Duration time = (churn.day_begins + at) % kDay, apart = kDay / points;
  const int64_t before = std::min(time / apart, points - 1);
  const int64_t low = churn.day_ppm[static_cast<size_t>(before)];
  const int64_t high = churn.day_ppm[static_cast<size_t>((before + 1) % points)];
  const int64_t ms = (time - before * apart) / 1ms;
  return low + (high - low) * ms / (apart / 1ms);
}

int64_t PodsAt(const ChurnSpec& churn, int64_t endpoints, Duration at) {
  if (churn.day_ppm.empty() || endpoints == 0) return endpoints;
  return std::max<int64_t>(1, (endpoints * LoadAt(churn, at) + 500'000) / 1'000'000);
}

std::vector<Resize> ResizesOfDay(const Fleet& fleet, const std::vector<int64_t>& endpoints) {
  std::vector<Resize> out;
  // What has as many endpoints changes alike: its sizes at each look are worked out once.
  std::vector<size_t> order(endpoints.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return endpoints[a] < endpoints[b]; });
  std::vector<Resize> alike;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t pods = endpoints[order[i]];
    if (pods == 0) continue;
    if (i == 0 || endpoints[order[i - 1]] != pods) {
      alike.clear();
      int64_t now = PodsAt(fleet.churn, pods, Duration::zero());
      for (Duration at = kLook; at < fleet.duration; at += kLook) {
        const int64_t then = PodsAt(fleet.churn, pods, at);
        if (then != now) alike.push_back({at, 0, now, then});
        now = then;
      }
    }
    const Duration phase = kLook * static_cast<int64_t>(order[i] % 1000) / 1000;
    for (const Resize& resize : alike) out.push_back({resize.at + phase, order[i], resize.from, resize.to});
  }
  std::stable_sort(out.begin(), out.end(), [](const Resize& a, const Resize& b) { return a.at < b.at; });
  return out;
}

}  // namespace wavetank::capacity
