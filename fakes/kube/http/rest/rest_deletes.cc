// The part of the REST API that ends objects: deletions, collections, evictions.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/kube/label_selector.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/http/api/schema.h"
#include "fakes/kube/http/message/event_views.h"
#include "fakes/kube/http/message/list_options.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/patching.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/merge/server_side_apply.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/validation/defaults.h"
#include "fakes/kube/validation/validation.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// Preconditions of a DELETE, its options from the body or the query.
struct DeleteRequest {
  std::string propagation, uid, resource_version;
  std::optional<int64_t> grace_seconds;
  bool dry_run = false;
};

absl::StatusOr<DeleteRequest> ReadDeleteOptions(const json& body, const Query& query) {
  DeleteRequest options;
  options.propagation = query.Get("propagationPolicy");
  options.dry_run = query.Has("dryRun");
  json grace;
  if (query.Has("gracePeriodSeconds")) grace = ParseJson(query.Get("gracePeriodSeconds"));
  if (body.is_object()) {
    if (const std::string text = Text(body, "propagationPolicy"); !text.empty()) options.propagation = text;
    if (const auto it = body.find("gracePeriodSeconds"); it != body.end() && !it->is_null()) grace = *it;
    if (const auto it = body.find("preconditions"); it != body.end()) {
      options.uid = Text(*it, "uid");
      options.resource_version = Text(*it, "resourceVersion");
    }
    if (const auto it = body.find("dryRun"); it != body.end() && it->is_array() && !it->empty()) options.dry_run = true;
    if (body.value("orphanDependents", json()) == true) options.propagation = "Orphan";
  } else if (!body.is_null()) {
    return absl::InvalidArgumentError("DeleteOptions must be an object");
  }
  if (!grace.is_null()) {
    if (!grace.is_number_integer() || grace.get<int64_t>() < 0)
      return absl::InvalidArgumentError("gracePeriodSeconds: must be a whole number from 0 on");
    options.grace_seconds = grace.get<int64_t>();
  }
  const std::string& p = options.propagation;
  if (!p.empty() && p != "Background" && p != "Foreground" && p != "Orphan") {
    return absl::InvalidArgumentError(
        fmt::format("invalid deletion propagation policy: \"{}\": must be Background, Foreground or Orphan", p));
  }
  return options;
}

Response Deleted(const Resource& resource, const std::string& name, const std::string& uid) {
  json details = {{"name", name}, {"kind", resource.plural}};
  if (!uid.empty()) details["uid"] = uid;
  if (!resource.group.empty()) details["group"] = resource.group;
  return JsonResponse(200, {{"kind", "Status"},
                            {"apiVersion", "v1"},
                            {"metadata", json::object()},
                            {"status", "Success"},
                            {"details", details}});
}

}  // namespace

Response RestApi::Delete(const Call& call) {
  const Resource& resource = *call.target.resource;
  absl::StatusOr<json> body = ParseBody(*call.request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  const absl::StatusOr<DeleteRequest> options = ReadDeleteOptions(*body, call.query);
  if (!options.ok()) return BadRequest(std::string(options.status().message()));
  const std::string kind = resource.StoreKind();
  const NamespacedName name{call.target.ns, call.target.name};
  ApiServer& store = StoreOf(resource);
  const ObjectRef object = store.Get(kind, name);
  if (object == nullptr) return NotFound(resource, call.target.name);
  if (!options->uid.empty() && options->uid != object->meta.uid) {
    return Conflict(resource, call.target.name,
                    fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", options->uid,
                                object->meta.uid));
  }
  if (!options->resource_version.empty() &&
      options->resource_version != std::to_string(object->meta.resource_version)) {
    return Conflict(resource, call.target.name,
                    fmt::format("Precondition failed: ResourceVersion in precondition: {}, ResourceVersion in object "
                                "meta: {}",
                                options->resource_version, object->meta.resource_version));
  }
  // NamespaceLifecycle, an admission plugin, keeps these.
  static constexpr std::string_view kKept[] = {"default", "kube-system", "kube-public"};
  if (kind == "Namespace." && std::find(std::begin(kKept), std::end(kKept), call.target.name) != std::end(kKept))
    return FromStore(absl::PermissionDeniedError("this namespace may not be deleted"), resource, call.target.name);
  if (options->dry_run) return Deleted(resource, call.target.name, object->meta.uid);
  DeleteOptions how;
  how.grace_seconds = options->grace_seconds;
  if (options->propagation == "Foreground") how.propagation = Propagation::kForeground;
  if (options->propagation == "Orphan") how.propagation = Propagation::kOrphan;
  const absl::Status status = store.Delete(kind, name, how);
  if (!status.ok()) return FromStore(status, resource, call.target.name);
  // What goes later, or only when its finalizers are done, is shown as it is until then.
  if (const ObjectRef left = store.Get(kind, name); left != nullptr && left->meta.uid == object->meta.uid)
    return One(200, *left, call);
  // kubernetes: ReturnDeletedObject of their stores in pkg/registry.
  static constexpr std::string_view kShown[] = {"Service.", "ServiceAccount.", "PersistentVolumeClaim.", "PodTemplate.",
                                                "ResourceQuota."};
  if (std::find(std::begin(kShown), std::end(kShown), kind) != std::end(kShown)) return One(200, *object, call);
  return Deleted(resource, call.target.name, object->meta.uid);
}

