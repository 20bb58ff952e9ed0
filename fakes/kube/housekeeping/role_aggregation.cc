#include "fakes/kube/housekeeping/role_aggregation.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/kube/label_selector.h"

namespace wavetank::fakekube {

using nlohmann::json;

RoleAggregator::RoleAggregator(ApiServer& api)
    : api_(api), pending_(api.host()), queue_(pending_, [this](const NamespacedName& name) { Sync(name); }) {
  subscriptions_.Add(api_.Observe("ClusterRole", [this](const Change&) {
    for (const ObjectRef& role : api_.List("ClusterRole")) {
      if (At(role->body, "aggregationRule").is_object()) queue_.Add({"", role->meta.name});
    }
  }));
}

void RoleAggregator::Sync(const NamespacedName& name) {
  const ObjectRef role = api_.Get("ClusterRole", name);
  if (role == nullptr) return;
  json rules = json::array();
  for (const json& selector : Items(At(role->body, {"aggregationRule", "clusterRoleSelectors"}))) {
    const auto parsed = kube::LabelSelector::FromJson(selector);
    if (!parsed.ok()) continue;
    for (const ObjectRef& other : api_.List("ClusterRole")) {
      if (other->meta.name == name.name || !parsed->Matches(other->meta.labels)) continue;
      for (const json& rule : Items(At(other->body, "rules"))) {
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
      }
    }
  }
  if (At(role->body, "rules") == rules) return;
  json body = role->body;
  body["rules"] = std::move(rules);
  body["metadata"].erase("resourceVersion");
  api_.Update(std::move(body)).IgnoreError();
}

}  // namespace wavetank::fakekube
