#include "fakes/kube/http/rest/discovery.h"

#include <string>
#include <utility>

#include "core/base/json_text.h"
#include "core/x509/x509.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/objects/base64.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

json GroupDocument(const std::string& group, const std::vector<std::string>& versions) {
  json list = json::array();
  for (const std::string& version : versions)
    list.push_back({{"groupVersion", group + "/" + version}, {"version", version}});
  return {{"name", group}, {"preferredVersion", list.front()}, {"versions", list}};
}

// Fields stand in the order in which Go writes them: scripts of Kubernetes' own look for the text.
using Ordered = nlohmann::ordered_json;

struct Served {
  std::string kind, group, version;
  std::vector<std::string> verbs = {"get", "patch", "update"};
};

Served SubresourceOf(const Resource& resource, const std::string& name) {
  Served out{.kind = resource.kind};
  if (name == "scale") {
    out.kind = "Scale", out.group = "autoscaling", out.version = "v1";
  } else if (name == "token") {
    out = {"TokenRequest", "authentication.k8s.io", "v1", {"create"}};
  } else if (name == "eviction") {
    out = {"Eviction", "policy", "v1", {"create"}};
  } else if (name == "binding") {
    out = {"Binding", "", "", {"create"}};
  } else if (name == "log") {
    out.verbs = {"get"};
  } else if (name == "attach" || name == "exec" || name == "portforward") {
    out.kind = name == "attach" ? "PodAttachOptions" : name == "exec" ? "PodExecOptions" : "PodPortForwardOptions";
    out.verbs = {"create", "get"};
  } else if (name == "proxy") {
    out.kind = resource.kind + "ProxyOptions";
    out.verbs = {"create", "delete", "get", "patch", "update"};
  } else if (name == "finalize") {
    out.verbs = {"update"};
  }
  return out;
}

// Opaque; tells whether two resources are stored as one (apiserver: pkg/endpoints/discovery/storageversionhash.go).
std::string StorageVersionHash(const Resource& resource) {
  const x509::Sha256Digest digest =
      x509::Sha256(resource.group + "/" + resource.version + "/" + (resource.event_view ? "" : resource.kind));
  constexpr size_t kBytes = 8;
  return Base64Encode({reinterpret_cast<const char*>(digest.data()), kBytes});
}

Ordered Described(const Resource& resource, const std::string& name, const std::string& singular,
                  const Served& served) {
  Ordered out;
  out["name"] = name;
  out["singularName"] = singular;
  out["namespaced"] = resource.namespaced;
  if (!served.group.empty()) out["group"] = served.group;
  if (!served.version.empty()) out["version"] = served.version;
  out["kind"] = served.kind;
  out["verbs"] = served.verbs;
  return out;
}

Response ResourceListDocument(const std::string& group_version, const std::vector<const Resource*>& resources) {
  Ordered list = Ordered::array();
  for (const Resource* resource : resources) {
    Served served{.kind = resource->kind};
    served.verbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
    if (resource->review_only) served.verbs = {"create"};
    if (resource->event_view) served.verbs = {"create", "delete", "deletecollection", "get", "list", "watch"};
    Ordered out = Described(*resource, resource->plural, resource->singular, served);
    if (!resource->short_names.empty()) out["shortNames"] = resource->short_names;
    if (!resource->categories.empty()) out["categories"] = resource->categories;
    if (!resource->review_only) out["storageVersionHash"] = StorageVersionHash(*resource);
    list.push_back(std::move(out));
    for (const std::string& name : resource->subresources)
      list.push_back(Described(*resource, resource->plural + "/" + name, "", SubresourceOf(*resource, name)));
  }
  Ordered document;
  document["kind"] = "APIResourceList";
  document["apiVersion"] = "v1";
  document["groupVersion"] = group_version;
  document["resources"] = std::move(list);
  Response response;
  response.body = JsonText(document) + "\n";
  return response;
}

}  // namespace

std::optional<Response> Discover(const ResourceTable& table, const KubernetesRelease& release, std::string_view path) {
  if (path == "/version") {
    return JsonResponse(200, {{"major", "1"},
                              {"minor", std::to_string(release.minor())},
                              {"gitVersion", release.git_version()},
                              {"gitCommit", "wavetank"},
                              {"gitTreeState", "clean"},
                              {"buildDate", "2023-09-01T00:00:00Z"},
                              {"goVersion", "none"},
                              {"compiler", "g++"},
                              {"platform", "linux/amd64"}});
  }
  if (path == "/healthz" || path == "/livez" || path == "/readyz") return PlainResponse(200, "ok");
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
  if (path == "/api/v1") return ResourceListDocument("v1", table.Of("", "v1"));
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
  return ResourceListDocument(std::string(rest), resources);
}

}  // namespace wavetank::fakekube::http
