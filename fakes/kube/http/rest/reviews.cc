#include "fakes/kube/http/rest/reviews.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/store/rbac.h"
#include "fmt/format.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

json Section(const json& in, const char* key) {
  const auto it = in.is_object() ? in.find(key) : in.end();
  return in.is_object() && it != in.end() && it->is_object() ? *it : json::object();
}

}  // namespace

Caller CallerOf(const ApiServer& server, const kube::TokenClaims& claims) {
  Caller caller;
  caller.user = kube::ServiceAccountUser(claims.ns, claims.service_account);
  caller.groups = {"system:serviceaccounts", "system:serviceaccounts:" + claims.ns, "system:authenticated"};
  if (const ObjectRef account = server.Get("ServiceAccount.", {claims.ns, claims.service_account}); account != nullptr)
    caller.uid = account->meta.uid;
  if (!claims.pod_name.empty()) {
    caller.extra = {{"authentication.kubernetes.io/pod-name", {claims.pod_name}},
                    {"authentication.kubernetes.io/pod-uid", {claims.pod_uid}}};
  }
  return caller;
}

json UserInfo(const Caller& caller) {
  json user = {{"username", caller.user}, {"groups", caller.groups}};
  if (!caller.uid.empty()) user["uid"] = caller.uid;
  if (!caller.extra.empty()) user["extra"] = caller.extra;
  return user;
}

absl::Status CheckBinding(const ApiServer& server, const kube::TokenClaims& claims) {
  if (server.Get("ServiceAccount.", {claims.ns, claims.service_account}) == nullptr)
    return absl::NotFoundError("its service account has been deleted");
  if (claims.pod_name.empty()) return absl::OkStatus();
  const ObjectRef pod = server.Get("Pod.", {claims.ns, claims.pod_name});
  if (pod == nullptr || pod->meta.uid != claims.pod_uid)
    return absl::NotFoundError("the pod that the token is bound to is gone");
  return absl::OkStatus();
}

bool MayDo(const ApiServer& server, const Caller& caller, const json& spec) {
  if (caller.admin) return true;
  const json attributes = Section(spec, "resourceAttributes");
  if (attributes.empty()) return false;  // paths that are no resources are nobody's but the administrator's
  kube::AccessRequest request;
  request.user = caller.user;
  request.verb = Text(attributes, "verb");
  request.group = Text(attributes, "group");
  request.resource = Text(attributes, "resource");
  if (const std::string sub = Text(attributes, "subresource"); !sub.empty()) request.resource += "/" + sub;
  request.ns = Text(attributes, "namespace");
  request.name = Text(attributes, "name");
  return RbacAuthorizer(server, caller.groups).Allowed(request);
}

json RulesOf(const ApiServer& server, const Caller& caller, const std::string& ns) {
  json resources = json::array(), paths = json::array();
  if (caller.admin) {
    resources.push_back(
        {{"verbs", json::array({"*"})}, {"apiGroups", json::array({"*"})}, {"resources", json::array({"*"})}});
    paths.push_back({{"verbs", json::array({"*"})}, {"nonResourceURLs", json::array({"*"})}});
  } else {
    // Asked one by one, so that there is one place which knows how roles are bound.
    const RbacAuthorizer authorizer(server, caller.groups);
    const auto add = [&](const ObjectRef& role, const std::string& role_namespace) {
      const auto rules = role->body.find("rules");
      if (rules == role->body.end() || !rules->is_array()) return;
      for (const json& rule : *rules) {
        const json verbs = rule.is_object() ? rule.value("verbs", json()) : json();
        const json groups = rule.is_object() ? rule.value("apiGroups", json()) : json();
        const json names = rule.is_object() ? rule.value("resources", json()) : json();
        if (!verbs.is_array() || !groups.is_array() || !names.is_array() || verbs.empty() || groups.empty() ||
            names.empty() || !verbs[0].is_string() || !groups[0].is_string() || !names[0].is_string())
          continue;
        const json objects = rule.value("resourceNames", json());
        const bool named = objects.is_array() && !objects.empty() && objects[0].is_string();
        const kube::AccessRequest sample{caller.user, verbs[0],       groups[0],
                                         names[0],    role_namespace, named ? objects[0].get<std::string>() : ""};
        if (authorizer.Allowed(sample) && std::find(resources.begin(), resources.end(), rule) == resources.end())
          resources.push_back(rule);
      }
    };
    for (const ObjectRef& role : server.List("ClusterRole.rbac.authorization.k8s.io")) add(role, ns);
    for (const ObjectRef& role : server.List("Role.rbac.authorization.k8s.io", ns)) add(role, ns);
  }
  return {{"resourceRules", resources}, {"nonResourceRules", paths}, {"incomplete", false}};
}

json ReviewToken(ApiServer& server, const kube::TokenAuthority* tokens, const json& spec) {
  std::vector<std::string> audiences;
  for (const json& audience : spec.is_object() ? spec.value("audiences", json::array()) : json::array()) {
    if (audience.is_string()) audiences.push_back(audience);
  }
  if (tokens == nullptr) return {{"authenticated", false}, {"error", "this cluster issues no tokens"}};
  absl::StatusOr<kube::TokenClaims> claims = tokens->Verify(Text(spec, "token"), audiences, server.host().Now());
  absl::Status status = claims.status();
  if (status.ok()) status = CheckBinding(server, *claims);
  if (!status.ok())
    return {{"authenticated", false}, {"user", json::object()}, {"error", std::string(status.message())}};
  json out = {{"authenticated", true}, {"user", UserInfo(CallerOf(server, *claims))}};
  if (!audiences.empty()) {
    json common = json::array();
    for (const std::string& audience : audiences) {
      if (std::find(claims->audiences.begin(), claims->audiences.end(), audience) != claims->audiences.end())
        common.push_back(audience);
    }
    out["audiences"] = common;
  }
  return out;
}

}  // namespace wavetank::fakekube::http
