#include "fakes/kube/housekeeping/resource_quotas.h"

#include <utility>

#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "fakes/kube/control/quotas.h"

namespace wavetank::fakekube {

using nlohmann::json;

namespace {
constexpr const char* kQuota = "ResourceQuota";
}  // namespace

ResourceQuotaController::ResourceQuotaController(ApiServer& api)
    : api_(api), pending_(api.host()), queue_(pending_, [this](const NamespacedName& name) { Sync(name); }) {
  // Its own status comes back here, too, and is equal then.
  for (const std::string& kind : CountedKinds()) {
    subscriptions_.Add(api_.Observe(kind, [this](const Change& change) {
      for (const ObjectRef& quota : api_.List(kQuota, change.object->meta.ns))
        queue_.Add({quota->meta.ns, quota->meta.name});
    }));
  }
}

void ResourceQuotaController::Sync(const NamespacedName& name) {
  const ObjectRef quota = api_.Get(kQuota, name);
  if (quota == nullptr || quota->meta.deleting) return;
  const json& spec = At(quota->body, "spec");
  json body = quota->body;
  body["status"] = JsonObject("hard", At(spec, "hard").is_object() ? At(spec, "hard") : json::object(), "used",
                              QuotaUse(api_, name.ns, spec));
  body["metadata"].erase("resourceVersion");
  api_.Update(std::move(body)).IgnoreError();
}

}  // namespace wavetank::fakekube
