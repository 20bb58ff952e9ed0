#include "fakes/kube/store/api_server.h"
#include "core/base/assert.h"
#include "fakes/kube/validation/defaults.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/random.h"
#include "core/kube/object_head.h"
#include "core/kube/time_format.h"
#include "fakes/kube/merge/patch.h"
#include "fakes/kube/merge/server_side_apply.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/store/event_store.h"
#include "fakes/kube/store/history.h"
#include "fakes/kube/validation/validation.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

// 32 hex digits in the shape of a UUID, from what identifies the object's life.
std::string MakeUid(std::string_view cluster, std::string_view key, uint64_t count) {
  const uint64_t a = HashName(key, HashName(cluster, count)), b = Mix64(a ^ count);
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff, (b >> 48) & 0xfff,
                     b & 0xffffffffffff);
}

std::string Describe(std::string_view kind, const NamespacedName& name) {
  return name.ns.empty() ? fmt::format("{} {}", kind, name.name) : fmt::format("{} {}/{}", kind, name.ns, name.name);
}

// Equal in all fields of the first level that count.
template <typename Counts>
bool SameFields(const json& a, const json& b, Counts counts) {
  const auto covers = [&](const json& one, const json& other) {
    for (const auto& [key, value] : one.items()) {
      if (counts(key) && value != At(other, key)) return false;
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

// Equal but for the status and what the server itself writes.
bool SameButStatus(const json& a, const json& b) {
  for (const char* field : {"labels", "annotations", "ownerReferences", "finalizers"}) {
    if (At(a, {"metadata", field}) != At(b, {"metadata", field})) return false;
  }
  return SameFields(a, b, [](const std::string& key) { return key != "metadata" && key != "status"; });
}

// What is wanted is the same: all but metadata and status, whatever the version in which it is said (apiextensions-
// apiserver: pkg/registry/customresource/strategy.go, PrepareForUpdate()).
bool SameDesire(const json& a, const json& b) {
  return SameFields(a, b, [](const std::string& key) {
    return key != "metadata" && key != "status" && key != "apiVersion" && key != "kind";
  });
}

bool SameMetadata(const json& a, const json& b) {
  const auto written = [](const std::string& field) { return field == "resourceVersion" || field == "generation"; };
  const auto fields = [&](const json& in) { return in.size() - in.count("resourceVersion") - in.count("generation"); };
  if (fields(a) != fields(b)) return false;
  for (const auto& [field, value] : a.items()) {
    if (written(field)) continue;
    const auto other = b.find(field);
    if (other == b.end() || value != *other) return false;
  }
  return true;
}

// Equal but for what the server itself writes at every change. From the end: status changes more than spec.
bool SameContent(const json& a, const json& b) {
  if (a.size() != b.size()) return false;
  for (auto it = a.rbegin(); it != a.rend(); ++it) {
    const json& value = *it;
    const auto other = b.find(it.key());
    if (other == b.end()) return false;
    if (it.key() != "metadata") {
      if (value != *other) return false;
      continue;
    }
    if (!value.is_object() || !other->is_object() || !SameMetadata(value, *other)) return false;
  }
  return true;
}

// What a controller says of its object: a merge patch of nothing but the status, or of the node that a pod is bound to,
// which neither defaults nor whoever waits for the object's end read. Most writes of a cluster are such.
bool IsReport(const kube::Object& object, const json& patch) {
  const GroupKind kind = GroupKindOf(object);
  const bool pod = kind.Is("Pod");
  if (!pod && (kind.any_group || kind.group != "apps")) return false;
  const json &status = At(patch, "status"), &spec = At(patch, "spec");
  if (patch.size() != 1 || !At(object.body, "spec").is_object()) return false;
  const bool binding = pod && spec.size() == 1 && At(spec, "nodeName").is_string();
  if (!binding && !status.is_object()) return false;
  return !(pod && status.contains("phase") && status["phase"].is_null()) && !object.meta.deleting &&
         !WasApplied(object.body) && !kube::NestedTooDeep(patch);
}

bool SameOwners(const std::vector<kube::OwnerReference>& a, const std::vector<kube::OwnerReference>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const kube::OwnerReference& x, const kube::OwnerReference& y) { return x.uid == y.uid; });
}

// What the server allocated for a Service stays where a write leaves it out; node ports stay with their port's name.
void KeepAllocated(const kube::Object& previous, json* body) {
  const json& old = At(previous.body, "spec");
  const auto spec = body->find("spec");
  if (!old.is_object() || spec == body->end() || !spec->is_object()) return;
  for (const char* field : {"clusterIP", "clusterIPs", "ipFamilies"}) {
    if (const auto it = old.find(field); it != old.end() && !spec->contains(field)) (*spec)[field] = *it;
  }
  const auto ports = spec->find("ports");
  if (ports == spec->end() || !ports->is_array()) return;
  for (json& port : *ports) {
    if (!port.is_object() || (port.contains("nodePort") && port["nodePort"] != 0)) continue;
    for (const json& before : Items(At(old, "ports"))) {
      if (Text(before, "name") == Text(port, "name") && before.contains("nodePort"))
        port["nodePort"] = before["nodePort"];
    }
  }
}

// What the definition of a custom resource's kind says of the version that `object` names; null: nothing, or it is no
// custom resource. It lives as long as the definition is stored.
const json* SchemaOf(const ApiServer& server, const json& object) {
  const std::string kind = Text(object, "kind"), api_version = Text(object, "apiVersion");
  const size_t slash = api_version.find('/');
  if (slash == std::string::npos || KubernetesOwn({kind, api_version.substr(0, slash)})) return nullptr;
  for (const ObjectRef& definition : server.List("CustomResourceDefinition")) {
    const json& spec = At(definition->body, "spec");
    if (Text(spec, "group") != api_version.substr(0, slash) || Text(At(spec, "names"), "kind") != kind) continue;
    for (const json& version : Items(At(spec, "versions"))) {
      if (Text(version, "name") != api_version.substr(slash + 1)) continue;
      const json& schema = At(version, {"schema", "openAPIV3Schema"});
      return schema.is_object() ? &schema : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

ApiServer::ApiServer(Host& host, const Options& options)
    : host_(host),
      options_(options),
      trace_name_(host.Intern(options.name)),
      resource_version_(options.first_resource_version),
      services_(options.service_cidr),
      history_(std::make_unique<History>(options.history, options.first_resource_version)) {
  if (options.events_of == nullptr) events_ = std::make_unique<EventStore>(*this);
}

ApiServer::~ApiServer() = default;

EventStore* ApiServer::listening() const {
  return events_ != nullptr && events_->listening() ? events_.get() : nullptr;
}

void ApiServer::Trace(TraceKind kind, const kube::Object& object) {
  if (options_.events_of != nullptr) return;
  host_.Emit({kind, trace_name_, host_.Intern(object.Key()), resource_version_, 0, {}});
}

bool ApiServer::IsClusterScoped(const GroupKind& kind) const {
  if (ClusterScoped(kind)) return true;
  if (cluster_scoped_.empty()) return false;
  if (!kind.any_group) return cluster_scoped_.count({std::string(kind.kind), std::string(kind.group)}) != 0;
  const auto it = cluster_scoped_.lower_bound({std::string(kind.kind), ""});
  return it != cluster_scoped_.end() && it->first == kind.kind;
}

NamespacedName ApiServer::StoredName(const kube::Object& object) const {
  NamespacedName name{object.meta.ns, object.meta.name};
  if (IsClusterScoped(GroupKindOf(object))) {
    name.ns.clear();
  } else if (name.ns.empty()) {
    name.ns = "default";
  }
  return name;
}

int64_t ApiServer::UnixNow() const {
  if (options_.events_of != nullptr) return options_.events_of->UnixNow();
  return kWorldEpochUnixSeconds +
         std::chrono::floor<std::chrono::seconds>(host_.Now().time_since_epoch() + faults_.clock_skew).count();
}

std::string ApiServer::DateNow() const { return kube::FormatRfc3339(UnixNow()); }

absl::InlinedVector<const ApiServer::Kind*, 1> ApiServer::Find(const Kinds& kinds, const GroupKind& kind) {
  absl::InlinedVector<const Kind*, 1> out;
  if (!kind.any_group) {
    if (const auto it = kinds.find(kind); it != kinds.end()) out.push_back(&it->second);
    return out;
  }
  for (auto it = kinds.lower_bound(GroupKind{kind.kind, {}}); it != kinds.end() && it->first.first == kind.kind; ++it)
    out.push_back(&it->second);
  return out;
}

absl::StatusOr<ObjectRef> ApiServer::One(std::string_view kind, const NamespacedName& name) const {
  ObjectRef found;
  for (const Kind* k : Find(kinds_, ParseGroupKind(kind))) {
    const auto it = k->objects.find(name);
    if (it == k->objects.end()) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(fmt::format("{} is in two API groups of {}; write {} or {}",
                                                    Describe(kind, name), options_.name, Qualified(GroupKindOf(*found)),
                                                    Qualified(GroupKindOf(*it->second))));
    }
    found = it->second;
  }
  if (found == nullptr) {
    return absl::NotFoundError(fmt::format("{} does not exist in {}", Describe(kind, name), options_.name));
  }
  return found;
}

ObjectRef ApiServer::Get(std::string_view kind, const NamespacedName& name) const {
  for (const Kind* k : Find(kinds_, ParseGroupKind(kind))) {
    if (const auto it = k->objects.find(name); it != k->objects.end()) return it->second;
  }
  return nullptr;
}

std::vector<ObjectRef> ApiServer::List(std::string_view kind, std::string_view ns) const {
  return ListIn(kinds_, kind, ns);
}

kube::ObjectList ApiServer::ListForClients(std::string_view kind, std::string_view ns) const {
  return {ListIn(stale_ != nullptr ? stale_->kinds : kinds_, kind, ns), VisibleVersion()};
}

std::vector<ObjectRef> ApiServer::ListIn(const Kinds& kinds, std::string_view kind, std::string_view ns) {
  std::vector<ObjectRef> out;
  for (const Kind* k : Find(kinds, ParseGroupKind(kind))) {
    if (ns.empty()) {
      out.reserve(out.size() + k->objects.size());
      for (const auto& [name, object] : k->objects) out.push_back(object);
      continue;
    }
    for (auto it = k->objects.lower_bound({std::string(ns), ""}); it != k->objects.end() && it->first.ns == ns; ++it) {
      out.push_back(it->second);
    }
  }
  return out;
}

absl::StatusOr<ObjectRef> ApiServer::Store(json body, const ObjectRef& previous) {
  SetDefaults(body);
  const std::string kind = body.at("kind").get<std::string>(), api_version = body.at("apiVersion").get<std::string>();
  if (GroupKind{kind, GroupOf(api_version)}.Is("Service") && !options_.observed) {
    if (absl::Status status = services_.Assign(body, previous.get()); !status.ok()) return status;
  }
  return StoreDefaulted(std::move(body), previous);
}

absl::StatusOr<ObjectRef> ApiServer::StoreDefaulted(json body, const ObjectRef& previous) {
  if (previous != nullptr) {
    WAVETANK_ASSERT(previous->meta.resource_version <= resource_version_, previous->meta.resource_version,
                    resource_version_);
  }
  ++resource_version_;
  body["metadata"]["resourceVersion"] = std::to_string(resource_version_);
  absl::StatusOr<ObjectRef> object = kube::FromReadBody(std::move(body));
  if (!object.ok()) {
    --resource_version_;
    return object.status();
  }
  const std::string& kind = (*object)->kind;
  const GroupKind group_kind = GroupKindOf(**object);
  const NamespacedName name{(*object)->meta.ns, (*object)->meta.name};
  WAVETANK_ASSERT((*object)->meta.resource_version == resource_version_, (*object)->meta.resource_version,
                  resource_version_);
  ObjectRef& stored = kinds_[{kind, std::string(group_kind.group)}].objects[name];
  WAVETANK_ASSERT(stored == previous, name.ns, name.name);  // no version between them is lost
  stored = *object;
  if (previous != nullptr && group_kind.Is("Service") && !options_.observed) {
    services_.Release(*previous, object->get());
  }
  if (kind == "CustomResourceDefinition") DefineScope(**object);
  if (previous == nullptr) ++object_count_;
  Trace(TraceKind::kObjectApplied, **object);
  const std::vector<kube::OwnerReference>& owners = (*object)->meta.owner_references;
  if (previous == nullptr || !SameOwners(owners, previous->meta.owner_references)) {
    for (const kube::OwnerReference& owner : owners) dependents_[owner.uid][{Qualified(group_kind), name}] = true;
  }
  Notify(previous == nullptr ? kube::WatchEventType::kAdded : kube::WatchEventType::kModified, *object, previous);
  return *object;
}

absl::StatusOr<ObjectRef> ApiServer::Create(json body, const WriteOptions& options) {
  return CreateChecked(std::move(body), options, options.applied);
}

absl::Status ApiServer::CheckNamespace(std::string_view kind, const NamespacedName& name, bool make) {
  const ApiServer& where = options_.events_of == nullptr ? *this : *options_.events_of;
  const ObjectRef in = where.Get("Namespace.", {"", name.ns});
  if (in == nullptr && make) {
    return Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name.ns}}}}).status();
  }
  if (in == nullptr) {
    return absl::NotFoundError(fmt::format("{}: namespace {} does not exist in {}; create it first",
                                           Describe(kind, name), name.ns, options_.name));
  }
  if (!in->meta.deleting) return absl::OkStatus();
  return MakeApiError({403, "Forbidden",
                       fmt::format("{}: unable to create new content in namespace {} because it is being terminated",
                                   Describe(kind, name), name.ns),
                       nullptr});
}

