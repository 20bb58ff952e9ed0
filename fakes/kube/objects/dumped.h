// Objects as `kubectl get -o yaml` prints them, made into what can be applied to another cluster: a world has API
// servers and controllers of its own, which give uids, versions, addresses and statuses themselves.
#pragma once

#include <vector>

#include "fakes/kube/objects/manifest.h"

namespace wavetank::fakekube {

// An API server wrote it: it has a uid, a resourceVersion or managedFields.
bool IsDumped(const nlohmann::json& object);

inline constexpr const char* kCutOut = "wavetank/cut-out";  // an annotation

// Annotation of an object that nobody saw: `wavetank import` made it up of lines that name it, and what they do not
// tell (ports, selectors, certificates) says nothing of the real one.
inline constexpr const char* kMadeUp = "wavetank.io/made-up";

// Of dumped objects alone; what a person wrote stays as it is.
// - What another dumped object's controller makes again goes: pods of a ReplicaSet that is there, slices of a Service,
//   tokens, the root certificates' ConfigMaps; and what is no wish at all: Events, Leases, Nodes.
// - Of the others goes what only that cluster's server and controllers could say: uid, resourceVersion, managedFields,
//   ownerReferences, finalizers, status, cluster IPs, a pod's node. Manifest::dumped keeps the status.
// - Of a Secret goes what somebody put in the place of its values before it was given away: no base64, nothing, words
//   that say so. Annotation kCutOut has the names of such keys, with commas; "*": its data is not there at all.
// O(size of the objects).
void CleanDumped(std::vector<Manifest>* manifests);

}  // namespace wavetank::fakekube
