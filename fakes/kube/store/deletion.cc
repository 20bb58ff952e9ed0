// How objects of an API server end: finalizers, grace periods, dependents, namespaces, definitions.
#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/kube/time_format.h"
#include "fakes/kube/store/api_server.h"
#include "fakes/kube/store/event_store.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr std::string_view kForeground = "foregroundDeletion";
constexpr int64_t kDefaultGraceSeconds = 30;

bool HasFinalizers(const kube::Object& object) { return !Items(At(object.body, {"metadata", "finalizers"})).empty(); }

bool HasFinalizer(const kube::Object& object, std::string_view finalizer) {
  const json& all = Items(At(object.body, {"metadata", "finalizers"}));
  return std::any_of(all.begin(), all.end(), [&](const json& one) { return TextOf(one) == finalizer; });
}

NamespacedName NameOf(const kube::Object& object) { return {object.meta.ns, object.meta.name}; }

bool Blocks(const kube::Object& dependent, const std::string& owner_uid) {
  for (const json& reference : Items(At(dependent.body, {"metadata", "ownerReferences"}))) {
    if (Text(reference, "uid") == owner_uid) return At(reference, "blockOwnerDeletion") == true;
  }
  return false;
}

}  // namespace

absl::Status ApiServer::Delete(std::string_view kind, const NamespacedName& name, const DeleteOptions& options) {
  const absl::StatusOr<ObjectRef> found = One(kind, name);
  if (options_.observed && absl::IsNotFound(found.status())) return absl::OkStatus();
  if (!found.ok()) return found.status();
  const ObjectRef object = *found;
  const GroupKind group_kind = GroupKindOf(*object);
  if (options_.observed) return Finalize(Qualified(group_kind), name);
  const bool pod = group_kind.Is("Pod");
  if (object->meta.deleting) {
    if (!pod || options.grace_seconds != 0) return absl::OkStatus();
    if (!HasFinalizers(*object)) return Finalize(Qualified(group_kind), name);
    if (Number(At(object->body, "metadata"), "deletionGracePeriodSeconds", 1) == 0) return absl::OkStatus();
    return MarkDeleting(object, 0, {});
  }
  if (group_kind.Is("Namespace")) return DeleteNamespace(object);
  // Nothing runs of a pod that no node has, or that has ended (kubernetes: pkg/registry/core/pod/strategy.go,
  // CheckGracefulDelete).
  const std::string phase = pod ? Text(At(object->body, "status"), "phase") : std::string();
  const bool runs =
      pod && !Text(At(object->body, "spec"), "nodeName").empty() && phase != "Succeeded" && phase != "Failed";
  const int64_t grace = runs ? options.grace_seconds.value_or(Number(
                                   At(object->body, "spec"), "terminationGracePeriodSeconds", kDefaultGraceSeconds))
                             : 0;
  const bool foreground = options.propagation == Propagation::kForeground && !Dependents(object->meta.uid).empty();
  if (options.propagation == Propagation::kOrphan) DeleteDependents(*object, Propagation::kOrphan);
  if (grace <= 0 && !foreground && !HasFinalizers(*object)) return Finalize(Qualified(group_kind), name);
  if (absl::Status status = MarkDeleting(object, grace, foreground ? kForeground : std::string_view()); !status.ok())
    return status;
  if (!foreground) return absl::OkStatus();
  DeleteDependents(*object, Propagation::kForeground);
  const ObjectRef now = Get(Qualified(group_kind), name);
  if (now != nullptr && now->meta.uid == object->meta.uid && HasFinalizer(*now, kForeground) &&
      !HasBlockingDependents(*now)) {
    DropFinalizer(now, kForeground);
  }
  return absl::OkStatus();
}

absl::Status ApiServer::MarkDeleting(const ObjectRef& object, int64_t grace_seconds, std::string_view finalizer) {
  json body = object->body;
  json& metadata = body["metadata"];
  if (!object->meta.deleting) {
    metadata["deletionTimestamp"] = kube::FormatRfc3339(UnixNow() + grace_seconds);
    if (CountsGeneration(GroupKindOf(*object))) metadata["generation"] = object->meta.generation + 1;
  }
  metadata["deletionGracePeriodSeconds"] = grace_seconds;
  if (!finalizer.empty()) {
    if (!metadata["finalizers"].is_array()) metadata["finalizers"] = json::array();
    metadata["finalizers"].push_back(finalizer);
  }
  if (GroupKindOf(*object).Is("Namespace")) {
    if (!body["status"].is_object()) body["status"] = json::object();
    body["status"]["phase"] = "Terminating";
  }
  return Store(std::move(body), object).status();
}

