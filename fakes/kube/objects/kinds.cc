#include "fakes/kube/objects/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"

namespace wavetank::fakekube {
namespace {

struct BuiltIn {
  std::string_view kind, group;
  bool cluster_scoped = false;
  bool counts_generation = false;  // its strategy in kubernetes/pkg/registry does
};

// By kind.
constexpr std::array kBuiltIns = {
    BuiltIn{"APIService", "apiregistration.k8s.io", true},
    BuiltIn{"CSIDriver", "storage.k8s.io", true},
    BuiltIn{"CSINode", "storage.k8s.io", true},
    BuiltIn{"CSIStorageCapacity", "storage.k8s.io"},
    BuiltIn{"CertificateSigningRequest", "certificates.k8s.io", true},
    BuiltIn{"ClusterRole", "rbac.authorization.k8s.io", true},
    BuiltIn{"ClusterRoleBinding", "rbac.authorization.k8s.io", true},
    BuiltIn{"ConfigMap", ""},
    BuiltIn{"ControllerRevision", "apps"},
    BuiltIn{"CronJob", "batch", false, true},
    BuiltIn{"CustomResourceDefinition", "apiextensions.k8s.io", true, true},
    BuiltIn{"DaemonSet", "apps", false, true},
    BuiltIn{"Deployment", "apps", false, true},
    BuiltIn{"EndpointSlice", "discovery.k8s.io", false, true},
    BuiltIn{"Endpoints", ""},
    BuiltIn{"Event", ""},
    BuiltIn{"FlowSchema", "flowcontrol.apiserver.k8s.io", true, true},
    BuiltIn{"HorizontalPodAutoscaler", "autoscaling"},
    BuiltIn{"Ingress", "networking.k8s.io", false, true},
    BuiltIn{"IngressClass", "networking.k8s.io", true, true},
    BuiltIn{"Job", "batch", false, true},
    BuiltIn{"Lease", "coordination.k8s.io"},
    BuiltIn{"LimitRange", ""},
    BuiltIn{"MutatingWebhookConfiguration", "admissionregistration.k8s.io", true, true},
    BuiltIn{"Namespace", "", true},
    BuiltIn{"NetworkPolicy", "networking.k8s.io", false, true},
    BuiltIn{"Node", "", true},
    BuiltIn{"PersistentVolume", "", true},
    BuiltIn{"PersistentVolumeClaim", ""},
    BuiltIn{"Pod", ""},
    BuiltIn{"PodDisruptionBudget", "policy", false, true},
    BuiltIn{"PodTemplate", "", false, true},
    BuiltIn{"PriorityClass", "scheduling.k8s.io", true, true},
    BuiltIn{"PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io", true, true},
    BuiltIn{"ReplicaSet", "apps", false, true},
    BuiltIn{"ReplicationController", "", false, true},
    BuiltIn{"ResourceQuota", ""},
    BuiltIn{"Role", "rbac.authorization.k8s.io"},
    BuiltIn{"RoleBinding", "rbac.authorization.k8s.io"},
    BuiltIn{"RuntimeClass", "node.k8s.io", true},
    BuiltIn{"Secret", ""},
    BuiltIn{"Service", ""},
    BuiltIn{"ServiceAccount", ""},
    BuiltIn{"StatefulSet", "apps", false, true},
    BuiltIn{"StorageClass", "storage.k8s.io", true},
    BuiltIn{"ValidatingWebhookConfiguration", "admissionregistration.k8s.io", true, true},
    BuiltIn{"VolumeAttachment", "storage.k8s.io", true},
};

const BuiltIn* Find(std::string_view kind) {
  const auto it = std::lower_bound(kBuiltIns.begin(), kBuiltIns.end(), kind,
                                   [](const BuiltIn& a, std::string_view b) { return a.kind < b; });
  return it != kBuiltIns.end() && it->kind == kind ? &*it : nullptr;
}

}  // namespace

std::string_view GroupOf(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

bool VersionServed(const GroupKind& kind, std::string_view version) {
  if (!KubernetesOwn(kind)) return true;
  // v1 since 1.29, which manifests of newer clusters name.
  if (kind.group == "flowcontrol.apiserver.k8s.io") return version == "v1beta3" || version == "v1";
  return version == "v1" || (kind.kind == "HorizontalPodAutoscaler" && version == "v2");
}

bool GroupKind::Covers(const kube::Object& object) const { return Covers(GroupKindOf(object)); }

bool GroupKind::Covers(const GroupKind& exact) const {
  return exact.kind == kind && (any_group || exact.group == group);
}

GroupKind ParseGroupKind(std::string_view text) {
  if (const size_t dot = text.find('.'); dot != std::string_view::npos)
    return {text.substr(0, dot), text.substr(dot + 1)};
  if (const BuiltIn* known = Find(text); known != nullptr) return {text, known->group};
  return {text, {}, true};
}

GroupKind GroupKindOf(const kube::Object& object) { return {object.kind, GroupOf(object.api_version)}; }

std::string Qualified(const GroupKind& kind) { return fmt::format("{}.{}", kind.kind, kind.group); }
std::string Qualified(const kube::ResourceKind& kind) { return fmt::format("{}.{}", kind.kind, kind.group); }

// apimachinery: pkg/api/meta/restmapper.go, UnsafeGuessKindToResource; but for the gateways of Istio and the Gateway
// API.
std::string PluralOf(std::string_view kind) {
  std::string out = absl::AsciiStrToLower(absl::string_view(kind.data(), kind.size()));
  if (out == "endpoints") return out;
  if (out.ends_with('s')) return out + "es";
  if (!out.ends_with('y') || out.ends_with("ay")) return out + "s";
  out.pop_back();
  return out + "ies";
}

bool KubernetesOwn(const GroupKind& kind) {
  const BuiltIn* known = Find(kind.kind);
  return known != nullptr && (kind.any_group || known->group == kind.group);
}

bool CountsGeneration(const GroupKind& kind) {
  const BuiltIn* known = KubernetesOwn(kind) ? Find(kind.kind) : nullptr;
  return known == nullptr || known->counts_generation;
}

bool ClusterScoped(const GroupKind& kind) {
  // Kinds of others that users bring along: Gateway API's classes, cert-manager's issuers for all namespaces.
  if (kind.kind == "ClusterIssuer") return kind.any_group || kind.group == "cert-manager.io";
  if (kind.kind == "GatewayClass") return kind.any_group || kind.group == "gateway.networking.k8s.io";
  const BuiltIn* known = Find(kind.kind);
  return known != nullptr && known->cluster_scoped && (kind.any_group || known->group == kind.group);
}

bool ClusterScoped(std::string_view text) { return ClusterScoped(ParseGroupKind(text)); }

}  // namespace wavetank::fakekube
