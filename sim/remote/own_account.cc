#include "sim/remote/own_account.h"

#include <algorithm>
#include <utility>

#include "fakes/kube/store/rbac.h"
#include "sim/remote/remote_reader.h"

namespace wavetank::sim {
namespace {

// What the kubelet mounts into istiod's pod is read by the kubelet's rights (istiod's Deployment in its chart).
bool IsMounted(const kube::AccessRequest& request) {
  if (request.verb != "get" && request.verb != "list" && request.verb != "watch") return false;
  if (request.resource == "secrets") return request.name == "cacerts" || request.name == "external-ca-cert";
  return request.resource == "configmaps" && request.name == "kube-root-ca.crt";
}

// istiod: pkg/kube/client.go, RunAndWait(): its shared informers are waited for together, before anything else begins.
// So one that may not list what this simulation never asks for, or does not wait for, never knows a pod.
const kube::AccessRequest kWaitedFor[] = {
    {"", "list", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", ""},
    {"", "watch", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", ""},
    {"", "watch", "apiextensions.k8s.io", "customresourcedefinitions", "", ""},
};

}  // namespace

absl::Status AskRbac(const fakekube::ApiServer& api, kube::AccessRequest request) {
  const fakekube::RbacAuthorizer rbac(api);
  if (rbac.Allowed(request)) return absl::OkStatus();
  if (request.verb == "get") {
    kube::AccessRequest as_list = request;
    as_list.verb = "list";
    if (rbac.Allowed(as_list)) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(fakekube::ForbiddenWords(request));
}

OwnAccount::OwnAccount(const fakekube::ApiServer& api, std::string ns, std::string account, RoleIsGiven role_is_given,
                       bool roles_known)
    : api_(api),
      ns_(std::move(ns)),
      account_(account.empty() ? "default" : std::move(account)),
      role_is_given_(std::move(role_is_given)),
      roles_known_(roles_known) {}

bool OwnAccount::IsJudged() const {
  if (!roles_known_) return false;
  if (HasRole(api_, ns_, account_)) return true;
  // The names of its charts (manifests/charts/istio-control/istio-discovery/templates, clusterrole.yaml and role.yaml),
  // not of the base chart's, which are of releases before 1.10.
  for (const char* kind : {"ClusterRole", "ClusterRoleBinding"}) {
    for (const kube::ObjectRef& object : api_.List(kind)) {
      if (object->meta.name.starts_with("istiod-clusterrole")) return true;
    }
  }
  return api_.Get("RoleBinding", {ns_, account_}) != nullptr || api_.Get("Role", {ns_, account_}) != nullptr;
}

absl::Status OwnAccount::Permit(kube::AccessRequest request) const {
  const bool pods = request.verb == "list" && request.resource == "pods";
  if (pods && definitions_in_namespace_) {
    return absl::NotFoundError(
        "failed to list *v1.PartialObjectMetadata: the server could not find the requested resource: with "
        "ISTIO_WATCH_NAMESPACE definitions are looked for in that namespace, so that istiod never gets ready");
  }
  if (IsMounted(request) || !IsJudged()) return absl::OkStatus();
  if (!HasRole(api_, ns_, account_) && role_is_given_()) return absl::OkStatus();
  request.user = kube::ServiceAccountUser(ns_, account_);
  const std::string user = request.user;
  if (absl::Status may = AskRbac(api_, std::move(request)); !may.ok() || !pods) return may;
  for (kube::AccessRequest other : kWaitedFor) {
    other.user = user;
    if (absl::Status may = AskRbac(api_, std::move(other)); !may.ok()) return may;
  }
  return absl::OkStatus();
}

}  // namespace wavetank::sim
