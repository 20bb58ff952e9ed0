#include "capacity/fleet/churn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "capacity/fleet/day.h"
#include "core/base/random.h"

namespace wavetank::capacity {
namespace {

constexpr size_t kMost = 5'000'000;

class Maker {
 public:
  Maker(const Fleet& fleet, uint64_t seed_offset, double faster)
      : fleet_(fleet), seed_(fleet.seed + seed_offset), faster_(faster) {
    for (int64_t cluster = 0; cluster < fleet.clusters; ++cluster) {
      for (const int64_t n : DrawEndpoints(fleet, cluster)) endpoints_.push_back(n);
    }
  }

  // `then` at moments that are `every` apart on average, as independent arrivals are.
  void Arrivals(std::string_view what, Duration every, const std::function<void(RandomStream&, Duration)>& then) {
    if (every <= Duration::zero()) return;
    RandomStream random(seed_, what);
    const double mean = static_cast<double>(every.count()) / faster_;
    Duration at{};
    for (;;) {
      const double uniform = (static_cast<double>(random.Below(1u << 30)) + 0.5) / static_cast<double>(1u << 30);
      at += Duration(static_cast<int64_t>(-mean * std::log(uniform)) + 1);
      if (at >= fleet_.duration || out_.size() > kMost) return;
      then(random, at);
    }
  }

  void Add(Duration at, Change change) {
    if (at >= Duration::zero() && at < fleet_.duration) out_.push_back({at, change});
  }

  // Pods are replaced in batches: a new one becomes ready, an old one goes, each a write of the slice.
  void Deploy(RandomStream& random, Duration at) {
    const int64_t pods = Pods(random);
    const int64_t batch = std::max<int64_t>(1, (pods * fleet_.churn.surge_ppm + 999'999) / 1'000'000);
    for (int64_t done = 0; done < pods; done += batch) {
      const int64_t now = std::min(batch, pods - done);
      for (int64_t i = 0; i < now; ++i) {
        const Duration ready = fleet_.churn.pod_start + Spread(random, fleet_.churn.pod_start / 2);
        Add(at + ready, Change::kEndpoints);
        Add(at + ready + 30ms, Change::kEndpoints);
      }
      at += fleet_.churn.pod_start + fleet_.churn.pod_start / 2;
    }
  }

  void Scale(RandomStream& random, Duration at) {
    const int64_t by = std::max<int64_t>(1, Pods(random) * fleet_.churn.swing_ppm / 1'000'000);
    for (int64_t i = 0; i < by; ++i) Add(at + fleet_.churn.pod_start + Spread(random, 1s), Change::kEndpoints);
  }

  // By the day's curve; faster churn is the same day in less time.
  void FollowDay() {
    if (fleet_.churn.day_ppm.empty()) return;
    RandomStream random(seed_, "day");
    Fleet stretched = fleet_;
    stretched.duration = Duration(static_cast<int64_t>(static_cast<double>(fleet_.duration.count()) * faster_));
    for (const Resize& resize : ResizesOfDay(stretched, endpoints_)) {
      const auto at = Duration(static_cast<int64_t>(static_cast<double>(resize.at.count()) / faster_));
      const bool grows = resize.to > resize.from;
      for (int64_t i = std::min(resize.from, resize.to); i < std::max(resize.from, resize.to); ++i) {
        Add(at + (grows ? fleet_.churn.pod_start : Duration::zero()) + Spread(random, 1s), Change::kEndpoints);
      }
      if (out_.size() > kMost) return;
    }
  }

  // Its pods turn unready at once, and others start one after the other.
  void LoseNode(RandomStream& random, Duration at) {
    const int64_t all = static_cast<int64_t>(endpoints_.size()) == 0 ? 0 : total() / (fleet_.clusters * fleet_.nodes);
    for (int64_t i = 0; i < all; ++i) {
      Add(at + Spread(random, 1s), Change::kEndpoints);
      Add(at + fleet_.churn.pod_start + Spread(random, 30s), Change::kEndpoints);
    }
  }

  absl::StatusOr<std::vector<ChangeEvent>> Take() {
    if (out_.size() > kMost) {
      return absl::ResourceExhaustedError(
          fmt::format("more than {} changes in {} s; let the churn be slower, or `duration` shorter", kMost,
                      fleet_.duration.count() / 1'000'000'000));
    }
    std::stable_sort(out_.begin(), out_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    return std::move(out_);
  }

 private:
  int64_t total() const {
    int64_t sum = 0;
    for (const int64_t n : endpoints_) sum += n;
    return sum;
  }
  int64_t Pods(RandomStream& random) const {
    return endpoints_.empty() ? 0 : endpoints_[random.Below(endpoints_.size())];
  }
  static Duration Spread(RandomStream& random, Duration over) {
    return Duration(random.Between(0, std::max<int64_t>(1, over.count())));
  }

  const Fleet& fleet_;
  const uint64_t seed_;
  const double faster_;
  std::vector<int64_t> endpoints_;
  std::vector<ChangeEvent> out_;
};

}  // namespace

absl::StatusOr<std::vector<ChangeEvent>> Churn(const Fleet& fleet, uint64_t seed_offset, double faster) {
  Maker maker(fleet, seed_offset, faster);
  const ChurnSpec& churn = fleet.churn;
  maker.Arrivals("deploys", churn.deploys, [&](RandomStream& random, Duration at) { maker.Deploy(random, at); });
  if (churn.flapping > 0) {
    maker.Arrivals("flapping", churn.flapping_every / churn.flapping,
                   [&](RandomStream&, Duration at) { maker.Add(at, Change::kEndpoints); });
  }
  maker.Arrivals("autoscaling", churn.autoscaling, [&](RandomStream& random, Duration at) { maker.Scale(random, at); });
  maker.FollowDay();
  maker.Arrivals("node loss", churn.node_loss, [&](RandomStream& random, Duration at) { maker.LoseNode(random, at); });
  maker.Arrivals("config edits", churn.config_edits,
                 [&](RandomStream&, Duration at) { maker.Add(at, Change::kService); });
  maker.Arrivals("secret rotation", churn.secret_rotation, [&](RandomStream&, Duration at) {
    maker.Add(at, Change::kSecretDeleted);
    maker.Add(at + 1s, Change::kSecretAdded);
  });
  return maker.Take();
}

}  // namespace wavetank::capacity
