// apiserver: pkg/endpoints/filters/impersonation.go.
#include "fakes/kube/http/rest/impersonation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_text.h"
#include "fakes/kube/http/rest/reviews.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

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
  // Whoever names one of both groups knows what he wants.
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
