// Webhooks of other programs (vault's, a policy engine's): whether somebody answers, and that pods pass. What they
// would change of a pod nothing here knows.
#pragma once

#include <set>

#include "absl/status/status.h"
#include "core/base/observers.h"
#include "core/inject/webhook_configuration.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

class ForeignWebhooks {
 public:
  explicit ForeignWebhooks(fakekube::ApiServer& api);

  // OK: the pod passes. Unavailable: in the API server's words, why nobody answered. Whoever stands outside of the
  // cluster answers. So do servers that have not come up yet: a mesh's pods passed them when it was installed, and they
  // pass themselves.
  absl::Status Ask(const pilot::WebhookTarget& target) const;

 private:
  const fakekube::ApiServer& api_;
  std::set<kube::NamespacedName> answered_;  // Services that have had a ready endpoint
  Subscription subscription_;
};

}  // namespace wavetank::sim
