#include "fakes/kube/objects/dumped.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "core/base/json_access.h"
#include "core/kube/secret.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;
using Key = std::tuple<std::string, std::string, std::string>;  // kind, namespace, name

Key KeyOf(const json& object) {
  const json& meta = At(object, "metadata");
  return {Text(object, "kind"), Text(meta, "namespace"), Text(meta, "name")};
}

// Of which the cluster that it is applied to has its own.
bool MadeByAnyCluster(const json& object) {
  const std::string kind = Text(object, "kind"), name = Text(At(object, "metadata"), "name");
  if (kind == "Event" || kind == "Lease" || kind == "Node" || kind == "ComponentStatus" || kind == "CSINode")
    return true;
  if (kind == "ConfigMap") return name == "kube-root-ca.crt";
  if (kind == "Secret") return Text(object, "type") == "kubernetes.io/service-account-token";
  if (kind == "Service" || kind == "Endpoints" || kind == "EndpointSlice") {
    return Text(At(object, {"metadata", "labels"}), "component") == "apiserver" || name == "kubernetes";
  }
  return false;
}

// What the owner's controller makes again.
bool IsMadeFromOthers(const json& object, const std::set<Key>& dumped) {
  const std::string kind = Text(object, "kind"), ns = Text(At(object, "metadata"), "namespace");
  for (const json& owner : Items(At(object, {"metadata", "ownerReferences"}))) {
    const bool controls = At(owner, "controller") == json(true) || kind == "EndpointSlice";
    if (controls && dumped.contains({Text(owner, "kind"), ns, Text(owner, "name")})) return true;
  }
  // Endpoints have no owner: they bear their Service's name.
  if (kind != "Endpoints") return false;
  return dumped.contains({"Service", ns, Text(At(object, "metadata"), "name")});
}

void CleanMetadata(json& meta) {
  for (const char* field : {"uid", "resourceVersion", "generation", "selfLink", "managedFields", "ownerReferences",
                            "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    meta.erase(field);
  }
  if (const auto it = meta.find("annotations"); it != meta.end() && it->is_object()) {
    it->erase("kubectl.kubernetes.io/last-applied-configuration");
    it->erase("deployment.kubernetes.io/revision");
  }
}

void CleanSpec(const std::string& kind, json& spec) {
  if (kind == "Service") {
    if (Text(spec, "clusterIP") != "None") {
      spec.erase("clusterIP");
      spec.erase("clusterIPs");
    }
    spec.erase("healthCheckNodePort");
  } else if (kind == "Pod") {
    spec.erase("nodeName");
  } else if (kind == "Namespace") {
    spec.erase("finalizers");
  }
}

void CleanSecret(json& secret) {
  std::string cut;
  if (const auto data = secret.find("data"); data == secret.end() || !data->is_object() || data->empty()) {
    if (At(secret, "stringData").empty()) cut = "*";
    secret.erase("data");
  } else {
    for (auto it = data->begin(); it != data->end();) {
      if (!kube::IsCutOut(*it)) {
        ++it;
        continue;
      }
      cut += (cut.empty() ? "" : ",") + it.key();
      it = data->erase(it);
    }
  }
  if (!cut.empty()) secret["metadata"]["annotations"][kCutOut] = cut;
}

}  // namespace

bool IsDumped(const json& object) {
  const json& meta = At(object, "metadata");
  return !Text(meta, "uid").empty() || !Text(meta, "resourceVersion").empty() || At(meta, "managedFields").is_array();
}

void CleanDumped(std::vector<Manifest>* manifests) {
  std::set<Key> dumped;
  for (const Manifest& manifest : *manifests) {
    if (IsDumped(manifest.object)) dumped.insert(KeyOf(manifest.object));
  }
  if (dumped.empty()) return;
  std::erase_if(*manifests, [&](const Manifest& manifest) {
    return IsDumped(manifest.object) &&
           (MadeByAnyCluster(manifest.object) || IsMadeFromOthers(manifest.object, dumped));
  });
  for (Manifest& manifest : *manifests) {
    json& object = manifest.object;
    if (!IsDumped(object)) continue;
    manifest.dumped = true;
    CleanMetadata(object["metadata"]);
    if (Text(object, "kind") == "Secret") CleanSecret(object);
    if (const auto spec = object.find("spec"); spec != object.end() && spec->is_object()) {
      CleanSpec(Text(object, "kind"), *spec);
    }
    if (const auto status = object.find("status"); status != object.end()) {
      manifest.status = std::move(*status);
      object.erase(status);
    }
  }
}

}  // namespace wavetank::fakekube
