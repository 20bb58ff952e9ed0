// The subresource scale.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/http/api/schema.h"
#include "fakes/kube/http/message/event_views.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/patching.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/merge/server_side_apply.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/validation/defaults.h"
#include "fakes/kube/validation/validation.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

namespace {

// Where an object has what a Scale says; of custom resources their definition says it (apiextensions-apiserver:
// pkg/registry/customresource/etcd.go, scaleFromCustomResource()).
struct ScalePaths {
  json::json_pointer replicas{"/spec/replicas"}, ready{"/status/replicas"};
  std::optional<json::json_pointer> selector;  // of a text; without, the labels of spec.selector
  bool custom = false;
};

// ".spec.size"
json::json_pointer PointerOf(const std::string& path) {
  json::json_pointer out;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '.', absl::SkipEmpty()))) out /= part;
  return out;
}

ScalePaths PathsOf(const ApiServer& server, const Resource& resource) {
  ScalePaths out;
  const ObjectRef definition = server.Get("CustomResourceDefinition.apiextensions.k8s.io", {"", resource.Qualified()});
  if (definition == nullptr) return out;
  for (const json& version : Items(At(definition->body, {"spec", "versions"}))) {
    const json& scale = At(version, {"subresources", "scale"});
    if (Text(version, "name") != resource.version || !scale.is_object()) continue;
    out.replicas = PointerOf(Text(scale, "specReplicasPath"));
    out.ready = PointerOf(Text(scale, "statusReplicasPath"));
    if (const std::string path = Text(scale, "labelSelectorPath"); !path.empty()) out.selector = PointerOf(path);
    out.custom = true;
  }
  return out;
}

int64_t NumberAt(const json& object, const json::json_pointer& path, int64_t otherwise) {
  const bool there = object.contains(path) && object.at(path).is_number_integer();
  return there ? object.at(path).get<int64_t>() : otherwise;
}

std::string SelectorOf(const json& object, const ScalePaths& paths) {
  if (paths.selector) {
    const bool there = object.contains(*paths.selector) && object.at(*paths.selector).is_string();
    return there ? object.at(*paths.selector).get<std::string>() : "";
  }
  if (paths.custom) return "";
  const json& selector = At(object, {"spec", "selector"});
  // A ReplicationController's are its labels alone.
  const json& labels = Text(object, "kind") == "ReplicationController" ? selector : At(selector, "matchLabels");
  std::string out;
  if (!labels.is_object()) return out;
  for (const auto& [key, value] : labels.items()) {
    if (value.is_string()) out += fmt::format("{}{}={}", out.empty() ? "" : ",", key, value.get<std::string>());
  }
  return out;
}

}  // namespace

Response RestApi::Scale(const Call& call) {
  const Resource& resource = *call.target.resource;
  const ObjectRef object = server_.Get(resource.StoreKind(), {call.target.ns, call.target.name});
  if (object == nullptr) return NotFound(resource, call.target.name);
  const ScalePaths paths = PathsOf(server_, resource);
  if (paths.custom && !object->body.contains(paths.replicas)) {
    return Failure(500, "InternalError",
                   fmt::format("Internal error occurred: the spec replicas field \"{}\" does not exist",
                               absl::StrReplaceAll(paths.replicas.to_string(), {{"/", "."}})));
  }
  const auto scale_of = [&](const kube::Object& scaled) {
    json metadata = {{"name", scaled.meta.name},
                     {"namespace", scaled.meta.ns},
                     {"uid", scaled.meta.uid},
                     {"resourceVersion", std::to_string(scaled.meta.resource_version)}};
    if (const auto at = scaled.body.find("metadata"); at != scaled.body.end() && at->contains("creationTimestamp"))
      metadata["creationTimestamp"] = (*at)["creationTimestamp"];
    json out = {{"kind", "Scale"},
                {"apiVersion", "autoscaling/v1"},
                {"metadata", metadata},
                {"spec", {{"replicas", NumberAt(scaled.body, paths.replicas, 1)}}},
                {"status", {{"replicas", NumberAt(scaled.body, paths.ready, 0)}}}};
    if (std::string selector = SelectorOf(scaled.body, paths); !selector.empty())
      out["status"]["selector"] = std::move(selector);
    return out;
  };
  if (call.request->method == "GET" || call.request->method == "HEAD") return JsonResponse(200, scale_of(*object));
  absl::StatusOr<json> parsed = ParseBody(*call.request);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  json wanted = *std::move(parsed);
  if (call.request->method == "PATCH") {
    Resource scale;
    scale.kind = "Scale";
    scale.plural = resource.plural;
    // A Scale has no lists, so that a strategic merge is a merge.
    const bool strategic = call.request->content_type.starts_with("application/strategic-merge-patch+json");
    absl::StatusOr<json> patched = Patched(
        scale, strategic ? "application/merge-patch+json" : call.request->content_type, scale_of(*object), wanted);
    if (!patched.ok()) return FromStore(patched.status(), resource, call.target.name);
    wanted = *std::move(patched);
  }
  const json spec = wanted.is_object() ? wanted.value("spec", json()) : json();
  const json replicas = spec.is_object() ? spec.value("replicas", json(0)) : json(0);
  if (!replicas.is_number_integer() || replicas.get<int64_t>() < 0) {
    Resource scale;
    scale.kind = "Scale";
    scale.group = "autoscaling";
    scale.plural = "scales";
    return Invalid(
        scale, call.target.name,
        fmt::format("spec.replicas: Invalid value: {}: must be greater than or equal to 0", JsonText(replicas)));
  }
  const std::string version = wanted.contains("metadata") ? Text(wanted["metadata"], "resourceVersion") : "";
  if (!version.empty() && version != std::to_string(object->meta.resource_version)) {
    return Conflict(resource, call.target.name,
                    "the object has been modified; please apply your changes to the latest version and try again");
  }
  json body = object->body;
  body[paths.replicas] = replicas;
  if (call.query.Has("dryRun")) {
    wanted["spec"]["replicas"] = replicas;
    return JsonResponse(200, wanted);
  }
  const absl::StatusOr<ObjectRef> stored = server_.Update(std::move(body), HowToWrite(call));
  if (!stored.ok()) return FromStore(stored.status(), resource, call.target.name);
  return JsonResponse(200, scale_of(**stored));
}

}  // namespace wavetank::fakekube::http