absl::StatusOr<ObjectRef> ApiServer::CreateChecked(json body, const WriteOptions& options, bool managed) {
  absl::StatusOr<ObjectRef> parsed = kube::ReadHead(body);
  if (!parsed.ok()) return parsed.status();
  const std::string& kind = (*parsed)->kind;
  const NamespacedName name = StoredName(**parsed);
  json& metadata = body["metadata"];
  const std::string qualified = Qualified(GroupKindOf(**parsed));
  if (name.ns.empty()) {
    metadata.erase("namespace");
  } else {
    metadata["namespace"] = name.ns;
    if (absl::Status status = CheckNamespace(kind, name, false); !status.ok()) return status;
  }
  if (Get(qualified, name) != nullptr) {
    return absl::AlreadyExistsError(fmt::format("{} already exists in {}", Describe(kind, name), options_.name));
  }
  if (!metadata.contains("creationTimestamp") || metadata["creationTimestamp"].is_null()) {
    metadata["creationTimestamp"] = DateNow();
  }
  if (options.validate) {
    SetDefaults(body);
    if (absl::Status status = Validate(body, nullptr); !status.ok()) return status;
    if (absl::Status status = CheckSize(body); !status.ok()) return status;
  }
  metadata["uid"] = MakeUid(options_.name, Describe(kind, name), ++created_);
  if (kind == "Job" && GroupKindOf(**parsed).group == "batch") SelectJobsPods(body, TextOf(metadata["uid"]));
  metadata.erase("generation");
  if (CountsGeneration(GroupKindOf(**parsed))) metadata["generation"] = 1;
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds"}) metadata.erase(field);
  if (!managed) metadata.erase("managedFields");
  // Events are too many, and nobody applies them.
  if (!managed && options.validate && options_.events_of == nullptr)
    TrackCreation(body, GroupKindOf(**parsed), {options.field_manager, "", DateNow(), SchemaOf(*this, body)});
  return Store(std::move(body), nullptr);
}

