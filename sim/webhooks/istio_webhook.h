// istiod's validation webhook in front of what is written into a cluster, by core/validation.
#pragma once

#include "fakes/kube/http/rest/rest.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

// Denied as "admission webhook \"rev.validation.istio.io\" denied the request: ...". Asked are the webhooks of the
// cluster's ValidatingWebhookConfigurations that lead to an istiod and whose rules and selectors take the object; a
// cluster that has no such configuration at all is taken for installed as by default. That an istiod is there to answer
// is the caller's to know.
fakekube::http::WebhookVerdict JudgeByIstio(const fakekube::ApiServer& cluster, const nlohmann::json& object);

}  // namespace wavetank::sim
