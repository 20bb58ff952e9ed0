// How the lists of Kubernetes' own kinds merge: what its API types declare as patchMergeKey (strategic merge patch) and
// as listType and listMapKey (server-side apply). The two differ: containers' ports merge by containerPort in the
// former, by containerPort and protocol in the latter.
#pragma once

#include <array>
#include <string_view>

namespace wavetank::kube {

struct ListType {
  enum class Merge : uint8_t { kAtomic, kSet, kMap };
  Merge patch = Merge::kAtomic;                // as strategic merge patch takes it
  std::string_view patch_key;                  // of kMap
  Merge apply = Merge::kAtomic;                // as server-side apply takes it
  std::array<std::string_view, 2> apply_keys;  // of kMap; the second may be empty
};

// Of `field`, a list in a mapping that is itself the value of (or, for a list of mappings, an element in) `parent`; ""
// for the object itself. Field names mean the same in all of Kubernetes' kinds but for the few that `kind` decides;
// what is not known is atomic. `kind` of another group than Kubernetes' own must be given as "": only metadata merges.
ListType ListTypeOf(std::string_view kind, std::string_view parent, std::string_view field);

// A mapping that only changes as a whole under server-side apply: selectors, and references to other objects.
bool AtomicMapping(std::string_view kind, std::string_view parent, std::string_view field);

// The value of a list's element of this type that later fields than the keys default to: "TCP" for `protocol`.
std::string_view DefaultOfKey(std::string_view key);

}  // namespace wavetank::kube
