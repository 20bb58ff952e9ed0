// istiod's validation webhook in front of what is written into a cluster, by core/validation.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "core/profile/profile.h"
#include "fakes/kube/http/rest/rest.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

// Whether the API server reaches an istiod behind a webhook's clientConfig and believes who it is; why not, as it says.
using ReachWebhook = std::function<absl::Status(const nlohmann::json& webhook)>;

// Denied as "admission webhook \"rev.validation.istio.io\" denied the request: ...". Asked are the webhooks of the
// cluster's ValidatingWebhookConfigurations that lead to an istiod and whose rules and selectors take the object; one
// that is not reached fails the write, or lets it pass, as its failurePolicy says. A cluster that has no such
// configuration at all is taken for installed as by default, if `by_default`: an istiod is there to answer. `profile`:
// its release.
fakekube::http::WebhookVerdict JudgeByIstio(const fakekube::ApiServer& cluster, const nlohmann::json& object,
                                            const ReachWebhook& reach, bool by_default, const pilot::Profile& profile);

}  // namespace wavetank::sim
