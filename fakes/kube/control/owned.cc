#include "fakes/kube/control/owned.h"

namespace wavetank::fakekube {

using nlohmann::json;

const kube::OwnerReference* ControllerOf(const kube::Object& object) {
  for (const kube::OwnerReference& owner : object.meta.owner_references) {
    if (owner.controller) return &owner;
  }
  return nullptr;
}

bool WantsAnew(const Change& change) {
  if (change.type == kube::WatchEventType::kDeleted) return false;
  return change.previous == nullptr || change.previous->meta.generation != change.object->meta.generation;
}

json OwnedBy(const kube::Object& owner) {
  return json::array({{{"apiVersion", owner.api_version},
                       {"kind", owner.kind},
                       {"name", owner.meta.name},
                       {"uid", owner.meta.uid},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

void Controlled::Follow(const Change& change) {
  const NamespacedName name{change.object->meta.ns, change.object->meta.name};
  const auto owner_of = [](const ObjectRef& object) {
    const kube::OwnerReference* owner = object == nullptr ? nullptr : ControllerOf(*object);
    return owner == nullptr ? std::string() : owner->uid;
  };
  const bool gone = change.type == kube::WatchEventType::kDeleted;
  const std::string now = gone ? std::string() : owner_of(change.object);
  for (const std::string& before : {owner_of(change.previous), gone ? owner_of(change.object) : std::string()}) {
    const auto known = by_owner_.find(before);
    if (before == now || known == by_owner_.end()) continue;
    known->second.erase(name);
    if (known->second.empty()) by_owner_.erase(known);
  }
  if (!now.empty()) by_owner_[now].insert(name);
}

std::vector<ObjectRef> Controlled::Of(const ApiServer& api, const kube::Object& owner, const char* kind) const {
  std::vector<ObjectRef> out;
  const auto known = by_owner_.find(owner.meta.uid);
  if (known == by_owner_.end()) return out;
  for (const NamespacedName& name : known->second) {
    if (name.ns != owner.meta.ns) continue;
    ObjectRef object = api.Get(kind, name);
    const kube::OwnerReference* controller = object == nullptr ? nullptr : ControllerOf(*object);
    if (controller != nullptr && controller->uid == owner.meta.uid) out.push_back(std::move(object));
  }
  return out;
}

}  // namespace wavetank::fakekube