Response RestApi::DeleteCollection(const Call& call) {
  const Resource& resource = *call.target.resource;
  if (resource.namespaced && call.target.ns.empty()) return MethodNotAllowed();
  if (const std::string wrong = GoSelectorError(call.query.Get("labelSelector")); !wrong.empty())
    return BadRequest(wrong);
  absl::StatusOr<kube::LabelSelector> labels = kube::LabelSelector::Parse(call.query.Get("labelSelector"));
  if (!labels.ok()) return BadRequest(fmt::format("unable to parse requirement: {}", Message(labels.status())));
  absl::StatusOr<FieldSelector> fields = FieldSelector::Parse(call.query.Get("fieldSelector"));
  if (!fields.ok()) return BadRequest(std::string(fields.status().message()));
  if (std::optional<Response> wrong = CheckListOptions(call.query, false)) return *std::move(wrong);
  ListPage gone;
  for (const ObjectRef& object : StoreOf(resource).List(resource.StoreKind(), call.target.ns)) {
    if (!labels->Matches(object->meta.labels) || !fields->Matches(*object)) continue;
    Call one = call;
    one.target.ns = object->meta.ns;
    one.target.name = object->meta.name;
    Response response = Delete(one);
    // One that goes in the meantime is no failure.
    if (response.code >= 300 && response.code != 404) return response;
    gone.items.push_back(object);
  }
  gone.resource_version = StoreOf(resource).resource_version();
  return RenderList(std::move(gone), FormFor(call));
}

namespace {

// A budget that selects the pod; several are an error of the eviction itself.
std::vector<ObjectRef> BudgetsOf(const ApiServer& server, const kube::Object& pod) {
  std::vector<ObjectRef> out;
  for (ObjectRef& budget : server.List("PodDisruptionBudget.policy", pod.meta.ns)) {
    const json& selector = At(budget->body, {"spec", "selector"});
    if (!selector.is_object()) continue;
    const auto parsed = kube::LabelSelector::FromJson(selector);
    if (parsed.ok() && parsed->Matches(pod.meta.labels)) out.push_back(std::move(budget));
  }
  return out;
}

bool Ready(const kube::Object& pod) {
  const json& conditions = Items(At(pod.body, {"status", "conditions"}));
  return std::any_of(conditions.begin(), conditions.end(), [](const json& condition) {
    return Text(condition, "type") == "Ready" && Text(condition, "status") == "True";
  });
}

Response WouldViolate(const std::string& why) {
  Response response =
      Failure(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
              {{"causes", json::array({{{"reason", "DisruptionBudget"}, {"message", why}}})}});
  return response;
}

}  // namespace