void ApiServer::DropFinalizer(const ObjectRef& object, std::string_view finalizer) {
  json body = object->body;
  json left = json::array();
  for (const json& one : Items(At(body, {"metadata", "finalizers"}))) {
    if (TextOf(one) != finalizer) left.push_back(one);
  }
  if (left.empty()) {
    body["metadata"].erase("finalizers");
  } else {
    body["metadata"]["finalizers"] = std::move(left);
  }
  Update(std::move(body)).IgnoreError();
}

absl::Status ApiServer::Finalize(std::string_view kind, const NamespacedName& name) {
  const absl::StatusOr<ObjectRef> found = One(kind, name);
  if (!found.ok()) return found.status();
  Remove(*found, *found);
  return absl::OkStatus();
}

void ApiServer::Remove(const ObjectRef& object, ObjectRef last) {
  const ObjectRef held = object;  // the reference may be the stored one
  const GroupKind group_kind = GroupKindOf(*held);
  const std::string qualified = Qualified(group_kind);
  const NamespacedName name = NameOf(*held);
  kinds_.find(group_kind)->second.objects.erase(name);
  --object_count_;
  if (group_kind.Is("Service") && !options_.observed) services_.Release(*held, nullptr);
  for (const kube::OwnerReference& owner : held->meta.owner_references) {
    if (const auto d = dependents_.find(owner.uid); d != dependents_.end()) d->second.erase({qualified, name});
  }
  ++resource_version_;
  Trace(TraceKind::kObjectDeleted, *held);
  Notify(kube::WatchEventType::kDeleted, last, held);
  if (options_.observed) return;  // what else goes is told as well
  DeleteDependents(*held, Propagation::kBackground);
  dependents_.erase(held->meta.uid);
  std::vector<std::pair<std::string, NamespacedName>> content;
  if (group_kind.Is("Namespace")) {
    if (events_ != nullptr) events_->RemoveNamespace(name.name);
    // Removed in spite of its content, it takes that with it.
    for (const auto& [other, state] : kinds_) {
      for (auto inside = state.objects.lower_bound({name.name, ""});
           inside != state.objects.end() && inside->first.ns == name.name; ++inside) {
        content.emplace_back(Qualified(GroupKind{other.first, other.second}), inside->first);
      }
    }
  } else if (held->kind == "CustomResourceDefinition") {
    const std::string kind = TextOf(At(held->body, {"spec", "names", "kind"})),
                      group = TextOf(At(held->body, {"spec", "group"}));
    cluster_scoped_.erase({kind, group});
    if (const auto it = kinds_.find(GroupKind{kind, group}); it != kinds_.end()) {
      for (const auto& [inside, unused] : it->second.objects)
        content.emplace_back(Qualified(GroupKind{kind, group}), inside);
    }
  }
  for (const auto& [other, inside] : content) Finalize(other, inside).IgnoreError();
  AfterRemoval(*held);
}

void ApiServer::AfterRemoval(const kube::Object& gone) {
  for (const kube::OwnerReference& reference : gone.meta.owner_references) {
    const ObjectRef owner = OwnerOf(gone, reference);
    if (owner != nullptr && owner->meta.deleting && HasFinalizer(*owner, kForeground) && !HasBlockingDependents(*owner))
      DropFinalizer(owner, kForeground);
  }
  if (gone.meta.ns.empty()) return;
  const ObjectRef ns = Get("Namespace.", {"", gone.meta.ns});
  if (ns != nullptr && ns->meta.deleting && !HasFinalizers(*ns) && !Lingers(*ns, gone.meta.ns)) Remove(ns, ns);
}

