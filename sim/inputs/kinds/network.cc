#include "sim/inputs/kinds/network.h"

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "sim/inputs/fields.h"
#include "sim/world_inputs.h"

namespace wavetank::sim::inputs {
namespace {

// Connections that stand go on, or not, by what the underlay says now.
void LookAtConnections(InputTarget& target) {
  MeshNetwork& network = *target.commons.network;
  target.commons.plane->fabric().CutWhere(
      [&network](const envoysim::Origin& origin, const SocketAddress& dialled, const envoysim::AcceptInfo& info) {
        return !network.StillPasses(origin, dialled, info);
      });
}

void EmitFault(InputTarget& target, bool started, const std::string& subject) {
  TraceRecord record;
  record.kind = started ? TraceKind::kFaultStarted : TraceKind::kFaultEnded;
  record.subject = target.host.Intern(subject);
  target.host.Emit(record);
}

}  // namespace

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
  EmitFault(target, quality.cut, line.name());
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

void SetFirewall::Fields(FieldVisitor& visitor) {
  visitor.Visit("state", Need::kRequired, state);
  if (state != "deny" && state != "allow" && state != "removed") visitor.Refuse("state", "is deny, allow or removed");
  visitor.Visit("name", Need::kSparse, name);
  visitor.Visit("from", Need::kSparse, from);
  visitor.Visit("to", Need::kSparse, to);
  visitor.Visit("ports", Need::kSparse, ports);
  visitor.Visit("reject", Need::kSparse, reject);
  visitor.Visit("established", Need::kSparse, established);
}

absl::Status SetFirewall::Apply(InputTarget& target) const {
  Underlay& underlay = *target.commons.network->underlay();
  WorldFirewall rule{name, from, to, {}, state == "allow", reject, established};
  for (const std::string& port : ports) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(port, &number))
      return absl::InvalidArgumentError(fmt::format("firewall: '{}' is no port; write 1 to 65535", port));
    rule.ports.push_back(number);
  }
  absl::Status status = state == "removed" ? underlay.RemoveFirewall(name) : underlay.SetFirewall(rule);
  if (!status.ok()) return status;
  LookAtConnections(target);
  EmitFault(target, state == "deny", name.empty() ? "firewall" : "firewall " + name);
  return absl::OkStatus();
}

void SetRoute::Fields(FieldVisitor& visitor) {
  visitor.Visit("from", Need::kRequired, from);
  visitor.Visit("to", Need::kRequired, to);
  visitor.Visit("ranges", Need::kSparse, ranges);
  visitor.Visit("lost", Need::kLenient, lost);
}

absl::Status SetRoute::Apply(InputTarget& target) const {
  Underlay& underlay = *target.commons.network->underlay();
  const absl::StatusOr<Underlay::Road> road = underlay.ReadRoad(from, to, ranges);
  if (!road.ok()) return road.status();
  if (lost) {
    underlay.Lose(*road);
  } else if (!underlay.Restore(*road)) {
    return absl::InvalidArgumentError(
        fmt::format("the route from {} to {} was not lost; name it as it was when it got lost", from, to));
  }
  LookAtConnections(target);
  EmitFault(target, lost, fmt::format("route {} to {}", from, to));
  return absl::OkStatus();
}

}  // namespace wavetank::sim::inputs

namespace wavetank::sim {
void RegisterNetwork(InputTable& table) {
  table.Add<inputs::SetLink>();
  table.Add<inputs::SetLoadBalancer>();
  table.Add<inputs::SetFirewall>();
  table.Add<inputs::SetRoute>();
}
}  // namespace wavetank::sim