absl::StatusOr<ObjectRef> ApiServer::Update(json body, const WriteOptions& options) {
  return UpdateChecked(std::move(body), options, false);
}

absl::StatusOr<ObjectRef> ApiServer::UpdateChecked(json body, const WriteOptions& options, bool managed) {
  absl::StatusOr<ObjectRef> parsed = kube::ReadHead(body);
  if (!parsed.ok()) return parsed.status();
  const std::string& kind = (*parsed)->kind;
  const NamespacedName name = StoredName(**parsed);
  if (name.ns.empty()) {
    body["metadata"].erase("namespace");  // as when it was created
  } else {
    body["metadata"]["namespace"] = name.ns;
  }
  const GroupKind group_kind = GroupKindOf(**parsed);
  const ObjectRef previous = Get(Qualified(group_kind), name);
  if (previous == nullptr) {
    return absl::NotFoundError(fmt::format("{} does not exist in {}", Describe(kind, name), options_.name));
  }
  if (!(*parsed)->meta.uid.empty() && (*parsed)->meta.uid != previous->meta.uid) {
    return absl::AbortedError(fmt::format("{}: uid {} is another object's, of the same name; read it again and retry",
                                          Describe(kind, name), (*parsed)->meta.uid));
  }
  const int64_t expected = (*parsed)->meta.resource_version;
  if (expected != 0 && expected != previous->meta.resource_version) {
    return absl::AbortedError(
        fmt::format("{}: the object has been modified (resourceVersion {} is not {}); read it again and retry",
                    Describe(kind, name), expected, previous->meta.resource_version));
  }
  json& metadata = body["metadata"];
  const json& old_metadata = previous->body["metadata"];
  for (const char* field : {"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp",
                            "deletionGracePeriodSeconds"}) {
    if (const auto it = old_metadata.find(field); it != old_metadata.end()) {
      metadata[field] = *it;
    } else {
      metadata.erase(field);
    }
  }
  // What a scenario or a controller has made is tracked from a client's first change of it on.
  const bool was_tracked = HasManagedFields(previous->body), by_client = options.validate;
  const bool tracked = !managed && (was_tracked || (by_client && options_.events_of == nullptr));
  const json said = tracked ? At(metadata, "managedFields") : json();
  if (!managed && was_tracked) {
    metadata["managedFields"] = old_metadata["managedFields"];
  } else if (!managed) {
    metadata.erase("managedFields");
  }
  if (group_kind.Is("Namespace")) {
    json labels = metadata.value("labels", json::object());
    if (!labels.is_object()) labels = json::object();
    labels["kubernetes.io/metadata.name"] = name.name;
    metadata["labels"] = labels;
    // Only the subresource changes what a namespace waits for (kubernetes: pkg/registry/core/namespace/strategy.go).
    if (options.subresource != "finalize") body["spec"] = At(previous->body, "spec");
  }
  if (!body.contains("status") && previous->body.contains("status")) body["status"] = previous->body["status"];
  if (group_kind.Is("Service")) KeepAllocated(*previous, &body);
  // What defaulting would add anyway is no change.
  SetDefaults(body);
  // A list says who manages what; without one, or with the one that was read, nothing is said about it.
  const bool edited = was_tracked && said.is_array() && said != At(old_metadata, "managedFields");
  if (edited) metadata["managedFields"] = said;
  if (!edited && SameContent(body, previous->body)) return previous;
  if (options.validate && options.subresource != "status") {
    if (absl::Status status = Validate(body, previous.get()); !status.ok()) return status;
    if (absl::Status status = CheckSize(body); !status.ok()) return status;
  }
  if (CountsGeneration(group_kind) && options.subresource != "status" && !SameDesire(body, previous->body))
    metadata["generation"] = previous->meta.generation + 1;
  if (tracked) {
    const bool status_only = SameButStatus(body, previous->body);
    if ((was_tracked || !status_only) && options.field_manager != kNobody) {
      TrackUpdate(
          previous->body, body, group_kind,
          {options.field_manager, status_only ? "status" : options.subresource, DateNow(), SchemaOf(*this, body)});
    }
  }
  // The last finalizer went with this write: so does the object.
  if (previous->meta.deleting && Items(At(body, {"metadata", "finalizers"})).empty()) {
    absl::StatusOr<ObjectRef> last = kube::Object::FromJson(body);
    if (!last.ok()) return last;
    if (!Lingers(**last, name.name)) {
      Remove(previous, *last);
      return last;
    }
  }
  // It has its defaults; a Service still lacks addresses.
  return group_kind.Is("Service") ? Store(std::move(body), previous) : StoreDefaulted(std::move(body), previous);
}

