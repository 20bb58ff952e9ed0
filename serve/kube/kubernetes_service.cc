#include "serve/kube/kubernetes_service.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "fakes/kube/cluster.h"
#include "fakes/kube/objects/manifest.h"
#include "serve/kube/default_roles.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/world.h"

namespace wavetank::serve {
namespace {

using nlohmann::json;

constexpr const char* kKubernetes = "kubernetes";
constexpr int kPort = 6443;

std::string FirstNodeAddress(const fakekube::ApiServer& api) {
  for (const kube::ObjectRef& node : api.List("Node", "")) {
    for (const json& address : Items(At(node->body, {"status", "addresses"}))) {
      if (Text(address, "type") == "InternalIP") return Text(address, "address");
    }
  }
  return "";
}

// Where pods find whom to trust; the RootCaPublisher (fakes/kube/housekeeping/root_ca.h) takes it to every namespace.
json RootCa(const std::string& pem) {
  return {
      {"apiVersion", "v1"},
      {"kind", "ConfigMap"},
      {"metadata",
       {{"name", "kube-root-ca.crt"},
        {"namespace", "kube-system"},
        {"annotations",
         {{"kubernetes.io/description",
           "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as "
           "the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
           "Kubernetes clusters."}}}}},
      {"data", {{"ca.crt", pem}}}};
}

}  // namespace

// Kubernetes: pkg/controlplane/controller/kubernetesservice, and the endpoints' reconcilers beside it.
absl::Status DefineKubernetesService(sim::World& world) {
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    const fakekube::ApiServer& api = world.cluster(cluster.name).api();
    if (api.Get("Service", {"default", kKubernetes}) != nullptr) continue;
    const std::string address = FirstNodeAddress(api);
    const auto metadata = [](json labels) -> json {
      return {{"name", kKubernetes}, {"namespace", "default"}, {"labels", std::move(labels)}};
    };
    const auto port = [](json more) {
      more.update({{"name", "https"}, {"protocol", "TCP"}});
      return json::array({std::move(more)});
    };
    json objects = json::array();
    objects.push_back({{"apiVersion", "v1"},
                       {"kind", "Service"},
                       {"metadata", metadata({{"component", "apiserver"}, {"provider", kKubernetes}})},
                       {"spec", {{"type", "ClusterIP"}, {"ports", port({{"port", 443}, {"targetPort", kPort}})}}}});
    if (!address.empty()) {
      objects.push_back({{"apiVersion", "v1"},
                         {"kind", "Endpoints"},
                         {"metadata", metadata({{"endpointslice.kubernetes.io/skip-mirror", "true"}})},
                         {"subsets", json::array({{{"addresses", json::array({{{"ip", address}}})},
                                                   {"ports", port({{"port", kPort}})}}})}});
      objects.push_back(
          {{"apiVersion", "discovery.k8s.io/v1"},
           {"kind", "EndpointSlice"},
           {"metadata", metadata({{"kubernetes.io/service-name", kKubernetes}})},
           {"addressType", "IPv4"},
           {"ports", port({{"port", kPort}})},
           {"endpoints", json::array({{{"addresses", json::array({address})}, {"conditions", {{"ready", true}}}}})}});
    }
    if (!cluster.observed) {
      objects.push_back(RootCa(world.cluster(cluster.name).options().ca_pem));
      absl::StatusOr<std::vector<fakekube::Manifest>> roles =
          fakekube::ParseManifests("default_roles.yaml", std::string(DefaultRoles()));
      if (!roles.ok()) return roles.status();
      for (fakekube::Manifest& role : *roles) {
        if (api.Get(role.object["kind"].get<std::string>(), {"", role.object["metadata"]["name"].get<std::string>()}) ==
            nullptr)
          objects.push_back(std::move(role.object));
      }
    }
    for (json& object : objects) {
      const absl::Status status = world.Do(sim::inputs::ApplyObject{cluster.name, std::move(object)});
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::serve
