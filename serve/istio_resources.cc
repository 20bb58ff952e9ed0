#include "serve/istio_resources.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/config/schema/istio_definitions.h"
#include "core/gateway_api/definitions.h"
#include "core/gateway_api/objects.h"
#include "core/profile/changes.h"
#include "fakes/kube/cluster.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/world.h"

namespace wavetank::serve {

using nlohmann::json;

namespace {

bool HoldsGatewayApi(const fakekube::ApiServer& api) {
  const std::vector<std::string> kinds = gatewayapi::KindNames();
  return std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
    return !api.List(kind + "." + std::string(gatewayapi::kGroup)).empty();
  });
}

}  // namespace

absl::Status DefineIstioResources(sim::World& world) {
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const fakekube::ApiServer& api = world.cluster(cluster.name).api();
    const bool v1 = world.profile().Has(pilot::Change::kConfigPathsOfV1);
    std::vector<json> definitions = v1 ? pilot::IstioDefinitionsWithV1() : pilot::IstioDefinitions();
    if (HoldsGatewayApi(api)) {
      for (json& definition : gatewayapi::Definitions()) definitions.push_back(std::move(definition));
    }
    for (json& definition : definitions) {
      const std::string name = Text(At(definition, "metadata"), "name");
      if (api.Get("CustomResourceDefinition.apiextensions.k8s.io", {"", name}) != nullptr) continue;
      const absl::Status status = world.Do(sim::inputs::ApplyObject{cluster.name, std::move(definition)});
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::serve
