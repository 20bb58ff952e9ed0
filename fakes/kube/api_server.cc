#include "fakes/kube/api_server.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/base/random.h"
#include "core/kube/time_format.h"
#include "fakes/kube/patch.h"

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

// Equal but for what the server itself writes at every change.
bool SameContent(const json& a, const json& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.items()) {
    const auto other = b.find(key);
    if (other == b.end()) return false;
    if (key != "metadata") {
      if (value != *other) return false;
      continue;
    }
    json left = value, right = *other;
    for (const char* field : {"resourceVersion", "generation"}) {
      left.erase(field);
      right.erase(field);
    }
    if (left != right) return false;
  }
  return true;
}

}  // namespace

ApiServer::ApiServer(Host& host, const Options& options)
    : host_(host),
      options_(options),
      trace_name_(host.Intern(options.name)),
      resource_version_(options.first_resource_version),
      services_(options.service_cidr),
      history_floor_(options.first_resource_version) {}

std::vector<const ApiServer::Kind*> ApiServer::Find(const GroupKind& kind) const {
  std::vector<const Kind*> out;
  if (!kind.any_group) {
    if (const auto it = kinds_.find(kind); it != kinds_.end()) out.push_back(&it->second);
    return out;
  }
  for (auto it = kinds_.lower_bound(GroupKind{kind.kind, {}}); it != kinds_.end() && it->first.first == kind.kind; ++it)
    out.push_back(&it->second);
  return out;
}

absl::StatusOr<ObjectRef> ApiServer::One(std::string_view kind, const NamespacedName& name) const {
  ObjectRef found;
  for (const Kind* k : Find(ParseGroupKind(kind))) {
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
  for (const Kind* k : Find(ParseGroupKind(kind))) {
    if (const auto it = k->objects.find(name); it != k->objects.end()) return it->second;
  }
  return nullptr;
}

std::vector<ObjectRef> ApiServer::List(std::string_view kind, std::string_view ns) const {
  std::vector<ObjectRef> out;
  for (const Kind* k : Find(ParseGroupKind(kind))) {
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
  const std::string kind = body.at("kind").get<std::string>();
  json& metadata = body["metadata"];
  const NamespacedName name{metadata.value("namespace", ""), metadata.value("name", "")};
  SetDefaults(body);
  const std::string api_version = body.at("apiVersion").get<std::string>();
  const GroupKind group_kind{kind, GroupOf(api_version)};
  if (group_kind.Is("Service")) {
    if (absl::Status status = services_.Assign(body, previous.get()); !status.ok()) return status;
  }
  ++resource_version_;
  metadata["resourceVersion"] = std::to_string(resource_version_);
  absl::StatusOr<ObjectRef> object = kube::Object::FromJson(std::move(body));
  if (!object.ok()) {
    --resource_version_;
    return object.status();
  }
  kinds_[{kind, std::string(group_kind.group)}].objects[name] = *object;
  if (previous != nullptr && group_kind.Is("Service")) services_.Release(*previous, object->get());
  if (previous == nullptr) ++object_count_;
  const std::string key = (*object)->Key();
  host_.Emit({TraceKind::kObjectApplied, trace_name_, host_.Intern(key), resource_version_, 0, {}});
  for (const kube::OwnerReference& owner : (*object)->meta.owner_references)
    dependents_[owner.uid][{Qualified(group_kind), name}] = true;
  Notify(previous == nullptr ? kube::WatchEventType::kAdded : kube::WatchEventType::kModified, *object, previous);
  return *object;
}

absl::StatusOr<ObjectRef> ApiServer::Create(json body) {
  absl::StatusOr<ObjectRef> parsed = kube::Object::FromJson(body);
  if (!parsed.ok()) return parsed.status();
  const std::string& kind = (*parsed)->kind;
  NamespacedName name{(*parsed)->meta.ns, (*parsed)->meta.name};
  json& metadata = body["metadata"];
  const std::string qualified = Qualified(GroupKindOf(**parsed));
  if (ClusterScoped(GroupKindOf(**parsed))) {
    metadata.erase("namespace");
    name.ns.clear();
  } else {
    if (name.ns.empty()) metadata["namespace"] = name.ns = "default";
    if (Get("Namespace", {"", name.ns}) == nullptr) {
      if (!options_.create_namespaces) {
        return absl::NotFoundError(fmt::format("{}: namespace {} does not exist in {}; create it first",
                                               Describe(kind, name), name.ns, options_.name));
      }
      absl::StatusOr<ObjectRef> ns =
          Create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name.ns}}}});
      if (!ns.ok()) return ns.status();
    }
  }
  if (Get(qualified, name) != nullptr) {
    return absl::AlreadyExistsError(fmt::format("{} already exists in {}", Describe(kind, name), options_.name));
  }
  metadata["uid"] = MakeUid(options_.name, Describe(kind, name), ++created_);
  metadata["generation"] = 1;
  if (!metadata.contains("creationTimestamp") || metadata["creationTimestamp"].is_null()) {
    metadata["creationTimestamp"] =
        kube::FormatRfc3339(kWorldEpochUnixSeconds + host_.Now().time_since_epoch() / std::chrono::seconds(1));
  }
  return Store(std::move(body), nullptr);
}

