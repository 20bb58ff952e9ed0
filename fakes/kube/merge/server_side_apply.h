// Server-side apply: who manages which fields of an object (metadata.managedFields), and what an apply or any other
// write does to that. apimachinery: pkg/util/managedfields; structured-merge-diff: merge/update.go.
//
// What a client makes has managedFields from its creation on. What a scenario's manifests or a controller make has them
// from a client's first change of it on: what it held before belongs to the manager "before-first-apply", as in a
// cluster that did not track fields yet; what client-side apply says of itself in its annotation is
// "kubectl-client-side-apply"'s.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "fakes/kube/objects/kinds.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

struct FieldManager {
  std::string name;
  std::string subresource;  // "status", or ""
  std::string now;          // RFC 3339
  // How custom resources of that kind merge: the openAPIV3Schema of their definition; null: it says nothing, and their
  // lists change as a whole.
  const nlohmann::json* schema = nullptr;
};

// `live` with what `applied` says, without what this manager applied before and no longer does (unless others manage
// it), and with managedFields. `live` null: the object is new.
//
// Aborted (409 Conflict, with kubectl's words and a cause per field) if that would change what others manage, unless
// `force`, which takes it from them. The manager "kubectl" has no conflict about what the annotation of client-side
// apply says. BadRequest: `applied` has managedFields, or an element of a list without its keys.
absl::StatusOr<nlohmann::json> ServerSideApply(const nlohmann::json& live, const nlohmann::json& applied,
                                               const GroupKind& kind, const FieldManager& manager, bool force);

// After any other write: what changed is the writer's, what is gone is nobody's.
// managedFields in `after` are the writer's word on who managed what before it (managedfields: fieldmanager.go,
// Update): an empty list or a list of one empty entry gives tracking up, none at all leaves those of `before`.
void TrackUpdate(const nlohmann::json& before, nlohmann::json& after, const GroupKind& kind,
                 const FieldManager& manager);

// At an object's creation by a client, with its defaults: all that it says but for its status is its maker's.
void TrackCreation(nlohmann::json& object, const GroupKind& kind, const FieldManager& manager);

bool HasManagedFields(const nlohmann::json& object);
// Somebody has applied it: then reports of status are tracked, too. (Until then nobody could be in conflict with them.)
bool WasApplied(const nlohmann::json& object);

}  // namespace wavetank::fakekube
