// Whatever happens to a mesh, when all is healed it is as it was. With PLANT_FAULT=1 the last gateway address that went
// stays gone: the property fails, and shows the smallest mesh and history that do so, and the log that replays them.
#include <wavetank/rapidcheck.h>

#include <cstdlib>
#include <string>

int main() {
  setenv("RC_PARAMS", "max_success=15", 0);
  const char* const plant = std::getenv("PLANT_FAULT");
  const bool planted = plant != nullptr && std::string(plant) == "1";
  const bool held = rc::check("a mesh recovers from what happened to it", [planted] {
    const wavetank::Sizes sizes{.clusters = 2, .apps = 1, .replicas = 2, .objects = 1, .events = 3, .remotes = false};
    const auto mesh = *wavetank::Meshes(sizes);
    const auto history = *wavetank::Histories(mesh, sizes);
    if (!planted) return wavetank::RequireRecovery(mesh, history);
    // Without an address of its gateway no cluster of another network reaches `c1`.
    auto world = wavetank::World::Open(mesh);
    if (!world.ok()) RC_FAIL(world.error());
    if (mesh.SeveralNetworks())
      RC_ASSERT(world
                    ->Do({"loadBalancer",
                          {{"cluster", "c1"}, {"service", "istio-system/istio-eastwestgateway"}, {"address", "none"}}})
                    .ok());
    RC_ASSERT(world->Do({"kill", {{"cluster", "c1"}, {"namespace", "istio-system"}, {"app", "istiod"}}}).ok());
    const std::string wrong = wavetank::WhatDoesNotRecover(*world, mesh, history);
    if (!wrong.empty()) RC_FAIL(wrong + "\nagain: " + wavetank::Reproduction(*world));
  });
  return held ? 0 : 1;
}