absl::StatusOr<ObjectRef> ApiServer::Update(json body) {
  absl::StatusOr<ObjectRef> parsed = kube::Object::FromJson(body);
  if (!parsed.ok()) return parsed.status();
  const std::string& kind = (*parsed)->kind;
  NamespacedName name{(*parsed)->meta.ns, (*parsed)->meta.name};
  const GroupKind group_kind = GroupKindOf(**parsed);
  if (ClusterScoped(group_kind)) {
    name.ns.clear();
  } else if (name.ns.empty()) {
    name.ns = "default";
    body["metadata"]["namespace"] = name.ns;
  }
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
  for (const char* field : {"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp"}) {
    if (const auto it = old_metadata.find(field); it != old_metadata.end()) metadata[field] = *it;
  }
  if (group_kind.Is("Namespace")) {
    json labels = metadata.value("labels", json::object());
    if (!labels.is_object()) labels = json::object();
    labels["kubernetes.io/metadata.name"] = name.name;
    metadata["labels"] = labels;
  }
  const auto keep = [&](const char* section, std::initializer_list<const char*> fields) {
    const auto old = previous->body.find(section);
    if (old == previous->body.end() || !old->is_object() || !body.contains(section) || !body[section].is_object())
      return;
    for (const char* field : fields) {
      const auto it = old->find(field);
      if (it != old->end() && !body[section].contains(field)) body[section][field] = *it;
    }
  };
  if (!body.contains("status") && previous->body.contains("status")) body["status"] = previous->body["status"];
  if (group_kind.Is("Service")) {
    keep("spec", {"clusterIP", "clusterIPs"});
    // Node ports stay with their port's name.
    const auto old_ports = previous->body["spec"].find("ports");
    if (old_ports != previous->body["spec"].end() && body["spec"].contains("ports") &&
        body["spec"]["ports"].is_array()) {
      for (json& port : body["spec"]["ports"]) {
        if (!port.is_object() || (port.contains("nodePort") && port["nodePort"] != 0)) continue;
        for (const json& old : *old_ports) {
          if (old.value("name", "") == port.value("name", "") && old.contains("nodePort"))
            port["nodePort"] = old["nodePort"];
        }
      }
    }
  }
  // What defaulting would add anyway is no change.
  json defaulted = body;
  SetDefaults(defaulted);
  if (SameContent(defaulted, previous->body)) return previous;
  if (!body.contains("spec") || !previous->body.contains("spec") || defaulted["spec"] != previous->body["spec"]) {
    metadata["generation"] = previous->meta.generation + 1;
  }
  return Store(std::move(body), previous);
}

absl::StatusOr<ObjectRef> ApiServer::Apply(json body) {
  absl::StatusOr<ObjectRef> parsed = kube::Object::FromJson(body);
  if (!parsed.ok()) return parsed.status();
  const GroupKind kind = GroupKindOf(**parsed);
  NamespacedName name{(*parsed)->meta.ns, (*parsed)->meta.name};
  if (ClusterScoped(kind)) {
    name.ns.clear();
  } else if (name.ns.empty()) {
    name.ns = "default";
  }
  if (Get(Qualified(kind), name) != nullptr) return Update(std::move(body));
  if ((*parsed)->meta.resource_version != 0) {
    return absl::AbortedError(fmt::format("{}: the object of resourceVersion {} has been deleted; retry without one",
                                          Describe(kind.kind, name), (*parsed)->meta.resource_version));
  }
  return Create(std::move(body));
}

absl::StatusOr<ObjectRef> ApiServer::Patch(std::string_view kind, const NamespacedName& name, const json& patch) {
  const absl::StatusOr<ObjectRef> previous = One(kind, name);
  if (!previous.ok()) return previous.status();
  json body = (*previous)->body;
  MergePatch(body, patch);
  return Update(std::move(body));
}

