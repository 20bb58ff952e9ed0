// Which behaviour change of docs/profiles.md is behind which difference between two releases' configuration. In forks
// of the settled mesh all istiods are replaced, once by each release, once by each release with one change alone as the
// other has it, and send everything to the same proxies again. A resource that one change alone makes another is that
// change's.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "check/upgrade/held.h"
#include "core/profile/profile.h"

namespace wavetank::check {

// By a profile's resource.
using ChangesOfResources = std::map<ResourceKey, std::set<std::string>>;  // names of changes

struct Attribution {
  std::vector<std::string> changes;  // those in which the two profiles differ, in the table's order
  // By group of proxies: what istiods of the first profile send.
  std::map<std::string, ResourceHashes> before;
  // By group: what differs between the two, with the changes behind it; none: unexplained.
  std::map<std::string, ChangesOfResources> groups;
  // Profiles whose istiods did not come to rest within the bound, and what kept them from it.
  std::vector<std::string> restless;
};

struct AttributionOptions {
  pilot::Profile from, to;
  bool explain = true;  // false: `before` alone
  int processes = 1;
  std::function<void(std::string_view)> progress;
};

// `world`: at rest; it stays as it is. InvalidArgument: it has an istiod that cannot be replaced. Internal: a fork
// died.
absl::StatusOr<Attribution> Attribute(sim::World& world, const AttributionOptions& options);

}  // namespace wavetank::check
