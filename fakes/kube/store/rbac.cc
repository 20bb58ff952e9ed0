#include "fakes/kube/store/rbac.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "fmt/format.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

bool Holds(const json& list, const std::string& wanted) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [&](const json& item) {
           return item.is_string() && (item == "*" || item == wanted);
         });
}

// kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go, ResourceMatches(): `*/scale` is that of every resource.
bool HoldsResource(const json& list, const std::string& wanted) {
  if (Holds(list, wanted)) return true;
  const size_t slash = wanted.find('/');
  return slash != wanted.npos && Holds(list, "*" + wanted.substr(slash));
}

// A rule for certain objects allows no list of all, and the creation of none.
bool HoldsName(const json& names, const std::string& wanted) {
  return !names.is_array() || names.empty() || std::find(names.begin(), names.end(), json(wanted)) != names.end();
}

// The groups of a ServiceAccount's user: its namespace's accounts, all accounts, everybody who is authenticated.
bool InGroup(const std::string& user, const std::string& group) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (group == "system:authenticated") return user != "system:anonymous";
  if (!user.starts_with(kPrefix)) return false;
  if (group == "system:serviceaccounts") return true;
  const std::string ns = user.substr(kPrefix.size(), user.find(':', kPrefix.size()) - kPrefix.size());
  return group == "system:serviceaccounts:" + ns;
}

bool Binds(const json& binding, const std::string& binding_namespace, const std::string& user,
           const std::vector<std::string>& groups) {
  const json& subjects = At(binding, "subjects");
  if (!subjects.is_array()) return false;
  return std::any_of(subjects.begin(), subjects.end(), [&](const json& subject) {
    const std::string kind = Text(subject, "kind"), name = Text(subject, "name");
    if (kind == "User") return name == user;
    if (kind == "Group") return InGroup(user, name) || std::find(groups.begin(), groups.end(), name) != groups.end();
    if (kind != "ServiceAccount") return false;
    const std::string ns = Text(subject, "namespace");
    return kube::ServiceAccountUser(ns.empty() ? binding_namespace : ns, name) == user;
  });
}

}  // namespace

bool RbacAuthorizer::Allowed(const kube::AccessRequest& request) const {
  const auto permits = [&](const ObjectRef& binding) {
    if (!Binds(binding->body, binding->meta.ns, request.user, groups_)) return false;
    const json& ref = At(binding->body, "roleRef");
    const bool cluster_role = Text(ref, "kind") == "ClusterRole";
    // Every API server has it, whether it was written or not (kubernetes:
    // plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
    if (cluster_role && Text(ref, "name") == "cluster-admin") return true;
    const ObjectRef role =
        server_.Get(cluster_role ? "ClusterRole" : "Role", {cluster_role ? "" : binding->meta.ns, Text(ref, "name")});
    if (role == nullptr) return false;
    const json& rules = At(role->body, "rules");
    if (!rules.is_array()) return false;
    return std::any_of(rules.begin(), rules.end(), [&](const json& rule) {
      return Holds(At(rule, "verbs"), request.verb) && Holds(At(rule, "apiGroups"), request.group) &&
             HoldsResource(At(rule, "resources"), request.resource) &&
             HoldsName(At(rule, "resourceNames"), request.name);
    });
  };
  const std::vector<ObjectRef> cluster_wide = server_.List("ClusterRoleBinding");
  if (std::any_of(cluster_wide.begin(), cluster_wide.end(), permits)) return true;
  if (request.ns.empty()) return false;
  const std::vector<ObjectRef> here = server_.List("RoleBinding", request.ns);
  return std::any_of(here.begin(), here.end(), permits);
}

// apiserver: pkg/endpoints/handlers/responsewriters/errors.go, ForbiddenStatusError.
std::string ForbiddenWords(const kube::AccessRequest& request) {
  // A resource's own name ends where that of a part of it begins: "pods/exec".
  const std::string whose = request.resource.substr(0, request.resource.find('/'));
  return fmt::format("{}{}{}{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}", whose,
                     request.group.empty() ? "" : ".", request.group,
                     request.name.empty() ? "" : fmt::format(" \"{}\"", request.name), request.user, request.verb,
                     request.resource, request.group,
                     request.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", request.ns));
}

}  // namespace wavetank::fakekube
