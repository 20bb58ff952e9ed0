#include "core/base/status.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reader/mappings.h"
#include "scenarios/reader/parts.h"
#include "sim/network/underlay.h"

namespace wavetank::scenario {
namespace {

std::vector<std::string> Texts(const Field& f) {
  std::vector<std::string> out;
  for (const Field& item : f.Items()) out.push_back(item.Text());
  return out;
}

void ReadRoute(const Field& f, std::vector<sim::WorldRoute>* out) {
  const std::vector<std::string> between = Texts(f["between"]), ranges = Texts(f["ranges"]);
  if (between.empty() != (f["from"].present() && f["to"].present()) || (between.empty() && !f["from"].present()))
    return f.Fail("a route has two ends", "write from: and to:, or between: [one, other]");
  if (between.size() != 2) return out->push_back({f["from"].Text(), f["to"].Text(), ranges});
  out->push_back({between[0], between[1], ranges});
  out->push_back({between[1], between[0], ranges});
}

sim::WorldFirewall ReadFirewall(const Field& f) {
  if (f["state"].Text() == "removed") f["state"].Fail("there is nothing to remove yet", "write deny or allow");
  sim::WorldFirewall out{f["name"].Text(), Texts(f["from"]), Texts(f["to"]), {}};
  for (const Field& port : f["ports"].Items()) out.ports.push_back(port.Integer(0, 1, 65535));
  out.allow = f["state"].Text() == "allow";
  out.reject = f["reject"].Flag(false);
  out.established = f["established"].Flag(false);
  return out;
}

sim::WorldNat ReadNat(const Field& f) {
  return {f["site"].Text(),
          f["address"].Text(),
          f["to"].Text(),
          f["port"].Integer(0, 0, 65535),
          f["toPort"].Integer(0, 0, 65535),
          Texts(f["source"]),
          f["as"].Text()};
}

}  // namespace

PhysicalSpec ReadPhysical(const Field& f, const Scenario& scenario) {
  CheckMapping(f, MappingNamed("physical"), &scenario);
  Scenario so_far;
  so_far.clusters = scenario.clusters;
  PhysicalSpec& out = so_far.physical;
  // Each item with those before it: the first that does not fit is the mistake.
  const auto fits = [&](const Field& item) {
    if (!item.ok()) return;
    if (const auto made = sim::Underlay::Create(MakeUnderlayPlan(so_far)); !made.ok())
      item.Fail(Message(made.status()));
  };
  for (const Field& item : f["sites"].Items()) {
    CheckMapping(item, MappingNamed("physical.site"), &scenario);
    out.sites.push_back({item["name"].Text(), Texts(item["clusters"]), Texts(item["private"])});
    fits(item);
  }
  for (const Field& item : f["routes"].Items()) {
    CheckMapping(item, MappingNamed("physical.route"), &scenario);
    ReadRoute(item, &out.routes);
    fits(item);
  }
  for (const Field& item : f["firewalls"].Items()) {
    CheckMapping(item, MappingNamed("action.firewall"), &scenario);
    out.firewalls.push_back(ReadFirewall(item));
    fits(item);
  }
  for (const Field& item : f["nat"].Items()) {
    CheckMapping(item, MappingNamed("physical.nat"), &scenario);
    out.nat.push_back(ReadNat(item));
    fits(item);
  }
  return out;
}

}  // namespace wavetank::scenario
