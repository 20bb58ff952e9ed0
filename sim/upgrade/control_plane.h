// What an operator does to a primary cluster's control plane: another release in place, beside the one that runs as a
// revision of its own (istio.io: setup/upgrade/canary), and what runs no more taken away.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/profile/profile.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

// The istiods that are there become `profile`'s, one rollout for each Deployment; the injector puts in proxies of that
// release from now on. NotFound: no Deployment of istiod is there.
absl::Status UpgradeInPlace(fakekube::ApiServer& api, const pilot::Profile& profile);

// Deployment, Service, mesh configuration, injector and webhooks of revision `revision`, after those that are there.
// `mesh_config`: of the installation, where no ConfigMap `istio` says one. NotFound: nothing is there to go by.
// AlreadyExists: the revision runs.
absl::Status InstallRevision(fakekube::ApiServer& api, const pilot::Profile& profile, std::string_view revision,
                             const std::string& mesh_config);

// Removes everything of revisions other than `revision`: their proxies go on with what they have. The first refusal of
// the API server; so below.
absl::Status RemoveOtherRevisions(fakekube::ApiServer& api, std::string_view revision);

// The injectors that are there put in proxies of that release; istiods stay as they are.
absl::Status SetInjectedRelease(fakekube::ApiServer& api, std::string_view release);

}  // namespace wavetank::sim