bool ApiServer::Lingers(const kube::Object& object, const std::string& name) const {
  const GroupKind kind = GroupKindOf(object);
  if (kind.Is("Pod")) return Number(At(object.body, "metadata"), "deletionGracePeriodSeconds", 1) != 0;
  if (!kind.Is("Namespace")) return false;
  const json& finalizers = Items(At(object.body, {"spec", "finalizers"}));
  // "kubernetes" is the namespace controller's own, which empties it.
  const bool others =
      std::any_of(finalizers.begin(), finalizers.end(), [](const json& f) { return f != "kubernetes"; });
  return others || (!finalizers.empty() && !NamespaceIsEmpty(name));
}

absl::StatusOr<ObjectRef> ApiServer::ServerSideApply(json body, bool force, const WriteOptions& options) {
  absl::StatusOr<ObjectRef> parsed = kube::ReadHead(body);
  if (!parsed.ok()) return parsed.status();
  const GroupKind kind = GroupKindOf(**parsed);
  const NamespacedName name = StoredName(**parsed);
  if (!name.ns.empty()) body["metadata"]["namespace"] = name.ns;
  const ObjectRef live = Get(Qualified(kind), name);
  const int64_t expected = (*parsed)->meta.resource_version;
  if (live == nullptr ? expected != 0 : expected != 0 && expected != live->meta.resource_version) {
    return absl::AbortedError(
        fmt::format("{}: the object has been modified; please apply your changes to the latest "
                    "version and try again",
                    Describe(kind.kind, name)));
  }
  if (live != nullptr && !(*parsed)->meta.uid.empty() && (*parsed)->meta.uid != live->meta.uid) {
    return absl::AbortedError(fmt::format("{}: uid {} is another object's, of the same name", Describe(kind.kind, name),
                                          (*parsed)->meta.uid));
  }
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"})
    body["metadata"].erase(field);
  if (options.subresource.empty()) {
    body.erase("status");
  } else if (options.subresource == "status") {
    json only = {{"apiVersion", body["apiVersion"]}, {"kind", body["kind"]}, {"metadata", {{"name", name.name}}}};
    if (!name.ns.empty()) only["metadata"]["namespace"] = name.ns;
    if (body.contains("status")) only["status"] = body["status"];
    body = std::move(only);
  }
  absl::StatusOr<json> merged =
      fakekube::ServerSideApply(live == nullptr ? json() : live->body, body, kind,
                                {options.field_manager, options.subresource, DateNow(), SchemaOf(*this, body)}, force);
  if (!merged.ok()) return merged.status();
  return live == nullptr ? CreateChecked(*std::move(merged), options, true)
                         : UpdateChecked(*std::move(merged), options, true);
}

