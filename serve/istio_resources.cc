#include "serve/istio_resources.h"

#include <string>
#include <utility>

#include "core/config/schema/istio_definitions.h"
#include "fakes/kube/cluster.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/world.h"

namespace wavetank::serve {

using nlohmann::json;

absl::Status DefineIstioResources(sim::World& world) {
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const fakekube::ApiServer& api = world.cluster(cluster.name).api();
    for (json& definition : pilot::IstioDefinitions()) {
      const std::string name = definition["metadata"]["name"];
      if (api.Get("CustomResourceDefinition.apiextensions.k8s.io", {"", name}) != nullptr) continue;
      const absl::Status status = world.Do(sim::inputs::ApplyObject{cluster.name, std::move(definition)});
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::serve
