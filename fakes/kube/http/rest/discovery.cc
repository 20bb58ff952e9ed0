#include "fakes/kube/http/rest/discovery.h"

#include <string>
#include <utility>

#include "fakes/kube/http/message/status.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

json GroupDocument(const std::string& group, const std::vector<std::string>& versions) {
  json list = json::array();
  for (const std::string& version : versions)
    list.push_back({{"groupVersion", group + "/" + version}, {"version", version}});
  return {{"name", group}, {"preferredVersion", list.front()}, {"versions", list}};
}

json SubresourceDocument(const Resource& resource, const std::string& name) {
  json out = {{"name", resource.plural + "/" + name}, {"singularName", ""}, {"namespaced", resource.namespaced}};
  json verbs = {"get", "patch", "update"};
  std::string kind = resource.kind, group, version;
  if (name == "scale") {
    kind = "Scale", group = "autoscaling", version = "v1";
  } else if (name == "token") {
    kind = "TokenRequest", group = "authentication.k8s.io", version = "v1", verbs = json::array({"create"});
  } else if (name == "eviction") {
    kind = "Eviction", group = "policy", version = "v1", verbs = json::array({"create"});
  } else if (name == "binding") {
    kind = "Binding", verbs = json::array({"create"});
  } else if (name == "log") {
    verbs = json::array({"get"});
  } else if (name == "attach" || name == "exec" || name == "portforward") {
    verbs = {"create", "get"};
    kind = name == "attach" ? "PodAttachOptions" : name == "exec" ? "PodExecOptions" : "PodPortForwardOptions";
  } else if (name == "proxy") {
    verbs = {"create", "delete", "get", "patch", "update"};
    kind = resource.kind + "ProxyOptions";
  } else if (name == "finalize") {
    verbs = json::array({"update"});
  }
  out["kind"] = kind;
  out["verbs"] = verbs;
  if (!group.empty()) {
    out["group"] = group;
    out["version"] = version;
  }
  return out;
}

json ResourceListDocument(const std::string& group_version, const std::vector<const Resource*>& resources) {
  json list = json::array();
  for (const Resource* resource : resources) {
    json out = {{"name", resource->plural},
                {"singularName", resource->singular},
                {"namespaced", resource->namespaced},
                {"kind", resource->kind}};
    if (resource->review_only) {
      out["verbs"] = json::array({"create"});
    } else if (resource->event_view) {
      out["verbs"] = {"create", "delete", "deletecollection", "get", "list", "watch"};
    } else {
      out["verbs"] = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
    }
    if (!resource->short_names.empty()) out["shortNames"] = resource->short_names;
    if (!resource->categories.empty()) out["categories"] = resource->categories;
    list.push_back(std::move(out));
    for (const std::string& name : resource->subresources) list.push_back(SubresourceDocument(*resource, name));
  }
  return {{"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", group_version}, {"resources", list}};
}

Response PlainText(std::string text) {
  Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(text);
  return response;
}

}  // namespace

std::optional<Response> Discover(const ResourceTable& table, std::string_view path) {
  if (path == "/version") {
    return JsonResponse(200, {{"major", kMajor},
                              {"minor", kMinor},
                              {"gitVersion", kGitVersion},
                              {"gitCommit", "wavetank"},
                              {"gitTreeState", "clean"},
                              {"buildDate", "2023-09-01T00:00:00Z"},
                              {"goVersion", "none"},
                              {"compiler", "g++"},
                              {"platform", "linux/amd64"}});
  }
  if (path == "/healthz" || path == "/livez" || path == "/readyz") return PlainText("ok");
  if (path == "/api") {
    return JsonResponse(
        200,
        {{"kind", "APIVersions"}, {"versions", json::array({"v1"})}, {"serverAddressByClientCIDRs", json::array()}});
  }
  if (path == "/apis") {
    json list = json::array();
    for (const auto& [group, versions] : table.Groups()) {
      if (!group.empty()) list.push_back(GroupDocument(group, versions));
    }
    return JsonResponse(200, {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", list}});
  }
  if (path == "/api/v1") return JsonResponse(200, ResourceListDocument("v1", table.Of("", "v1")));
  constexpr std::string_view kApis = "/apis/";
  if (!path.starts_with(kApis)) return std::nullopt;
  const std::string_view rest = path.substr(kApis.size());
  const size_t slash = rest.find('/');
  const std::string_view group = rest.substr(0, slash);
  if (group.empty()) return std::nullopt;
  if (slash == std::string_view::npos) {
    for (const auto& [name, versions] : table.Groups()) {
      if (name != group) continue;
      json document = GroupDocument(name, versions);
      document["kind"] = "APIGroup";
      document["apiVersion"] = "v1";
      return JsonResponse(200, document);
    }
    return std::nullopt;
  }
  const std::string_view version = rest.substr(slash + 1);
  if (version.find('/') != std::string_view::npos) return std::nullopt;
  const std::vector<const Resource*> resources = table.Of(group, version);
  if (resources.empty()) return std::nullopt;
  return JsonResponse(200, ResourceListDocument(std::string(rest), resources));
}

}  // namespace wavetank::fakekube::http
