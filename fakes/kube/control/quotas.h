// What a namespace uses of what its ResourceQuotas limit, and whether something new still fits (kubernetes:
// pkg/quota/v1, the admission plugin ResourceQuota). Counted are pods, Services, Secrets, ConfigMaps, claims,
// ReplicationControllers and quotas, `count/RESOURCE.GROUP` of Kubernetes' own kinds, and what pods that have not ended
// ask for and are limited to, within a quota's scopes.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// Of whose objects quotas count the number: "Pod.", "Deployment.apps".
std::vector<std::string> CountedKinds();

// Amounts as a quota's status shows them, by the names of `hard`: {"pods": "2", "requests.cpu": "500m"}.
nlohmann::json QuotaUse(const ApiServer& api, const std::string& ns, const nlohmann::json& quota_spec);

// 403 in the plugin's words if `object`, which is about to be made, does not fit, or does not say what a quota counts.
absl::Status CheckQuotas(const ApiServer& api, const nlohmann::json& object);

}  // namespace wavetank::fakekube
