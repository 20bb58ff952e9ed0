#include "oracles/control_plane/held_mesh.h"

#include <set>

#include "core/base/bytes.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/gateway_api/objects.h"
#include "fakes/kube/cluster.h"
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

// When a condition changed, and what version of an object it is of, are each API server's own.
void ForgetTimes(nlohmann::json& value) {
  if (value.is_object()) value.erase("lastTransitionTime");
  for (nlohmann::json& each : value) {
    if (each.is_structured()) ForgetTimes(each);
  }
}

BytesRef Bytes(std::string text) {
  struct Held {
    std::string text;
    std::string_view view;
  };
  const auto held = std::make_shared<Held>(Held{std::move(text), {}});
  held->view = held->text;
  return {held, &held->view};
}

// Of the Gateway API's objects, which istiod writes.
void AddStatuses(sim::World& world, HeldMesh& out) {
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    XdsSnapshot::Resources resources;
    for (const std::string& kind : gatewayapi::KindNames()) {
      const std::string qualified = kind + "." + std::string(gatewayapi::kGroup);
      for (const kube::ObjectRef& object : world.cluster(cluster.name).api().List(qualified)) {
        const nlohmann::json& status = At(object->body, "status");
        if (!status.is_object() || status.empty()) continue;
        nlohmann::json kept = status;
        ForgetTimes(kept);
        const std::string name = kind + " " + object->meta.ns + "/" + object->meta.name;
        resources[name] = Bytes(JsonText(nlohmann::json{{"name", name}, {"status", kept}}));
      }
    }
    if (!resources.empty()) out[std::string(kStatusesOf) + cluster.name]["status"] = std::move(resources);
  }
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

HeldMesh HeldCollector::Look(sim::World& world) const {
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
  AddStatuses(world, out);
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
