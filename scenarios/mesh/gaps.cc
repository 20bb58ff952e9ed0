#include "scenarios/mesh/gaps.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/model/labels.h"
#include "fakes/kube/objects/dumped.h"

namespace wavetank::scenario {

using nlohmann::json;
using pilot::kNetworkLabel;

namespace {

const json& WrittenLabels(const json& object) { return At(object, {"metadata", "labels"}); }

// What the variable is in all containers of those that `of` holds for; empty: nothing, or different things.
template <typename Of>
std::string OneValue(const std::vector<json>& objects, std::string_view variable, Of of) {
  std::set<std::string> values;
  for (const json& object : objects) {
    if (!of(object)) continue;
    const json& pod = Text(object, "kind") == "Pod" ? object : At(object, {"spec", "template"});
    for (const json& container : Items(At(pod, {"spec", "containers"}))) {
      for (const json& each : Items(At(container, "env"))) {
        if (Text(each, "name") == variable) values.insert(Text(each, "value"));
      }
    }
  }
  return values.size() == 1 ? *values.begin() : "";
}

}  // namespace

std::string NetworkOf(const std::vector<json>& objects, const SystemNamespaceSet& system, bool* labelled) {
  std::string gateway;
  *labelled = false;
  for (const json& object : objects) {
    const std::string network = Text(WrittenLabels(object), kNetworkLabel);
    if (network.empty()) continue;
    if (Text(object, "kind") == "Namespace" && system.contains(Text(At(object, "metadata"), "name"))) {
      *labelled = true;
      return network;
    }
    if (Text(object, "kind") == "Service") gateway = network;
  }
  return gateway;
}

json LabelledNamespace(const std::string& name, const std::string& network) {
  return {{"apiVersion", "v1"},
          {"kind", "Namespace"},
          {"metadata", {{"name", name}, {"labels", {{std::string(kNetworkLabel), network}}}}}};
}

bool BringsControlPlane(const std::vector<json>& objects, const SystemNamespaceSet& system) {
  for (const json& object : objects) {
    if (Text(object, "kind") != "Deployment" || !system.contains(Text(At(object, "metadata"), "namespace"))) continue;
    for (const json& container : Items(At(object, {"spec", "template", "spec", "containers"}))) {
      if (Text(container, "name") == "discovery" && !Items(At(container, "env")).empty()) return true;
    }
  }
  return false;
}

bool BringsIstiod(const std::vector<json>& objects) {
  return std::any_of(objects.begin(), objects.end(), [](const json& object) {
    return Text(object, "kind") == "Deployment" &&
           Text(At(object, {"spec", "template", "metadata", "labels"}), "app") == "istiod";
  });
}

std::string ClusterIdOfIstiods(const std::vector<json>& objects) {
  return OneValue(objects, "CLUSTER_ID", [](const json& object) { return BringsIstiod({object}); });
}

std::string ClusterIdOfProxies(const std::vector<json>& objects) {
  return OneValue(objects, "ISTIO_META_CLUSTER_ID", [](const json&) { return true; });
}

bool IsRemoteSecret(const json& object) {
  return Text(object, "kind") == "Secret" && Text(WrittenLabels(object), "istio/multiCluster") == "true";
}

bool BringsRemoteSecrets(const std::vector<json>& objects) {
  return std::any_of(objects.begin(), objects.end(), IsRemoteSecret);
}

bool BringsRoots(const std::vector<json>& objects, const SystemNamespaceSet& system) {
  return std::any_of(objects.begin(), objects.end(), [&](const json& object) {
    const json& meta = At(object, "metadata");
    return Text(object, "kind") == "Secret" && Text(meta, "name") == "cacerts" &&
           system.contains(Text(meta, "namespace"));
  });
}

CutOut TakeCutOut(std::vector<json>* objects, const SystemNamespaceSet& system) {
  CutOut out;
  std::erase_if(*objects, [&](const json& object) {
    const json& meta = At(object, "metadata");
    const std::string cut = Text(At(meta, "annotations"), fakekube::kCutOut);
    if (cut.empty() || Text(object, "kind") != "Secret" || !system.contains(Text(meta, "namespace"))) return false;
    if (Text(meta, "name") == "cacerts") return out.roots = true;
    if (!IsRemoteSecret(object)) return false;
    const std::string told = Text(At(meta, "annotations"), "networking.istio.io/cluster");
    std::vector<std::string> clusters = absl::StrSplit(cut, ',');
    if (cut == "*") clusters = told.empty() ? std::vector<std::string>() : std::vector<std::string>{told};
    if (clusters.empty()) return false;
    out.clusters.insert(out.clusters.end(), clusters.begin(), clusters.end());
    return true;
  });
  return out;
}

}  // namespace wavetank::scenario
