// Model-based: commands of rc::state, each something that may happen to the mesh, and what must hold after every one of
// them: a client in east has as many endpoints as the model counts pods there, and the gateway of west as long as west
// has any. With PLANT_FAULT=1 west's gateway has lost its address, and the shortest sequence that shows it is printed.
#include <wavetank/rapidcheck.h>

#include <cstdlib>
#include <map>
#include <string>

#include "my_mesh.h"

namespace {

// What the model says of a Deployment: what it was scaled to last.
int64_t Replicas(const wavetank::Lived& lived, const std::string& deployment) {
  int64_t out = 1;
  for (const wavetank::Event& event : lived.history) {
    const auto& fields = event.action.fields;
    if (event.action.kind == "scale" && fields.at("deployment").Text() == deployment)
      out = fields.at("replicas").Integer();
  }
  return out;
}

void MatchesTheModel(const wavetank::Lived& lived, wavetank::World& world) {
  const auto settled = world.Settle();
  if (!settled.ok()) RC_FAIL(settled.error());
  const auto endpoints = world.Endpoints("sleep@east");
  if (!endpoints.ok()) RC_FAIL(endpoints.error());
  int64_t pods = 0, gateways = 0;
  for (const wavetank::Endpoint& each : *endpoints) {
    if (each.upstream != "outbound|8080||web.sample.svc.cluster.local") continue;
    (each.address.ends_with(":15443") ? gateways : pods)++;
  }
  const bool beyond = Replicas(lived, "sample/web-v2") > 0;
  if (pods == Replicas(lived, "sample/web-v1") && gateways == (beyond ? 1 : 0)) return;
  RC_FAIL(std::to_string(pods) + " pods and " + std::to_string(gateways) + " gateways are endpoints" +
          "\nagain: " + wavetank::Reproduction(world));
}

}  // namespace

int main() {
  setenv("RC_PARAMS", "max_success=15 max_size=6", 0);
  const char* const plant = std::getenv("PLANT_FAULT");
  const bool planted = plant != nullptr && std::string(plant) == "1";
  const bool held = rc::check("endpoints are what the model says", [planted] {
    auto world = wavetank::World::Open(MyMesh());
    if (!world.ok()) RC_FAIL(world.error());
    if (planted)
      RC_ASSERT(
          world
              ->Do({"loadBalancer",
                    {{"cluster", "west"}, {"service", "istio-system/istio-eastwestgateway"}, {"address", "none"}}})
              .ok());
    rc::state::check(wavetank::Lived{MyMesh(), {}}, *world, wavetank::Happenings({.faults = false}, MatchesTheModel));
  });
  return held ? 0 : 1;
}
