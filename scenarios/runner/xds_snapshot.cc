#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::scenario {

void XdsSnapshot::Apply(const pilot::DiscoveryResponse& response) {
  Held& held = types_[response.type];
  // Of clusters and listeners a response is all there is; of the others it may be some.
  if (response.type == pilot::XdsType::kCds || response.type == pilot::XdsType::kLds) held.resources.clear();
  for (const pilot::Resource& resource : response.resources)
    held.resources[std::string(resource.name)] = resource.bytes;
  held.version = response.version_info;
}

void XdsSnapshot::Apply(const pilot::DeltaDiscoveryResponse& response) {
  Held& held = types_[response.type];
  for (const pilot::Resource& resource : response.resources)
    held.resources[std::string(resource.name)] = resource.bytes;
  for (const std::string& name : response.removed_resources) held.resources.erase(name);
  held.version = response.system_version_info;
}

const XdsSnapshot::Resources& XdsSnapshot::of(pilot::XdsType type) const {
  static const auto* const kNone = new Resources;
  const auto it = types_.find(type);
  return it == types_.end() ? *kNone : it->second.resources;
}

const std::string& XdsSnapshot::version(pilot::XdsType type) const {
  static const auto* const kNone = new std::string;
  const auto it = types_.find(type);
  return it == types_.end() ? *kNone : it->second.version;
}

}  // namespace wavetank::scenario
