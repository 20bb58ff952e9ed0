// Kinds within their API groups: "Service" of the core group and "Service" of serving.knative.dev are two kinds.
//
// Where a text names a kind, it is "Kind.group" ("Service.serving.knative.dev", as kubectl writes TYPE.GROUP), "Kind."
// for the core group, or just "Kind". The last means Kubernetes' own kind of that name if there is one, otherwise the
// kind of whatever group holds such objects.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/object.h"

namespace wavetank::fakekube {

struct GroupKind {
  std::string_view kind, group;
  bool any_group = false;  // `group` means nothing

  bool Covers(const kube::Object& object) const;
  bool Covers(const GroupKind& exact) const;
  // Of the core group.
  bool Is(std::string_view core_kind) const { return !any_group && group.empty() && kind == core_kind; }
};

GroupKind ParseGroupKind(std::string_view text);
GroupKind GroupKindOf(const kube::Object& object);
std::string_view GroupOf(std::string_view api_version);  // "" for "v1", "apps" for "apps/v1"
// "Kind.group" with the dot always there.
std::string Qualified(const GroupKind& kind);
std::string Qualified(const kube::ResourceKind& kind);

// The resource of a kind as its name makes it: "gatewayclasses", "networkpolicies", "gateways", "endpoints". What a
// CustomResourceDefinition writes may be otherwise.
std::string PluralOf(std::string_view kind);

// One of Kubernetes' own kinds, of its own group.
bool KubernetesOwn(const GroupKind& kind);

// Whether a version of one of Kubernetes' own kinds is served; true for kinds that are not its own.
bool VersionServed(const GroupKind& kind, std::string_view version);

// Whether metadata.generation counts the changes of what is wanted: of custom resources always, of Kubernetes' own
// kinds where a controller may say how far it followed; a Service or a ConfigMap has none.
bool CountsGeneration(const GroupKind& kind);

// True for kinds that live outside namespaces.
bool ClusterScoped(const GroupKind& kind);
bool ClusterScoped(std::string_view text);

}  // namespace wavetank::fakekube
