#include "core/security/callers/node_authorizer.h"

#include <utility>

#include "core/kube/types.h"
#include "fmt/format.h"

namespace wavetank::security {
namespace {
absl::Status Denied(std::string text) { return absl::PermissionDeniedError(text); }
}  // namespace

NodeAuthorizer::NodeAuthorizer(Host& host, kube::Client& client, std::set<kube::NamespacedName> trusted)
    : pods_(client, host, kube::kinds::kPod), trusted_(std::move(trusted)) {}

absl::Status NodeAuthorizer::MayImpersonate(const Caller& caller, const std::string& identity) const {
  if (!trusted_.contains({caller.ns, caller.service_account})) {
    return Denied(fmt::format("caller ({}/{}) is not allowed to impersonate", caller.ns, caller.service_account));
  }
  const absl::StatusOr<SpiffeIdentity> wanted = ParseSpiffeIdentity(identity);
  if (!wanted.ok()) return Denied(fmt::format("failed to validate impersonated identity {}", identity));
  const kube::ObjectRef pod = pods_.Get(caller.ns, caller.pod_name);
  if (pod == nullptr) return Denied(fmt::format("pod {}/{} not found", caller.ns, caller.pod_name));
  if (pod->meta.uid != caller.pod_uid) {
    return Denied(fmt::format("pod found, but UID does not match: {} vs {}", pod->meta.uid, caller.pod_uid));
  }
  const kube::Pod& own = kube::ParsePod(*pod);
  if (own.service_account != caller.service_account) {
    return Denied(fmt::format("pod found, but ServiceAccount does not match: {} vs {}", own.service_account,
                              caller.service_account));
  }
  for (const kube::ObjectRef& other : pods_.List(wanted->ns)) {
    const kube::Pod& candidate = kube::ParsePod(*other);
    if (candidate.service_account == wanted->service_account && !candidate.node_name.empty() &&
        candidate.node_name == own.node_name) {
      return absl::OkStatus();
    }
  }
  return Denied(fmt::format("no instances of \"{}/{}\" found on node \"{}\"", wanted->ns, wanted->service_account,
                            own.node_name));
}

}  // namespace wavetank::security
