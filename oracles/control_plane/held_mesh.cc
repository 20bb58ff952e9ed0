#include "oracles/control_plane/held_mesh.h"

#include <set>

#include "oracles/golden/xds_json.h"

namespace wavetank::serve {
namespace {

using pilot::XdsType;
using scenario::XdsSnapshot;

const std::vector<std::pair<std::string, XdsType>>& StreamedTypes() {
  static const auto* const types = new std::vector<std::pair<std::string, XdsType>>{
      {"cds", XdsType::kCds}, {"eds", XdsType::kEds}, {"lds", XdsType::kLds}, {"rds", XdsType::kRds}};
  return *types;
}

}  // namespace

std::vector<std::string_view> BytesOf(const XdsSnapshot::Resources& resources) {
  std::vector<std::string_view> out;
  for (const auto& [name, bytes] : resources) out.push_back(*bytes);
  return out;
}

void HeldCollector::Listen(sim::World& world) {
  subscriptions_ = world.commons().OnEitherXds([this, &world](const std::string& proxy, const auto& response) {
    // Of these AskBesides is told by itself.
    if (response.type == XdsType::kNds || response.type == XdsType::kEcds) return;
    proxies_[proxy].Apply(response);
    ++count_;
    last_ = world.Now();
  });
}

void HeldCollector::Forget() {
  proxies_.clear();
  besides_.clear();
}

HeldMesh HeldCollector::Look(const sim::World& world) const {
  static const auto* const kNothing = new XdsSnapshot;
  HeldMesh out;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr) continue;
    const auto it = proxies_.find(pod->name());
    const XdsSnapshot& snapshot = it == proxies_.end() ? *kNothing : it->second;
    HeldTypes& held = out[pod->name()];
    for (const auto& [kind, type] : StreamedTypes()) held[kind] = snapshot.of(type);
    const auto keep = [](XdsSnapshot::Resources& resources, const std::vector<std::string>& names) {
      const std::set<std::string> wanted(names.begin(), names.end());
      std::erase_if(resources, [&](const auto& entry) { return !wanted.contains(entry.first); });
    };
    keep(held["eds"], golden::EdsNames(BytesOf(held["cds"])));
    keep(held["rds"], golden::RdsNames(BytesOf(held["lds"])));
    if (const auto more = besides_.find(pod->name()); more != besides_.end()) {
      for (const auto& [kind, resources] : more->second) held[kind] = resources;
    }
  }
  return out;
}

std::vector<std::string> HeldCollector::ExtensionsOf(const std::string& proxy) const {
  const auto it = proxies_.find(proxy);
  return it == proxies_.end() ? std::vector<std::string>() : golden::EcdsNames(BytesOf(it->second.of(XdsType::kLds)));
}

void HeldCollector::Put(const std::string& proxy, const std::string& type, XdsSnapshot::Resources resources) {
  besides_[proxy][type] = std::move(resources);
}

}  // namespace wavetank::serve
