// Which pods the API server sends to istiod's injection webhook, and by which path
// (manifests/charts/istio-control/istio-discovery/templates/mutatingwebhook.yaml, as installed).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::pilot {

struct WebhookInstallation {
  std::string ns = "istio-system";
  std::string revision;                    // empty: the default revision
  std::string injection_path = "/inject";  // "/inject/cluster/cluster2/net/network2" in a remote cluster
  std::string injection_url;               // instead of a Service
  bool enable_namespaces_by_default = false;
};

// The MutatingWebhookConfiguration of one revision, as an object for the API server.
nlohmann::json MakeMutatingWebhookConfiguration(const WebhookInstallation& installation);

// Where istiod serves its webhooks: there, and at paths below. A query is no part of a path. istiod:
// pkg/kube/inject/webhook.go, pkg/webhooks/validation/server/server.go.
inline constexpr std::string_view kInjectPath = "/inject", kValidatePath = "/validate";
bool ServesWebhook(std::string_view served, std::string_view path);

// Where to send the admission review of a pod's creation.
struct WebhookTarget {
  std::string webhook;  // "namespace.sidecar-injector.istio.io"
  std::string service_namespace, service_name, path;
  int port = 443;
  std::string url;             // instead of the Service
  bool fail_if_absent = true;  // failurePolicy Fail
};

// Its rules take the creation of pods (kubernetes: k8s.io/apiserver, pkg/admission/plugin/webhook/predicates/rules).
// One without rules is asked of nothing.
bool TakesNewPods(const nlohmann::json& webhook);

// It is istiod's, by its name or by whom it asks: others' (vault's, a policy engine's) do with pods what is theirs.
bool InjectsSidecars(const nlohmann::json& webhook);

// Where webhooks[`index`] of a MutatingWebhookConfiguration sends pods with these labels in a namespace with those,
// with rules that take the creation of pods or (`rules`: false) without a look at them; nullopt: it does not select
// them. InvalidArgument names what cannot be read. `namespace_labels` must hold kubernetes.io/metadata.name, as every
// namespace of a real API server does.
absl::StatusOr<std::optional<WebhookTarget>> TargetOfWebhook(const nlohmann::json& configuration, size_t index,
                                                             const kube::Labels& namespace_labels,
                                                             const kube::Labels& pod_labels, bool rules = true);

// The first of istiod's webhooks of a configuration that selects them; nullopt and InvalidArgument as above.
absl::StatusOr<std::optional<WebhookTarget>> SelectWebhook(const nlohmann::json& configuration,
                                                           const kube::Labels& namespace_labels,
                                                           const kube::Labels& pod_labels, bool rules = true);

}  // namespace wavetank::pilot
