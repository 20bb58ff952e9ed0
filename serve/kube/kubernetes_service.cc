#include "serve/kube/kubernetes_service.h"

#include <string>
#include <utility>

#include "core/base/json_access.h"
#include "fakes/kube/cluster.h"
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
    for (json& object : objects) {
      const absl::Status status = world.Do({"apply", {{"cluster", cluster.name}, {"object", std::move(object)}}});
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wavetank::serve