ObjectRef ApiServer::OwnerOf(const kube::Object& dependent, const kube::OwnerReference& reference) const {
  const GroupKind kind{reference.kind, GroupOf(reference.api_version)};
  const ObjectRef owner = Get(Qualified(kind), {IsClusterScoped(kind) ? "" : dependent.meta.ns, reference.name});
  return owner != nullptr && owner->meta.uid == reference.uid ? owner : nullptr;
}

std::vector<ObjectRef> ApiServer::Dependents(const std::string& uid) const {
  std::vector<ObjectRef> out;
  const auto it = dependents_.find(uid);
  if (it == dependents_.end()) return out;
  for (const auto& [key, unused] : it->second) {
    ObjectRef object = Get(key.first, key.second);
    if (object == nullptr) continue;
    const std::vector<kube::OwnerReference>& owners = object->meta.owner_references;
    if (std::any_of(owners.begin(), owners.end(), [&](const kube::OwnerReference& o) { return o.uid == uid; }))
      out.push_back(std::move(object));
  }
  return out;
}

bool ApiServer::HasBlockingDependents(const kube::Object& owner) const {
  const std::vector<ObjectRef> all = Dependents(owner.meta.uid);
  return std::any_of(all.begin(), all.end(), [&](const ObjectRef& d) { return Blocks(*d, owner.meta.uid); });
}

void ApiServer::DeleteDependents(const kube::Object& owner, Propagation propagation) {
  for (const ObjectRef& dependent : Dependents(owner.meta.uid)) {
    const std::vector<kube::OwnerReference>& owners = dependent->meta.owner_references;
    const bool others = std::any_of(owners.begin(), owners.end(), [&](const kube::OwnerReference& reference) {
      if (reference.uid == owner.meta.uid) return false;
      const ObjectRef other = OwnerOf(*dependent, reference);
      return other != nullptr && !(other->meta.deleting && HasFinalizer(*other, kForeground));
    });
    const std::string kind = Qualified(GroupKindOf(*dependent));
    if (!others && propagation != Propagation::kOrphan) {
      Delete(kind, NameOf(*dependent), {propagation, std::nullopt}).IgnoreError();
      continue;
    }
    // It lives on without this owner.
    json body = dependent->body;
    json left = json::array();
    for (const json& reference : Items(At(body, {"metadata", "ownerReferences"}))) {
      if (Text(reference, "uid") != owner.meta.uid) left.push_back(reference);
    }
    if (left.empty()) {
      body["metadata"].erase("ownerReferences");
    } else {
      body["metadata"]["ownerReferences"] = std::move(left);
    }
    body["metadata"].erase("resourceVersion");
    Update(std::move(body)).IgnoreError();
  }
}

bool ApiServer::NamespaceIsEmpty(const std::string& ns) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](const auto& kind) {
    const auto first = kind.second.objects.lower_bound({ns, ""});
    return first == kind.second.objects.end() || first->first.ns != ns;
  });
}

absl::Status ApiServer::DeleteNamespace(const ObjectRef& object) {
  const std::string name = object->meta.name;
  if (!Lingers(*object, name) && !HasFinalizers(*object)) return Finalize("Namespace.", {"", name});
  if (absl::Status status = MarkDeleting(object, 0, {}); !status.ok()) return status;
  if (events_ != nullptr) events_->RemoveNamespace(name);
  std::vector<std::pair<std::string, NamespacedName>> content;
  for (const auto& [kind, state] : kinds_) {
    for (auto inside = state.objects.lower_bound({name, ""}); inside != state.objects.end() && inside->first.ns == name;
         ++inside) {
      content.emplace_back(Qualified(GroupKind{kind.first, kind.second}), inside->first);
    }
  }
  // The last one takes the namespace with it (AfterRemoval).
  for (const auto& [kind, inside] : content) Delete(kind, inside).IgnoreError();
  return absl::OkStatus();
}

void ApiServer::DefineScope(const kube::Object& definition) {
  const json& spec = At(definition.body, "spec");
  std::pair<std::string, std::string> key{TextOf(At(spec, {"names", "kind"})), Text(spec, "group")};
  if (Text(spec, "scope") == "Cluster") {
    cluster_scoped_.insert(std::move(key));
  } else {
    cluster_scoped_.erase(key);
  }
}

}  // namespace wavetank::fakekube
