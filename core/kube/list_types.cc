#include "core/kube/list_types.h"

#include <algorithm>

namespace wavetank::kube {
namespace {

using Merge = ListType::Merge;

constexpr ListType kAtomic;
constexpr ListType kSetOfScalars{Merge::kSet, "", Merge::kSet, {}};

constexpr ListType By(std::string_view key) { return {Merge::kMap, key, Merge::kMap, {key, ""}}; }
constexpr ListType By(std::string_view key, std::string_view second) {
  return {Merge::kMap, key, Merge::kMap, {key, second}};
}

bool IsContainers(std::string_view field) {
  return field == "containers" || field == "initContainers" || field == "ephemeralContainers";
}

struct Entry {
  std::string_view parent, field;
  ListType type;
};

// Where the parent and the field say it all, in every kind of Kubernetes' own.
constexpr std::array kEntries = {
    Entry{"spec", "containers", By("name")},
    Entry{"spec", "initContainers", By("name")},
    Entry{"spec", "ephemeralContainers", By("name")},
    Entry{"spec", "volumes", By("name")},
    Entry{"spec", "imagePullSecrets", By("name")},
    Entry{"spec", "hostAliases", By("ip")},
    Entry{"spec", "topologySpreadConstraints", By("topologyKey", "whenUnsatisfiable")},
    Entry{"spec", "schedulingGates", By("name")},
    Entry{"spec", "resourceClaims", By("name")},
    Entry{"status", "conditions", By("type")},
    Entry{"status", "podIPs", By("ip")},
    Entry{"", "webhooks", By("name")},
};

}  // namespace

ListType ListTypeOf(std::string_view kind, std::string_view parent, std::string_view field) {
  if (parent == "metadata") {
    if (field == "finalizers") return kSetOfScalars;
    if (field == "ownerReferences") return By("uid");
    return kAtomic;
  }
  if (kind.empty()) return kAtomic;
  if (IsContainers(parent)) {
    if (field == "env") return By("name");
    if (field == "ports") return By("containerPort", "protocol");
    if (field == "volumeMounts") return By("mountPath");
    if (field == "volumeDevices") return By("devicePath");
    return kAtomic;
  }
  if (kind == "Service" && parent == "spec" && field == "ports") return By("port", "protocol");
  if (kind == "ServiceAccount" && parent.empty() && field == "secrets") return By("name");
  if (kind == "Node" && parent == "status" && field == "addresses") return By("type");
  for (const Entry& entry : kEntries) {
    if (entry.parent == parent && entry.field == field) return entry.type;
  }
  return kAtomic;
}

bool AtomicMapping(std::string_view kind, std::string_view parent, std::string_view field) {
  if (kind.empty()) return false;
  constexpr std::array<std::string_view, 11> kAtomicFields = {
      "selector",     "labelSelector", "podSelector",      "namespaceSelector", "nodeSelector",  "configMapKeyRef",
      "secretKeyRef", "fieldRef",      "resourceFieldRef", "roleRef",           "scaleTargetRef"};
  // "selector" may be a label's or an annotation's key.
  if (parent == "metadata" || parent == "labels" || parent == "annotations") return false;
  return std::find(kAtomicFields.begin(), kAtomicFields.end(), field) != kAtomicFields.end();
}

std::string_view DefaultOfKey(std::string_view key) { return key == "protocol" ? "TCP" : ""; }

}  // namespace wavetank::kube
