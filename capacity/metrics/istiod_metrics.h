// The metrics of a world's istiods, with the names, labels and buckets of istiod 1.18 (istiod:
// pilot/pkg/xds/monitoring.go, pilot/pkg/serviceregistry/kube/controller/controller.go,
// security/pkg/server/ca/monitoring.go). What istiod counts is read off the trace; processor time and memory are the
// cost model's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "capacity/metrics/exposition.h"
#include "capacity/model/cost_model.h"
#include "core/base/time.h"

namespace wavetank::sim {
class Kernel;
}

namespace wavetank::capacity {

class IstiodMetrics {
 public:
  explicit IstiodMetrics(CostModel model = CostModel());
  ~IstiodMetrics();

  // From now on; before anything happens in the world, whose kernel must outlive what is asked here.
  void Observe(sim::Kernel& kernel);
  // With each `interval` of virtual time, before anything happens after it; not in the middle of an event.
  void Every(Duration interval, std::function<void(Time)> then);

  // What was due before `now`, where a run ends and no event follows that would ask for it.
  void TakeWhatIsDue(Time now);

  // Of all istiods that run or ran, told apart by the label `pod`, as Prometheus' scrape would add it.
  void Collect(Exposition& out) const;
  std::string Text() const;
  // Of the newest istiod of a cluster, without that label, as its own port answers; empty: there was none.
  std::string TextOf(std::string_view cluster) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace wavetank::capacity