absl::StatusOr<ObjectRef> ApiServer::Apply(json body, const WriteOptions& options) {
  absl::StatusOr<ObjectRef> parsed = kube::ReadHead(body);
  if (!parsed.ok()) return parsed.status();
  const GroupKind kind = GroupKindOf(**parsed);
  const NamespacedName name = StoredName(**parsed);
  const ObjectRef previous = Get(Qualified(kind), name);
  if (options_.observed && (*parsed)->meta.resource_version == 0) return Put(std::move(body), name, previous);
  if (previous != nullptr) return Update(std::move(body), options);
  if ((*parsed)->meta.resource_version != 0) {
    return absl::AbortedError(fmt::format("{}: the object of resourceVersion {} has been deleted; retry without one",
                                          Describe(kind.kind, name), (*parsed)->meta.resource_version));
  }
  const bool make = options_.create_namespaces && !options.namespace_must_exist;
  if (make && !name.ns.empty()) {
    if (absl::Status status = CheckNamespace(kind.kind, name, make); !status.ok()) return status;
  }
  return Create(std::move(body), options);
}

absl::StatusOr<ObjectRef> ApiServer::Put(json body, const NamespacedName& name, const ObjectRef& previous) {
  const std::string kind = Text(body, "kind"), api_version = Text(body, "apiVersion");
  const bool counts = CountsGeneration({kind, GroupOf(api_version)});
  json& metadata = body["metadata"];
  if (name.ns.empty()) {
    metadata.erase("namespace");
  } else {
    metadata["namespace"] = name.ns;
    if (Get("Namespace.", {"", name.ns}) == nullptr) {
      if (absl::Status status = CheckNamespace(kind, name, true); !status.ok()) return status;
    }
  }
  // Identity is this server's own: what is issued here names it.
  if (previous != nullptr) {
    metadata["uid"] = previous->meta.uid;
  } else {
    metadata["uid"] = MakeUid(options_.name, Describe(body.value("kind", ""), name), ++created_);
  }
  metadata.erase("generation");
  if (counts) metadata["generation"] = previous == nullptr ? 1 : previous->meta.generation;
  if (!metadata.contains("creationTimestamp") || metadata["creationTimestamp"].is_null()) {
    metadata["creationTimestamp"] =
        previous != nullptr ? previous->body["metadata"]["creationTimestamp"] : json(DateNow());
  }
  if (previous != nullptr) {
    SetDefaults(body);
    if (SameContent(body, previous->body)) return previous;
    if (counts && At(body, "spec") != At(previous->body, "spec")) {
      metadata["generation"] = previous->meta.generation + 1;
    }
  }
  return Store(std::move(body), previous);
}