// kubernetes: pkg/registry/core/pod/storage/eviction.go.
std::optional<Response> RestApi::CheckBudget(const kube::Object& pod, bool dry_run) {
  const std::string phase = TextOf(At(pod.body, {"status", "phase"}));
  if (pod.meta.deleting || phase == "Pending" || phase == "Succeeded" || phase == "Failed") return std::nullopt;
  const std::vector<ObjectRef> budgets = BudgetsOf(server_, pod);
  if (budgets.empty()) return std::nullopt;
  if (budgets.size() > 1) {
    return Failure(500, "InternalError",
                   "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  }
  const kube::Object& budget = *budgets.front();
  const json& status = At(budget.body, "status");
  const int64_t healthy = Number(status, "currentHealthy"), desired = Number(status, "desiredHealthy"),
                allowed = Number(status, "disruptionsAllowed");
  const bool always = Text(At(budget.body, "spec"), "unhealthyPodEvictionPolicy") == "AlwaysAllow";
  if (!Ready(pod) && (always || (healthy >= desired && desired > 0))) return std::nullopt;
  if (Number(status, "observedGeneration") < budget.meta.generation) {
    return WouldViolate(
        fmt::format("The disruption budget {} is still being processed by the server.", budget.meta.name));
  }
  if (allowed <= 0) {
    return WouldViolate(fmt::format("The disruption budget {} needs {} healthy pods and has {} currently",
                                    budget.meta.name, desired, healthy));
  }
  if (dry_run) return std::nullopt;
  json body = budget.body;
  body["status"]["disruptionsAllowed"] = allowed - 1;
  body["status"]["disruptedPods"][pod.meta.name] = server_.DateNow();
  body["metadata"].erase("resourceVersion");
  server_.Update(std::move(body)).IgnoreError();
  return std::nullopt;
}

Response RestApi::Evict(const Call& call) {
  const absl::StatusOr<json> body = ParseBody(*call.request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  if (const std::string name = TextOf(At(*body, {"metadata", "name"})); !name.empty() && name != call.target.name)
    return BadRequest("name in URL does not match name in Eviction object");
  const ObjectRef pod = server_.Get(call.target.resource->StoreKind(), {call.target.ns, call.target.name});
  if (pod == nullptr) return NotFound(*call.target.resource, call.target.name);
  // How to delete it stands within, a dry run too.
  Request deletion = *call.request;
  const json& options = At(*body, "deleteOptions");
  deletion.parsed = std::make_shared<const json>(options.is_object() ? options : json());
  deletion.body.clear();
  const bool dry_run = call.query.Has("dryRun") || !Items(At(options, "dryRun")).empty();
  if (std::optional<Response> refused = CheckBudget(*pod, dry_run)) return *std::move(refused);
  Response response = Delete(call.For(std::move(deletion)));
  if (response.code >= 300) return response;
  return JsonResponse(201,
                      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Success"}});
}

// kubernetes: pkg/registry/core/pod/storage/storage.go, BindingREST.
Response RestApi::Bind(const Call& call) {
  const absl::StatusOr<json> body = ParseBody(*call.request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  const Resource& resource = *call.target.resource;
  const std::string kind = TextOf(At(*body, {"target", "kind"})), node = TextOf(At(*body, {"target", "name"}));
  if (node.empty()) return Invalid(resource, call.target.name, "target.name: Required value");
  if (!kind.empty() && kind != "Node")
    return Invalid(
        resource, call.target.name,
        fmt::format("target.kind: Unsupported value: \"{}\": supported values: \"Node\", \"<empty>\"", kind));
  const ObjectRef pod = server_.Get(resource.StoreKind(), {call.target.ns, call.target.name});
  if (pod == nullptr) return NotFound(resource, call.target.name);
  if (pod->meta.deleting)
    return Conflict(resource, call.target.name,
                    fmt::format("pod {} is being deleted, cannot be assigned to a host", pod->meta.name));
  if (const std::string at = Text(At(pod->body, "spec"), "nodeName"); !at.empty())
    return Conflict(resource, call.target.name,
                    fmt::format("pod {} is already assigned to node \"{}\"", pod->meta.name, at));
  if (!call.query.Has("dryRun")) {
    const absl::StatusOr<ObjectRef> bound =
        server_.Patch(resource.StoreKind(), {call.target.ns, call.target.name}, {{"spec", {{"nodeName", node}}}});
    if (!bound.ok()) return FromStore(bound.status(), resource, call.target.name);
  }
  return JsonResponse(201,
                      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Success"}});
}

}  // namespace wavetank::fakekube::http
