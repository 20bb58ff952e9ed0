// What a controller's objects say of their owner, and which objects an owner has.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// The owner that controls `object`; null if none does.
const kube::OwnerReference* ControllerOf(const kube::Object& object);

// Whether a workload has to be looked at for its own sake: it is new, or its spec is another. A write of status alone
// changes nothing that is wanted.
bool WantsAnew(const Change& change);

// metadata.ownerReferences of what `owner` controls.
nlohmann::json OwnedBy(const kube::Object& owner);

// Names of objects of one kind by the uid of what controls them.
class Controlled {
 public:
  // To be called with every change of an object of that kind.
  void Follow(const Change& change);

  // Those of `kind` that are there, on their way out or not, by name.
  std::vector<ObjectRef> Of(const ApiServer& api, const kube::Object& owner, const char* kind) const;

 private:
  std::map<std::string, std::set<NamespacedName>> by_owner_;
};

}  // namespace wavetank::fakekube
