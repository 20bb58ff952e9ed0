// The lines of the modelled network: one site per cluster, a line inside each and between every two.
//
// Fault model: a line is cut (nothing passes, neither end is told), loses segments with some probability, or is slow.
// TCP on top of it is fakes/envoy's Fabric; what else crosses a line (watches, ADS) asks Delay() and Up().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "fakes/envoy/tcp/network.h"

namespace wavetank::sim {

enum class SiteId : uint16_t {};

struct LineQuality {
  Duration latency{};  // one way
  Duration jitter{};   // uniform in [0, jitter], added
  int64_t loss_ppm = 0;
  bool cut = false;
};

// InvalidArgument if no line can be so: latency or jitter outside of 0 and an hour, loss outside of 0 and all.
absl::Status CheckQuality(const LineQuality& quality);

class Line final : public envoysim::Path {
 public:
  Line(uint64_t seed, std::string name, const LineQuality& quality)
      : name_(std::move(name)), stream_(seed, "line/" + name_) {
    set_quality(quality);
  }

  std::optional<Duration> Transit(Time now) override;

  const std::string& name() const { return name_; }
  const LineQuality& quality() const { return quality_; }
  // What CheckQuality() accepts.
  void set_quality(const LineQuality& quality);

 private:
  std::string name_;
  RandomStream stream_;
  LineQuality quality_;
};

// Both ends in one pod.
class PodPath final : public envoysim::Path {
 public:
  bool local() const override { return true; }
  std::optional<Duration> Transit(Time) override { return Duration::zero(); }
};

class Links {
 public:
  Links(uint64_t seed, const LineQuality& inside, const LineQuality& between);

  SiteId AddSite(std::string_view name);
  // Of sites that were added; the same for both orders.
  Line& Between(SiteId a, SiteId b);
  PodPath& pod() { return pod_; }
  const std::vector<std::string>& sites() const { return sites_; }

 private:
  uint64_t seed_;
  LineQuality inside_, between_;
  std::vector<std::string> sites_;
  std::map<std::pair<uint16_t, uint16_t>, std::unique_ptr<Line>> lines_;
  PodPath pod_;
};

}  // namespace wavetank::sim