void ApiServer::DeleteDependents(const std::string& uid) {
  const auto it = dependents_.find(uid);
  if (it == dependents_.end()) return;
  const auto dependents = std::move(it->second);
  dependents_.erase(it);
  for (const auto& [key, unused] : dependents) {
    const ObjectRef object = Get(key.first, key.second);
    if (object == nullptr) continue;
    bool owned = false;
    for (const kube::OwnerReference& owner : object->meta.owner_references) owned = owned || owner.uid == uid;
    if (owned) Delete(key.first, key.second).IgnoreError();
  }
}

absl::Status ApiServer::Delete(std::string_view kind, const NamespacedName& name) {
  const absl::StatusOr<ObjectRef> found = One(kind, name);
  if (!found.ok()) return found.status();
  const ObjectRef& object = *found;
  const GroupKind group_kind = GroupKindOf(*object);
  if (!group_kind.Is("Pod")) return Finalize(Qualified(group_kind), name);
  if (object->meta.deleting) return absl::OkStatus();
  json body = object->body;
  body["metadata"]["deletionTimestamp"] =
      kube::FormatRfc3339(kWorldEpochUnixSeconds + host_.Now().time_since_epoch() / std::chrono::seconds(1));
  return Store(std::move(body), object).status();
}

absl::Status ApiServer::Finalize(std::string_view kind, const NamespacedName& name) {
  const absl::StatusOr<ObjectRef> found = One(kind, name);
  if (!found.ok()) return found.status();
  const ObjectRef object = *found;
  const GroupKind group_kind = GroupKindOf(*object);
  const std::string qualified = Qualified(group_kind);
  kinds_.find(group_kind)->second.objects.erase(name);
  --object_count_;
  if (group_kind.Is("Service")) services_.Release(*object, nullptr);
  for (const kube::OwnerReference& owner : object->meta.owner_references) {
    if (const auto d = dependents_.find(owner.uid); d != dependents_.end()) d->second.erase({qualified, name});
  }
  ++resource_version_;
  host_.Emit({TraceKind::kObjectDeleted, trace_name_, host_.Intern(object->Key()), resource_version_, 0, {}});
  Notify(kube::WatchEventType::kDeleted, object, object);
  DeleteDependents(object->meta.uid);
  if (group_kind.Is("Namespace")) {
    // A namespace takes its content with it.
    std::vector<std::pair<std::string, NamespacedName>> content;
    for (const auto& [other, state] : kinds_) {
      for (auto inside = state.objects.lower_bound({name.name, ""});
           inside != state.objects.end() && inside->first.ns == name.name; ++inside) {
        content.emplace_back(Qualified(GroupKind{other.first, other.second}), inside->first);
      }
    }
    for (const auto& [other, inside] : content) Finalize(other, inside).IgnoreError();
  }
  return absl::OkStatus();
}

void ApiServer::Observe(std::string_view kind, Observer observer) {
  observers_[Qualified(ParseGroupKind(kind))].push_back(std::move(observer));
}

void ApiServer::Notify(kube::WatchEventType type, const ObjectRef& object, const ObjectRef& previous) {
  const Change change{resource_version_, type, object, type == kube::WatchEventType::kAdded ? nullptr : previous};
  history_.push_back(change);
  while (history_.size() > options_.history) {
    history_floor_ = history_.front().resource_version;
    history_.pop_front();
  }
  for (const auto& [id, watch] : watches_) {
    if (ParseGroupKind(watch.kind).Covers(*object)) watch.sink.on_change(change);
  }
  const auto observers = observers_.find(Qualified(GroupKindOf(*object)));
  if (observers == observers_.end()) return;
  // By index: an observer may register another.
  for (size_t i = 0; i < observers->second.size(); ++i) observers->second[i](change);
}

absl::StatusOr<ApiServer::WatchId> ApiServer::StartWatch(std::string_view kind, int64_t after, WatchSink sink) {
  if (after < history_floor_) {
    return absl::OutOfRangeError(fmt::format("too old resource version: {} ({}); list again", after, history_floor_));
  }
  const GroupKind wanted = ParseGroupKind(kind);
  for (const Change& change : history_) {
    if (change.resource_version > after && wanted.Covers(*change.object)) sink.on_change(change);
  }
  const WatchId id = next_watch_++;
  watches_.emplace(id, WatchState{std::string(kind), std::move(sink)});
  return id;
}

void ApiServer::DropWatches(const absl::Status& reason) {
  // Taken out first: an ended watcher starts another.
  std::map<WatchId, WatchState> ended;
  ended.swap(watches_);
  for (auto& [id, watch] : ended) watch.sink.on_end(reason);
}

void ApiServer::ForgetHistory() {
  history_.clear();
  history_floor_ = resource_version_;
}

}  // namespace wavetank::fakekube
