// istiod's mutating webhook for pods, on port 15017: decides whether a pod gets a proxy and adds it (istiod:
// pkg/kube/inject/{webhook,inject}.go). Pure: the answer follows from the request, the path and what was set.
//
// What it does not do: it sees no namespace labels, as istiod's does not. Which pods it is asked about is said by the
// MutatingWebhookConfiguration (webhook_configuration.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/config/mesh/mesh_config.h"
#include "core/inject/injection_config.h"
#include "core/kube/object.h"
#include "nlohmann/json.hpp"

namespace wavetank::pilot {

// Whether proxies are init containers that go on; kUnknown: the release knows none.
enum class NativeSidecar : uint8_t { kUnknown, kNo, kYes };

class InjectionWebhook {
 public:
  explicit InjectionWebhook(std::string revision = "default");

  void SetConfig(InjectionConfig config);
  void SetMeshConfig(config::MeshConfigRef mesh);
  // ProxyConfig resources of all namespaces.
  void SetProxyConfigs(std::vector<kube::ObjectRef> resources);
  const InjectionConfig& config() const { return config_; }

  // An AdmissionReview's answer. `path` is the request's: "/inject", or "/inject/cluster/cluster2/net/network2" for
  // another cluster's pods. `native`: whether the proxy is to be a native sidecar; the pod's annotation may say
  // otherwise. Never fails: what cannot be done is an answer that refuses the pod.
  nlohmann::json Admit(const nlohmann::json& review, std::string_view path = "/inject",
                       NativeSidecar native = NativeSidecar::kUnknown) const;

  // The injected pod. Its metadata.namespace must be set. InvalidArgument, in istiod's words: an annotation is wrong,
  // or the templates cannot be applied to this pod.
  absl::StatusOr<nlohmann::json> Inject(const nlohmann::json& pod, std::string_view path = "/inject",
                                        NativeSidecar native = NativeSidecar::kUnknown) const;

  // The cluster whose pods come by `path`; empty: nobody says.
  std::string ClusterOf(std::string_view path) const;

 private:
  const std::string revision_;
  InjectionConfig config_;
  nlohmann::json template_values_;  // config_.values as templates see them
  config::MeshConfigRef mesh_ = std::make_shared<config::MeshConfig>();
  std::vector<kube::ObjectRef> proxy_configs_;
  // The last patches (base64), by what replicas of one pod template share, for what is set now.
  static constexpr size_t kMostPatches = 32;
  mutable absl::flat_hash_map<std::string, std::string> patches_;
};

// The API server's side: the request for a pod that is to be created, and the pod after the answer. PermissionDenied
// tells why the webhook refused, Internal that its answer cannot be read.
nlohmann::json MakeAdmissionReview(nlohmann::json pod, std::string_view uid);
absl::StatusOr<nlohmann::json> ApplyAdmissionResponse(nlohmann::json pod, const nlohmann::json& response);

// Environment variables that the path of a request sets: "/inject/cluster/c2/net/n2" is ISTIO_META_CLUSTER_ID=c2 and
// ISTIO_META_NETWORK=n2, "--slash--" stands for "/" in values, other names are taken in upper case.
std::map<std::string, std::string> ParseInjectPath(std::string_view path);

}  // namespace wavetank::pilot
