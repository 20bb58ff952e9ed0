// The subresource scale.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
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

Response RestApi::Scale(const Call& call) {
  const Resource& resource = *call.target.resource;
  const ObjectRef object = server_.Get(resource.StoreKind(), {call.target.ns, call.target.name});
  if (object == nullptr) return NotFound(resource, call.target.name);
  const auto scale_of = [&](const kube::Object& scaled) {
    const json spec = scaled.body.value("spec", json::object()), status = scaled.body.value("status", json::object());
    const auto number = [](const json& in, const char* key, int64_t otherwise) {
      const auto it = in.is_object() ? in.find(key) : in.end();
      return in.is_object() && it != in.end() && it->is_number_integer() ? it->get<int64_t>() : otherwise;
    };
    std::string selector;
    const json labels = spec.is_object() ? spec.value("selector", json::object()) : json::object();
    const auto match = labels.is_object() ? labels.find("matchLabels") : labels.end();
    if (labels.is_object() && match != labels.end() && match->is_object()) {
      for (const auto& [key, value] : match->items()) {
        if (value.is_string())
          selector += fmt::format("{}{}={}", selector.empty() ? "" : ",", key, Text(*match, key.c_str()));
      }
    }
    json metadata = {{"name", scaled.meta.name},
                     {"namespace", scaled.meta.ns},
                     {"uid", scaled.meta.uid},
                     {"resourceVersion", std::to_string(scaled.meta.resource_version)}};
    if (const auto at = scaled.body.find("metadata"); at != scaled.body.end() && at->contains("creationTimestamp"))
      metadata["creationTimestamp"] = (*at)["creationTimestamp"];
    return json{{"kind", "Scale"},
                {"apiVersion", "autoscaling/v1"},
                {"metadata", metadata},
                {"spec", {{"replicas", number(spec, "replicas", 1)}}},
                {"status", {{"replicas", number(status, "replicas", 0)}, {"selector", selector}}}};
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
  body["spec"]["replicas"] = replicas;
  if (call.query.Has("dryRun")) {
    wanted["spec"]["replicas"] = replicas;
    return JsonResponse(200, wanted);
  }
  const absl::StatusOr<ObjectRef> stored = server_.Update(std::move(body), HowToWrite(call));
  if (!stored.ok()) return FromStore(stored.status(), resource, call.target.name);
  return JsonResponse(200, scale_of(**stored));
}

}  // namespace wavetank::fakekube::http
