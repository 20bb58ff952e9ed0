#include "sim/inputs/kinds/network.h"

#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {

void SetLink::Fields(FieldVisitor& visitor) {
  visitor.Visit("between", Need::kRequired, between);
  if (between.size() != 2) visitor.Refuse("between", "has not two ends");
  visitor.Visit("cut", cut);
  visitor.Visit("latencyNs", latency);
  visitor.Visit("jitterNs", jitter);
  visitor.Visit("lossPpm", loss_ppm);
}

absl::Status SetLink::Apply(InputTarget& target) const {
  if (between.size() != 2) return absl::InvalidArgumentError("a link has two ends");
  absl::StatusOr<World::Site*> a = target.FindSite(between[0]), b = target.FindSite(between[1]);
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  Line& line = target.links.Between((*a)->place().site, (*b)->place().site);
  LineQuality quality = line.quality();
  quality.cut = cut.value_or(quality.cut);
  quality.latency = latency.value_or(quality.latency);
  quality.jitter = jitter.value_or(quality.jitter);
  quality.loss_ppm = loss_ppm.value_or(quality.loss_ppm);
  if (absl::Status status = CheckQuality(quality); !status.ok()) return status;
  line.set_quality(quality);
  TraceRecord record;
  record.kind = quality.cut ? TraceKind::kFaultStarted : TraceKind::kFaultEnded;
  record.subject = target.host.Intern(line.name());
  target.host.Emit(record);
  return absl::OkStatus();
}

void SetLoadBalancer::Fields(FieldVisitor& visitor) {
  visitor.Visit("cluster", Need::kRequired, cluster);
  visitor.Visit("namespace", Need::kLenient, ns);
  visitor.Visit("name", Need::kRequired, name);
  visitor.Visit("address", Need::kRequired, address);
}

absl::Status SetLoadBalancer::Apply(InputTarget& target) const {
  absl::StatusOr<World::Site*> site = target.FindSite(cluster);
  if (!site.ok()) return site.status();
  return (*site)->cluster().SetLoadBalancerAddress({ns, name}, address);
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterNetwork(InputTable& table) {
  table.Add<inputs::SetLink>();
  table.Add<inputs::SetLoadBalancer>();
}
}  // namespace wavetank::sim
