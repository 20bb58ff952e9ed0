#include "fakes/kube/control/pod_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/base/bounds.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/kube/credentials/sealing.h"
#include "core/kube/safe_text.h"
#include "core/kube/types.h"
#include "fakes/kube/control/owned.h"

namespace wavetank::fakekube {

using nlohmann::json;

std::string GeneratedSuffix(const std::string& cluster, uint64_t seed, const NamespacedName& workload,
                            uint64_t number) {
  return kube::SafeText(HashName(fmt::format("{}/{}/{}/{}", cluster, workload.ns, workload.name, number), seed), 5);
}

std::string TemplateHash(const kube::Object& workload) {
  const json& pod_template = At(workload.body, {"spec", "template"});
  // Without credentials, so that a log which holds none of them leads to the same names.
  std::string hash = kube::SafeText(HashName(pod_template.is_null() ? "{}" : JsonText(kube::Sealed(pod_template))), 10);
  const auto recorded = workload.meta.annotations.find(kRecordedHash);
  if (recorded == workload.meta.annotations.end() || !recorded->second.starts_with(hash + "=")) return hash;
  return recorded->second.substr(hash.size() + 1);
}

int64_t Replicas(const kube::Object& workload) {
  return std::clamp<int64_t>(Number(At(workload.body, "spec"), "replicas", 1), 0, bounds::kReplicas);
}

int64_t BoundedCount(const json& value, int64_t otherwise) {
  return std::clamp<int64_t>(NumberOf(value, otherwise), 0, INT32_MAX);
}

size_t BeyondLimit(size_t old, const json& limit, int64_t otherwise) {
  const auto most = static_cast<size_t>(BoundedCount(limit, otherwise));
  return old > most ? old - most : 0;
}

int64_t Quota(const json& value, int64_t replicas, bool round_up) {
  if (value.is_number_integer()) return BoundedCount(value, 0);
  if (!value.is_string()) return round_up ? 1 : 0;
  const std::string text = value.get<std::string>();
  const int64_t percent = BoundedCount(std::strtoll(text.c_str(), nullptr, 10), 0);
  return round_up ? (replicas * percent + 99) / 100 : replicas * percent / 100;
}

bool PodReady(const kube::Object& pod) { return kube::ParsePod(pod).ready; }

bool HasEnded(const json& pod) {
  const std::string phase = Text(At(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool ServesOtherwise(const Change& pod) {
  if (pod.type != kube::WatchEventType::kModified || pod.previous == nullptr) return true;
  return PodReady(*pod.previous) != PodReady(*pod.object) || pod.previous->meta.deleting != pod.object->meta.deleting;
}

json PodOfTemplate(const json& pod_template, const kube::Object& owner, const std::string& name) {
  json metadata = At(pod_template, "metadata");
  if (!metadata.is_object()) metadata = json::object();
  metadata["name"] = name;
  metadata["generateName"] = owner.meta.name + "-";
  metadata["namespace"] = owner.meta.ns;
  metadata["ownerReferences"] = OwnedBy(owner);
  return {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}, {"spec", At(pod_template, "spec")}};
}

}  // namespace wavetank::fakekube