absl::StatusOr<ObjectRef> ApiServer::Patch(std::string_view kind, const NamespacedName& name, json patch,
                                           std::string_view manager) {
  const absl::StatusOr<ObjectRef> previous = One(kind, name);
  if (!previous.ok()) return previous.status();
  if (!MergePatchChanges((*previous)->body, patch)) return previous;
  // What an update would look at besides is as it was.
  const bool report = IsReport(**previous, patch);
  json patched = MergePatched((*previous)->body, std::move(patch));
  return report ? StoreDefaulted(std::move(patched), *previous)
                : Update(std::move(patched), {.field_manager = std::string(manager)});
}

void ApiServer::BecomeLive() {
  options_.observed = false;
  for (const ObjectRef& service : List("Service")) {
    json body = service->body;
    services_.Assign(body, nullptr).IgnoreError();  // another may hold it; it has it all the same
  }
}

void ApiServer::EndIntroduction() {
  for (const auto& [kind, observer] : std::exchange(newcomers_, {})) {
    const auto state = kinds_.find(ParseGroupKind(kind));
    if (state == kinds_.end()) continue;
    const std::map<NamespacedName, ObjectRef> there = state->second.objects;  // an observer may write
    for (const auto& [name, object] : there)
      observer({resource_version_, kube::WatchEventType::kAdded, object, nullptr});
  }
  introducing_ = false;
}

