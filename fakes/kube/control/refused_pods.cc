#include "fakes/kube/control/refused_pods.h"

#include <map>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/control/limit_ranges.h"
#include "fakes/kube/control/quotas.h"
#include "fakes/kube/validation/defaults.h"
#include "fmt/format.h"

namespace wavetank::fakekube {

using nlohmann::json;

std::vector<std::string> RefusedPods(const ApiServer& api) {
  std::vector<std::string> out;
  if (api.List("ResourceQuota").empty() && api.List("LimitRange").empty()) return out;
  std::map<std::string, int64_t> made;  // pods by their owner's UID
  for (const ObjectRef& pod : api.List("Pod")) {
    for (const json& owner : Items(At(pod->body, {"metadata", "ownerReferences"}))) ++made[Text(owner, "uid")];
  }
  for (const char* kind : {"ReplicaSet", "StatefulSet"}) {
    for (const ObjectRef& owner : api.List(kind)) {
      if (made[owner->meta.uid] >= NumberOf(At(owner->body, {"spec", "replicas"}), 1)) continue;
      json pod = At(owner->body, {"spec", "template"});
      if (!pod.is_object()) continue;
      pod["apiVersion"] = "v1";
      pod["kind"] = "Pod";
      pod["metadata"]["namespace"] = owner->meta.ns;
      SetDefaults(pod);
      absl::Status fits = AdmitByLimitRanges(api, pod);
      if (fits.ok()) fits = CheckQuotas(api, pod);
      if (fits.ok()) continue;
      out.push_back(
          fmt::format("{} {}/{}: pods are refused: {}", kind, owner->meta.ns, owner->meta.name, Message(fits)));
    }
  }
  return out;
}

}  // namespace wavetank::fakekube
