#include "scenarios/runner/xds_snapshot.h"

namespace wavetank::scenario {
namespace {

void Put(XdsSnapshot::Resources& held, const pilot::Resource& resource) {
  const auto it = held.find(std::string_view(resource.name));
  if (it == held.end()) {
    held.emplace(std::string(resource.name), resource.bytes);
  } else {
    it->second = resource.bytes;
  }
}

// Most responses hold what the one before held, under the same names.
bool PutInPlace(XdsSnapshot::Resources& held, const pilot::ResourceList& resources) {
  if (held.size() != resources.size()) return false;
  for (const pilot::Resource& resource : resources) {
    if (!held.contains(std::string_view(resource.name))) return false;
  }
  for (const pilot::Resource& resource : resources) Put(held, resource);
  return true;
}

}  // namespace

void XdsSnapshot::Apply(const pilot::DiscoveryResponse& response) {
  Held& held = types_[response.type];
  // Of clusters and listeners a response is all there is; of the others it may be some.
  const bool all = response.type == pilot::XdsType::kCds || response.type == pilot::XdsType::kLds;
  if (!all || !PutInPlace(held.resources, response.resources)) {
    if (all) held.resources.clear();
    for (const pilot::Resource& resource : response.resources) Put(held.resources, resource);
  }
  held.version = response.version_info;
}

void XdsSnapshot::Apply(const pilot::DeltaDiscoveryResponse& response) {
  Held& held = types_[response.type];
  for (const pilot::Resource& resource : response.resources) Put(held.resources, resource);
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
