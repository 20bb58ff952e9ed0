// Kubernetes objects as the control plane sees them: immutable, shared, metadata parsed, the rest kept as JSON.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {

using Labels = std::map<std::string, std::string, std::less<>>;

// The object's kind within its API group. `resource` is the lower-case plural of the REST path.
struct ResourceKind {
  std::string_view group;     // "" for core
  std::string_view version;   // "v1"
  std::string_view kind;      // "EndpointSlice"
  std::string_view resource;  // "endpointslices"
  bool namespaced = true;

  std::string ApiVersion() const;  // "discovery.k8s.io/v1", "v1"
  friend bool operator==(const ResourceKind& a, const ResourceKind& b) {
    return a.group == b.group && a.kind == b.kind;
  }
};

// The kinds that the control plane reads. fakes/kube knows more.
namespace kinds {
inline constexpr ResourceKind kNamespace{"", "v1", "Namespace", "namespaces", false};
inline constexpr ResourceKind kNode{"", "v1", "Node", "nodes", false};
inline constexpr ResourceKind kPod{"", "v1", "Pod", "pods"};
inline constexpr ResourceKind kService{"", "v1", "Service", "services"};
inline constexpr ResourceKind kEndpoints{"", "v1", "Endpoints", "endpoints"};
inline constexpr ResourceKind kSecret{"", "v1", "Secret", "secrets"};
inline constexpr ResourceKind kConfigMap{"", "v1", "ConfigMap", "configmaps"};
inline constexpr ResourceKind kServiceAccount{"", "v1", "ServiceAccount", "serviceaccounts"};
inline constexpr ResourceKind kEndpointSlice{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"};
inline constexpr ResourceKind kDeployment{"apps", "v1", "Deployment", "deployments"};
inline constexpr ResourceKind kReplicaSet{"apps", "v1", "ReplicaSet", "replicasets"};
inline constexpr ResourceKind kGateway{"networking.istio.io", "v1alpha3", "Gateway", "gateways"};
inline constexpr ResourceKind kVirtualService{"networking.istio.io", "v1alpha3", "VirtualService", "virtualservices"};
inline constexpr ResourceKind kDestinationRule{"networking.istio.io", "v1alpha3", "DestinationRule",
                                               "destinationrules"};
inline constexpr ResourceKind kServiceEntry{"networking.istio.io", "v1alpha3", "ServiceEntry", "serviceentries"};
inline constexpr ResourceKind kWorkloadEntry{"networking.istio.io", "v1alpha3", "WorkloadEntry", "workloadentries"};
inline constexpr ResourceKind kSidecar{"networking.istio.io", "v1alpha3", "Sidecar", "sidecars"};
inline constexpr ResourceKind kPeerAuthentication{"security.istio.io", "v1beta1", "PeerAuthentication",
                                                  "peerauthentications"};
inline constexpr ResourceKind kRequestAuthentication{"security.istio.io", "v1beta1", "RequestAuthentication",
                                                     "requestauthentications"};
inline constexpr ResourceKind kAuthorizationPolicy{"security.istio.io", "v1beta1", "AuthorizationPolicy",
                                                   "authorizationpolicies"};
inline constexpr ResourceKind kEnvoyFilter{"networking.istio.io", "v1alpha3", "EnvoyFilter", "envoyfilters"};
inline constexpr ResourceKind kProxyConfig{"networking.istio.io", "v1beta1", "ProxyConfig", "proxyconfigs"};
inline constexpr ResourceKind kTelemetry{"telemetry.istio.io", "v1alpha1", "Telemetry", "telemetries"};
inline constexpr ResourceKind kWasmPlugin{"extensions.istio.io", "v1alpha1", "WasmPlugin", "wasmplugins"};
}  // namespace kinds

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
};

struct ObjectMeta {
  std::string name, ns, uid;
  int64_t resource_version = 0;
  int64_t generation = 0;
  Labels labels, annotations;
  std::vector<OwnerReference> owner_references;
  int64_t creation_unix_seconds = 0;
  bool deleting = false;  // deletionTimestamp is set
};

struct Object;
using ObjectRef = std::shared_ptr<const Object>;

// One version of one object. `body` is the whole object, metadata included, with every field that came in.
struct Object {
  std::string api_version, kind;
  ObjectMeta meta;
  nlohmann::json body;

  // What readers of `body` made of it (core/kube/types.h), kept for the next. Of one thread at a time, as the rest of a
  // world.
  struct View {
    virtual ~View() = default;
  };
  struct ViewSlot {
    ViewSlot() = default;
    ViewSlot(const ViewSlot&) {}  // a copy may get another body
    ViewSlot& operator=(const ViewSlot&) { return kept.reset(), *this; }
    std::unique_ptr<const View> kept;
  };
  mutable ViewSlot view;

  // "Kind/namespace/name", or "Kind/name" for a cluster-scoped object.
  std::string Key() const;

  // Reads apiVersion, kind and metadata out of `body`. InvalidArgument names the JSON path that is missing or of the
  // wrong type. Metadata numbers and dates that cannot be read are errors, unknown fields are kept.
  static absl::StatusOr<ObjectRef> FromJson(nlohmann::json body);
};

// "namespace/name" of an object, as client-go's caches key it.
struct NamespacedName {
  std::string ns, name;
  friend auto operator<=>(const NamespacedName&, const NamespacedName&) = default;
};

}  // namespace wavetank::kube