Subscription ApiServer::Observe(std::string_view kind, Observer observer) {
  if (introducing_) newcomers_.emplace_back(Qualified(ParseGroupKind(kind)), observer);
  return observers_[Qualified(ParseGroupKind(kind))].Add(std::move(observer));
}

void ApiServer::Notify(kube::WatchEventType type, const ObjectRef& object, const ObjectRef& previous) {
  const Change change{resource_version_, type, object, type == kube::WatchEventType::kAdded ? nullptr : previous};
  history_->Add(change);
  if (stale_ != nullptr) {
    stale_->held.push_back(change);
  } else {
    TellWatches(change);
  }
  const auto observers = observers_.find(Qualified(GroupKindOf(*object)));
  if (observers != observers_.end()) observers->second.Tell(change);
}

void ApiServer::TellWatches(const Change& change) {
  const GroupKind kind = GroupKindOf(*change.object);
  for (auto it = watches_.begin(); it != watches_.end();) {
    const WatchState& watch = it->second;
    if (change.resource_version <= watch.after || !watch.parsed.Covers(kind)) {
      ++it;
      continue;
    }
    // By id: a sink may start or stop other watches.
    const WatchId id = it->first;
    watch.sink.on_change(change);
    it = watches_.upper_bound(id);
  }
}

absl::StatusOr<ApiServer::WatchId> ApiServer::StartWatch(std::string_view kind, int64_t after, WatchSink sink) {
  if (after < history_->floor()) {
    return absl::OutOfRangeError(fmt::format("too old resource version: {} ({})", after, history_->floor()));
  }
  if (after > resource_version_) {
    return absl::OutOfRangeError(
        fmt::format("resource version {} is not of this server ({})", after, resource_version_));
  }
  const GroupKind wanted = ParseGroupKind(kind);
  history_->ForEach(after, VisibleVersion(), [&](const Change& change) {
    if (wanted.Covers(*change.object)) sink.on_change(change);
  });
  const WatchId id = next_watch_++;
  WatchState& watch = watches_[id];
  watch.kind = kind;
  watch.parsed = ParseGroupKind(watch.kind);
  watch.after = after;
  watch.sink = std::move(sink);
  return id;
}

void ApiServer::DropWatches(const absl::Status& reason) {
  // Taken out first: an ended watcher starts another.
  std::map<WatchId, WatchState> ended;
  ended.swap(watches_);
  for (auto& [id, watch] : ended) watch.sink.on_end(reason);
  if (events_ != nullptr) events_->objects().DropWatches(reason);
}

void ApiServer::ForgetHistory() {
  history_->Forget(resource_version_);
  if (events_ != nullptr) events_->objects().ForgetHistory();
}

void ApiServer::SetStaleReads(bool stale) {
  if (stale == (stale_ != nullptr)) return;
  if (events_ != nullptr) events_->objects().SetStaleReads(stale);
  if (stale) {
    stale_ = std::make_unique<Stale>(Stale{kinds_, resource_version_, {}});
    return;
  }
  const std::vector<Change> held = std::move(stale_->held);
  stale_.reset();
  for (const Change& change : held) TellWatches(change);
}

}  // namespace wavetank::fakekube
