#include "sim/signing/own_rights.h"

#include <utility>

#include "core/base/status.h"
#include "fmt/format.h"
#include "sim/remote/own_account.h"
#include "sim/remote/remote_reader.h"

namespace wavetank::sim {

OwnRights::OwnRights(const fakekube::ApiServer& api, std::string ns, const std::string& account)
    : api_(api), ns_(std::move(ns)), account_(account.empty() ? "default" : account) {}

bool OwnRights::Known() const {
  if (HasRole(api_, ns_, account_)) return true;
  // istio-csr: deploy/charts/istio-csr/templates, clusterrole.yaml, role.yaml and their bindings.
  for (const char* kind : {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}) {
    for (const kube::ObjectRef& object : api_.List(kind)) {
      if (object->meta.name.starts_with("cert-manager-istio-csr")) return true;
    }
  }
  return false;
}

absl::Status OwnRights::Ask(kube::AccessRequest request) {
  const std::string key = fmt::format("{}.{} {} {}", request.resource, request.group, request.verb, request.ns);
  request.user = kube::ServiceAccountUser(ns_, account_);
  absl::Status may = Known() ? AskRbac(api_, std::move(request)) : absl::OkStatus();
  if (may.ok()) {
    refused_.erase(key);
  } else {
    refused_[key] = std::string(Message(may));
  }
  return may;
}

}  // namespace wavetank::sim
