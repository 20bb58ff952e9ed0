#include "fakes/kube/http/rest/reviews.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
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
        const kube::AccessRequest sample{caller.user,      TextOf(verbs[0]), TextOf(groups[0]),
                                         TextOf(names[0]), role_namespace,   named ? TextOf(objects[0]) : ""};
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
    if (audience.is_string()) audiences.push_back(audience.get<std::string>());
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

// --- impersonation (apiserver: pkg/endpoints/filters/impersonation.go)

namespace {

constexpr std::string_view kAnonymous = "system:anonymous";
constexpr std::string_view kAuthenticated = "system:authenticated";
constexpr std::string_view kUnauthenticated = "system:unauthenticated";
constexpr std::string_view kAuthenticationGroup = "authentication.k8s.io";

// Something that is impersonated, as RBAC names it.
struct Wanted {
  std::string_view kind;  // of Kubernetes' ObjectReference
  std::string resource;
  std::string_view group;
  std::string ns, name;
  std::string subresource;
};

std::optional<std::pair<std::string, std::string>> ServiceAccountOf(std::string_view user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return std::nullopt;
  user.remove_prefix(kPrefix.size());
  const size_t colon = user.find(':');
  if (colon == user.npos || colon == 0 || colon + 1 == user.size()) return std::nullopt;
  if (user.find(':', colon + 1) != user.npos) return std::nullopt;
  return std::pair{std::string(user.substr(0, colon)), std::string(user.substr(colon + 1))};
}

std::vector<Wanted> WantedBy(const Impersonation& asked) {
  std::vector<Wanted> out;
  if (const auto account = ServiceAccountOf(asked.user)) {
    out.push_back({"ServiceAccount", "serviceaccounts", "", account->first, account->second, ""});
  } else if (!asked.user.empty()) {
    out.push_back({"User", "users", "", "", asked.user, ""});
  }
  for (const std::string& group : asked.groups) out.push_back({"Group", "groups", "", "", group, ""});
  for (const auto& [key, values] : asked.extra) {
    for (const std::string& value : values)
      out.push_back({"UserExtra", "userextras", kAuthenticationGroup, "", value, key});
  }
  if (!asked.uid.empty()) out.push_back({"UID", "uids", kAuthenticationGroup, "", asked.uid, ""});
  return out;
}

// As Go prints a list of ObjectReferences: kind, namespace, name, uid, apiVersion, resourceVersion, fieldPath.
Refusal NobodyNamed(const std::vector<Wanted>& wanted, const Request& request) {
  std::string list;
  for (const Wanted& one : wanted) {
    list += fmt::format("{}{{{} {} {}  {}  {}}}", list.empty() ? "" : " ", one.kind, one.ns, one.name,
                        one.group.empty() ? "" : fmt::format("{}/v1", one.group), one.subresource);
  }
  const std::string uri = request.query.empty() ? request.path : request.path + "?" + request.query;
  return {500, fmt::format("Internal Server Error: {}: requested [{}] without impersonating a user",
                           JsonText(json(uri)), list)};
}

Refusal Forbidden(const Wanted& one, const Caller& requestor) {
  json details = {{"kind", one.resource}, {"name", one.name}};
  if (!one.group.empty()) details["group"] = one.group;
  return {
      403,
      fmt::format("{}{} \"{}\" is forbidden: User \"{}\" cannot impersonate resource \"{}{}\" in API group \"{}\" {}",
                  one.resource, one.group.empty() ? "" : fmt::format(".{}", one.group), one.name, requestor.user,
                  one.resource, one.subresource.empty() ? "" : "/" + one.subresource, one.group,
                  one.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", one.ns)),
      std::move(details)};
}

bool Has(const std::vector<std::string>& groups, std::string_view group) {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

}  // namespace

std::optional<std::variant<Caller, Refusal>> Impersonate(const ApiServer& server, const Caller& requestor,
                                                         const Request& request) {
  const Impersonation& asked = request.impersonate;
  const std::vector<Wanted> wanted = WantedBy(asked);
  if (wanted.empty()) return std::nullopt;
  if (asked.user.empty()) return NobodyNamed(wanted, request);
  for (const Wanted& one : wanted) {
    const json attributes = {{"verb", "impersonate"},          {"group", one.group},  {"resource", one.resource},
                             {"subresource", one.subresource}, {"namespace", one.ns}, {"name", one.name}};
    const bool may = !requestor.checked || MayDo(server, requestor, {{"resourceAttributes", attributes}});
    if (!may) return Forbidden(one, requestor);
  }
  Caller caller;
  caller.user = asked.user;
  caller.groups = asked.groups;
  if (const auto account = ServiceAccountOf(asked.user); account && asked.groups.empty())
    caller.groups = {"system:serviceaccounts", "system:serviceaccounts:" + account->first};
  // A client that names one of both groups knows what it wants.
  const bool anonymous = caller.user == kAnonymous;
  if (!Has(caller.groups, kUnauthenticated) && (anonymous || !Has(caller.groups, kAuthenticated)))
    caller.groups.emplace_back(anonymous ? kUnauthenticated : kAuthenticated);
  caller.uid = asked.uid;
  caller.extra = asked.extra;
  caller.admin = Has(caller.groups, kMasters);
  caller.checked = true;
  return caller;
}

}  // namespace wavetank::fakekube::http
