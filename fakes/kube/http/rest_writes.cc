// The part of the REST API that changes the store.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "fakes/kube/api_error.h"
#include "fakes/kube/http/api_types.h"
#include "fakes/kube/http/event_views.h"
#include "fakes/kube/http/go_words.h"
#include "fakes/kube/http/patching.h"
#include "fakes/kube/http/rest.h"
#include "fakes/kube/http/schema.h"
#include "fakes/kube/http/status.h"
#include "fakes/kube/server_side_apply.h"
#include "fakes/kube/validation.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// The body of a request about `resource`, with the kind, name and namespace that its path says; or the refusal.
std::optional<Response> FitToPath(const Resource& resource, const std::string& ns, const std::string& name,
                                  json* body) {
  if (!body->is_object()) {
    return BadRequest(
        fmt::format("the object provided is unrecognized (must be of type {}): it is no object", resource.kind));
  }
  for (const char* field : {"kind", "apiVersion"}) {
    if (const auto it = body->find(field); it != body->end() && !it->is_string() && !it->is_null())
      return BadRequest(fmt::format("the object provided is unrecognized: {} is no text", field));
  }
  const std::string kind = Text(*body, "kind"), api_version = Text(*body, "apiVersion");
  if (!kind.empty() && kind != resource.kind) {
    return BadRequest(fmt::format("{} in version \"{}\" cannot be handled as a {}: no kind \"{}\" matches this path",
                                  kind, resource.version, resource.kind, kind));
  }
  if (!api_version.empty() && api_version != resource.ApiVersion()) {
    return BadRequest(fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                                  api_version, resource.ApiVersion()));
  }
  (*body)["kind"] = resource.kind;
  (*body)["apiVersion"] = resource.ApiVersion();
  json& metadata = (*body)["metadata"];
  if (metadata.is_null()) metadata = json::object();
  if (!metadata.is_object()) return BadRequest("metadata: must be an object");
  for (const char* field : {"name", "generateName", "namespace", "uid", "resourceVersion"}) {
    if (const auto it = metadata.find(field); it != metadata.end() && it->is_null()) metadata.erase(it);
    if (const auto it = metadata.find(field); it != metadata.end() && !it->is_string())
      return BadRequest(
          fmt::format("json: cannot unmarshal into Go struct field ObjectMeta.metadata.{} of type string", field));
  }
  if (resource.namespaced) {
    if (const std::string own = Text(metadata, "namespace"); !own.empty() && own != ns)
      return BadRequest("the namespace of the provided object does not match the namespace sent on the request");
    metadata["namespace"] = ns;
  } else {
    metadata.erase("namespace");
  }
  if (!name.empty()) {
    const std::string own = Text(metadata, "name");
    if (!own.empty() && own != name) {
      return BadRequest(fmt::format("the name of the object ({}) does not match the name on the URL ({})", own, name));
    }
    metadata["name"] = name;
  }
  return std::nullopt;
}

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

// Who writes what: kubectl names itself in the query.
WriteOptions WriteOptionsFor(const std::string& manager, const std::string& subresource) {
  WriteOptions options;
  options.validate = true;
  options.field_manager = manager.empty() ? "unknown" : manager;
  options.subresource = subresource;
  return options;
}

// What stands in a body and is no field of its type. Custom resources lose it, as their schemas want it; Kubernetes'
// own keep it here, and only what is new since `previous` counts.
std::vector<std::string> DropUnknown(const Resource& resource, const ObjectRef& previous, json* body) {
  if (resource.schema != nullptr) return PruneBySchema(*resource.schema, body);
  const ApiType* type = resource.event_view ? nullptr : ApiTypeOf(resource);
  if (type == nullptr) return {};
  std::vector<std::string> unknown = UnknownFields(*type, *body);
  if (unknown.empty() || previous == nullptr) return unknown;
  const std::vector<std::string> before = UnknownFields(*type, previous->body);
  std::erase_if(unknown, [&](const std::string& field) {
    return std::find(before.begin(), before.end(), field) != before.end();
  });
  return unknown;
}

// A body that Go could not read into its type. What was so before `body` came stays as it is.
std::optional<Response> RefuseUnreadable(const Resource& resource, const ObjectRef& previous, const json& body) {
  const ApiType* type = resource.event_view ? nullptr : ApiTypeOf(resource);
  if (type == nullptr) return std::nullopt;
  const std::string wrong = UnreadableField(*type, body);
  if (wrong.empty() || (previous != nullptr && wrong == UnreadableField(*type, previous->body))) return std::nullopt;
  return BadRequest(
      fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}", resource.kind, resource.version, wrong));
}

// What a patch would make of an object and Go could not read: nobody's object, but the patch is wrong, or what it makes
// (apiserver: pkg/endpoints/handlers/patch.go).
std::optional<Response> RefusePatched(const Resource& resource, std::string_view patch_type, const json& patch,
                                      const json& previous, const json& patched) {
  const ApiType* type = resource.event_view ? nullptr : ApiTypeOf(resource);
  if (type == nullptr) return std::nullopt;
  const std::string wrong = UnreadableField(*type, patched);
  if (wrong.empty() || wrong == UnreadableField(*type, previous)) return std::nullopt;
  const bool strategic = patch_type == "application/strategic-merge-patch+json";
  const FieldError error = strategic ? InvalidField("patch", GoText(patch), GoConversionError(wrong))
                                     : InvalidField("patch", JsonText(patched), wrong);
  return FromStore(InvalidObject({}, "", {error}), resource, "");
}

// kubectl apply --validate=strict, which is its default from 1.25 on.
std::optional<Response> RefuseUnknown(const Resource& resource, const std::vector<std::string>& unknown,
                                      const Query& query) {
  if (unknown.empty() || query.Get("fieldValidation") != "Strict") return std::nullopt;
  std::string all;
  for (const std::string& field : unknown)
    all += fmt::format("{}unknown field {}", all.empty() ? "" : ", ", JsonText(json(field)));
  return BadRequest(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: {2}",
                                resource.kind, resource.version, all));
}

// kubectl prints these (RFC 7234, 5.5).
void Warn(const std::vector<std::string>& unknown, const Query& query, Response* response) {
  constexpr size_t kMost = 10, kLongest = 500;
  if (query.Get("fieldValidation") == "Ignore") return;
  for (size_t i = 0; i < std::min(unknown.size(), kMost); ++i) {
    // Escaped twice: once as kubectl's user reads it, once for the header, which so holds no line break.
    if (unknown[i].size() > kLongest) continue;
    response->headers.emplace_back("Warning", "299 - " + JsonText(json("unknown field " + JsonText(json(unknown[i])))));
  }
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

std::optional<Response> RestApi::CheckNamespace(const Target& target) const {
  // Worlds make namespaces as scenarios name them; clients are told, as by any cluster.
  if (server_.Get("Namespace.", {"", target.ns}) != nullptr) return std::nullopt;
  return NotFound(*resources_.Find("", "v1", "namespaces"), target.ns);
}

Response RestApi::Create(const Request& request, const Target& target, const Query& query) {
  const Resource& resource = *target.resource;
  if (resource.namespaced && target.ns.empty()) return MethodNotAllowed();
  absl::StatusOr<json> parsed = ParseBody(request);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  json body = *std::move(parsed);
  if (std::optional<Response> wrong = FitToPath(resource, target.ns, "", &body)) return *std::move(wrong);
  if (resource.event_view) body = ToCoreEvent(std::move(body));
  json& metadata = body["metadata"];
  if (!Text(metadata, "resourceVersion").empty())
    return Failure(500, "", "resourceVersion should not be set on objects to be created");
  const bool dry_run = query.Has("dryRun");
  if (Text(metadata, "name").empty()) {
    metadata.erase("name");
    if (const std::string prefix = Text(metadata, "generateName"); !prefix.empty()) {
      // Counted, so that a replay makes the same names.
      constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
      for (;;) {
        uint64_t draw = HashName(prefix, HashName(server_.name(), generated_names_));
        ++generated_names_;
        std::string name = prefix.substr(0, 58);
        for (int i = 0; i < 5; ++i, draw /= kLetters.size()) name += kLetters[draw % kLetters.size()];
        if (server_.Get(resource.StoreKind(), {target.ns, name}) != nullptr) continue;
        metadata["name"] = std::move(name);
        break;
      }
      if (dry_run) --generated_names_;
    }
  }
  const std::string name = Text(metadata, "name");
  if (name.empty()) return Invalid(resource, "", "metadata.name: Required value: name or generateName is required");
  if (resource.namespaced) {
    if (std::optional<Response> wrong = CheckNamespace(target)) return *std::move(wrong);
  }
  for (const char* field :
       {"uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    metadata.erase(field);
  }
  if (server_.Get(resource.StoreKind(), {target.ns, name}) != nullptr) return AlreadyExists(resource, name);
  if (dry_run) return Write(std::move(body), nullptr, request, target, query);
  return Admit(std::move(body), target, [this, request, target, query](json admitted) {
    return Write(std::move(admitted), nullptr, request, target, query);
  });
}

Response RestApi::Admit(json body, const Target& target, absl::AnyInvocable<Response(json admitted)> write) {
  if (options_.admission == nullptr || target.resource->StoreKind() != "Pod.") return write(std::move(body));
  SetDefaults(body);
  const ObjectRef ns = server_.Get("Namespace.", {"", target.ns});
  auto later = std::make_shared<LaterResponse>();
  options_.admission->Review(
      std::move(body), ns == nullptr ? kube::Labels() : ns->meta.labels,
      [later, write = std::move(write)](absl::StatusOr<json> admitted) mutable {
        if (!admitted.ok()) {
          return later->Set(
              Failure(500, "InternalError",
                      fmt::format("Internal error occurred: failed calling webhook: {}", Message(admitted.status()))));
        }
        // As in Execute(): what a webhook says is from outside, too.
        try {
          later->Set(write(*std::move(admitted)));
        } catch (const json::exception&) {
          later->Set(BadRequest("the object that admission gave back is unrecognized: a field is of the wrong type"));
        }
      });
  Response response;
  if (later->ready()) {
    later->Then([&response](Response ready) { response = std::move(ready); });
  } else {
    response.later = std::move(later);
  }
  return response;
}

Response RestApi::Write(json body, const ObjectRef& previous, const Request& request, const Target& target,
                        const Query& query) {
  const Resource& resource = *target.resource;
  const std::string name = Text(body["metadata"], "name");
  if (std::optional<Response> refused = RefuseUnreadable(resource, previous, body)) return *std::move(refused);
  const std::vector<std::string> unknown = DropUnknown(resource, previous, &body);
  if (std::optional<Response> refused = RefuseUnknown(resource, unknown, query)) return *std::move(refused);
  if (resource.schema != nullptr) {
    SetSchemaDefaults(*resource.schema, &body);
    if (std::vector<FieldError> errors = ValidateBySchema(*resource.schema, body); !errors.empty())
      return FromStore(InvalidObject({resource.kind, resource.group}, name, errors), resource, name);
  }
  Response response = Store(std::move(body), previous, request, target, query);
  if (response.code < 300) Warn(unknown, query, &response);
  return response;
}

Response RestApi::Store(json body, const ObjectRef& previous, const Request& request, const Target& target,
                        const Query& query) {
  const Resource& resource = *target.resource;
  const std::string name = Text(body["metadata"], "name");
  if (query.Has("dryRun")) {
    SetDefaults(body);
    if (absl::Status status = Validate(body, previous.get()); !status.ok()) return FromStore(status, resource, name);
    if (previous != nullptr) body["metadata"]["resourceVersion"] = std::to_string(previous->meta.resource_version);
    const absl::StatusOr<ObjectRef> object = kube::Object::FromJson(std::move(body));
    if (!object.ok()) return FromStore(object.status(), resource, name);
    return One(previous == nullptr ? 201 : 200, **object, request, target, query);
  }
  const WriteOptions options = WriteOptionsFor(query.Get("fieldManager"), target.subresource);
  const absl::StatusOr<ObjectRef> stored =
      previous == nullptr ? server_.Create(std::move(body), options) : server_.Update(std::move(body), options);
  if (!stored.ok()) return FromStore(stored.status(), resource, name);
  return One(previous == nullptr ? 201 : 200, **stored, request, target, query);
}

Response RestApi::Update(const Request& request, const Target& target, const Query& query) {
  const Resource& resource = *target.resource;
  absl::StatusOr<json> parsed = ParseBody(request);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  json body = *std::move(parsed);
  if (std::optional<Response> wrong = FitToPath(resource, target.ns, target.name, &body)) return *std::move(wrong);
  const ObjectRef previous = server_.Get(resource.StoreKind(), {target.ns, target.name});
  if (previous == nullptr) return NotFound(resource, target.name);
  json& metadata = body["metadata"];
  if (const std::string uid = Text(metadata, "uid"); !uid.empty() && uid != previous->meta.uid) {
    return Conflict(
        resource, target.name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", uid, previous->meta.uid));
  }
  const std::string version = Text(metadata, "resourceVersion");
  if (version.empty() && resource.custom) {
    return Invalid(resource, target.name,
                   "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
  }
  if (!version.empty() && version != "0" && version != std::to_string(previous->meta.resource_version)) {
    return Conflict(resource, target.name,
                    "the object has been modified; please apply your changes to the latest version and try again");
  }
  metadata.erase("resourceVersion");
  if (target.subresource == "status") {
    json whole = previous->body;
    if (body.contains("status")) {
      whole["status"] = body["status"];
    } else {
      whole["status"] = json::object();
    }
    body = std::move(whole);
  } else if (resource.HasSubresource("status")) {
    if (const auto status = previous->body.find("status"); status != previous->body.end()) {
      body["status"] = *status;
    } else {
      body.erase("status");
    }
  }
  body["apiVersion"] = previous->api_version;
  return Write(std::move(body), previous, request, target, query);
}

Response RestApi::Patch(const Request& request, const Target& target, const Query& query) {
  const Resource& resource = *target.resource;
  absl::StatusOr<json> patch = ParseBody(request);
  if (!patch.ok()) return BadRequest(std::string(patch.status().message()));
  const std::string_view type = std::string_view(request.content_type).substr(0, request.content_type.find(';'));
  const ObjectRef previous = server_.Get(resource.StoreKind(), {target.ns, target.name});
  if (type == "application/apply-patch+yaml") return Apply(*std::move(patch), previous, request, target, query);
  if (previous == nullptr) return NotFound(resource, target.name);
  absl::StatusOr<json> patched = Patched(resource, type, previous->body, *patch);
  if (!patched.ok()) return FromStore(patched.status(), resource, target.name);
  json body = *std::move(patched);
  if (std::optional<Response> wrong = RefusePatched(resource, type, *patch, previous->body, body))
    return *std::move(wrong);
  // A patch may well say the version that it was made for.
  if (body.is_object()) body["apiVersion"] = resource.ApiVersion();
  if (std::optional<Response> wrong = FitToPath(resource, target.ns, target.name, &body)) return *std::move(wrong);
  Request update = request;
  update.parsed = std::make_shared<const json>(std::move(body));
  return Update(update, target, query);
}

Response RestApi::Apply(json applied, const ObjectRef& previous, const Request& request, const Target& target,
                        const Query& query) {
  const Resource& resource = *target.resource;
  if (query.Get("fieldManager").empty()) {
    Resource options;
    options.kind = "PatchOptions";
    options.group = "meta.k8s.io";
    return Invalid(options, "", "fieldManager: Required value: is required for apply patch");
  }
  // Who applies must say what it is that he applies.
  for (const char* field : {"apiVersion", "kind"}) {
    if (applied.is_object() && Text(applied, field).empty())
      return BadRequest(fmt::format("Object '{}' is missing in the applied configuration", field));
  }
  if (std::optional<Response> wrong = FitToPath(resource, target.ns, target.name, &applied)) return *std::move(wrong);
  if (resource.namespaced && previous == nullptr) {
    if (std::optional<Response> wrong = CheckNamespace(target)) return *std::move(wrong);
  }
  if (target.subresource.empty() && resource.HasSubresource("status")) applied.erase("status");
  if (std::optional<Response> refused = RefuseUnreadable(resource, previous, applied)) return *std::move(refused);
  const std::vector<std::string> unknown = DropUnknown(resource, previous, &applied);
  if (std::optional<Response> refused = RefuseUnknown(resource, unknown, query)) return *std::move(refused);
  const bool force = query.Flag("force");
  const WriteOptions options = WriteOptionsFor(query.Get("fieldManager"), target.subresource);
  if (const bool dry_run = query.Has("dryRun"); dry_run || resource.schema != nullptr) {
    const FieldManager manager{options.field_manager, options.subresource, server_.DateNow()};
    absl::StatusOr<json> merged = ServerSideApply(previous == nullptr ? json() : previous->body, applied,
                                                  {resource.kind, resource.group}, manager, force);
    if (!merged.ok()) return FromStore(merged.status(), resource, target.name);
    if (dry_run) return Write(*std::move(merged), previous, request, target, query);
    // What is stored is merged by the store; here it is only judged.
    SetSchemaDefaults(*resource.schema, &*merged);
    if (std::vector<FieldError> errors = ValidateBySchema(*resource.schema, *merged); !errors.empty())
      return FromStore(InvalidObject({resource.kind, resource.group}, target.name, errors), resource, target.name);
  }
  if (previous == nullptr && resource.StoreKind() == "Pod." && options_.admission != nullptr) {
    // Admission sees what the apply makes; what it adds is nobody's.
    const FieldManager manager{options.field_manager, options.subresource, server_.DateNow()};
    absl::StatusOr<json> merged = ServerSideApply(json(), applied, {resource.kind, resource.group}, manager, force);
    if (!merged.ok()) return FromStore(merged.status(), resource, target.name);
    json owners = At((*merged)["metadata"], "managedFields");  // webhooks see none
    const auto write = [this, request, target, query, options, owners = std::move(owners)](json admitted) {
      admitted["metadata"]["managedFields"] = owners;
      WriteOptions how = options;
      how.applied = true;
      const absl::StatusOr<ObjectRef> stored = server_.Create(std::move(admitted), how);
      if (!stored.ok()) return FromStore(stored.status(), *target.resource, target.name);
      return One(201, **stored, request, target, query);
    };
    return Admit(*std::move(merged), target, write);
  }
  if (previous != nullptr) applied["apiVersion"] = previous->api_version;
  const absl::StatusOr<ObjectRef> stored = server_.ServerSideApply(std::move(applied), force, options);
  if (!stored.ok()) return FromStore(stored.status(), resource, target.name);
  Response response = One(previous == nullptr ? 201 : 200, **stored, request, target, query);
  Warn(unknown, query, &response);
  return response;
}

Response RestApi::Delete(const Request& request, const Target& target, const Query& query) {
  const Resource& resource = *target.resource;
  absl::StatusOr<json> body = ParseBody(request);
  if (!body.ok()) return BadRequest(std::string(body.status().message()));
  const absl::StatusOr<DeleteRequest> options = ReadDeleteOptions(*body, query);
  if (!options.ok()) return BadRequest(std::string(options.status().message()));
  const std::string kind = resource.StoreKind();
  const NamespacedName name{target.ns, target.name};
  const ObjectRef object = server_.Get(kind, name);
  if (object == nullptr) return NotFound(resource, target.name);
  if (!options->uid.empty() && options->uid != object->meta.uid) {
    return Conflict(resource, target.name,
                    fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", options->uid,
                                object->meta.uid));
  }
  if (!options->resource_version.empty() &&
      options->resource_version != std::to_string(object->meta.resource_version)) {
    return Conflict(resource, target.name,
                    fmt::format("Precondition failed: ResourceVersion in precondition: {}, ResourceVersion in object "
                                "meta: {}",
                                options->resource_version, object->meta.resource_version));
  }
  // NamespaceLifecycle, an admission plugin, keeps these.
  static constexpr std::string_view kKept[] = {"default", "kube-system", "kube-public"};
  if (kind == "Namespace." && std::find(std::begin(kKept), std::end(kKept), target.name) != std::end(kKept))
    return FromStore(absl::PermissionDeniedError("this namespace may not be deleted"), resource, target.name);
  if (options->dry_run) return Deleted(resource, target.name, object->meta.uid);
  DeleteOptions how;
  how.grace_seconds = options->grace_seconds;
  if (options->propagation == "Foreground") how.propagation = Propagation::kForeground;
  if (options->propagation == "Orphan") how.propagation = Propagation::kOrphan;
  const absl::Status status = server_.Delete(kind, name, how);
  if (!status.ok()) return FromStore(status, resource, target.name);
  // What goes later, or only when its finalizers are done, is shown as it is until then.
  if (const ObjectRef left = server_.Get(kind, name); left != nullptr && left->meta.uid == object->meta.uid)
    return One(200, *left, request, target, query);
  return Deleted(resource, target.name, object->meta.uid);
}

Response RestApi::DeleteCollection(const Request& request, const Target& target, const Query& query) {
  const Resource& resource = *target.resource;
  if (resource.namespaced && target.ns.empty()) return MethodNotAllowed();
  if (const std::string wrong = GoSelectorError(query.Get("labelSelector")); !wrong.empty()) return BadRequest(wrong);
  absl::StatusOr<kube::LabelSelector> labels = kube::LabelSelector::Parse(query.Get("labelSelector"));
  if (!labels.ok()) return BadRequest(std::string(labels.status().message()));
  absl::StatusOr<FieldSelector> fields = FieldSelector::Parse(query.Get("fieldSelector"));
  if (!fields.ok()) return BadRequest(std::string(fields.status().message()));
  ListPage gone;
  for (const ObjectRef& object : server_.List(resource.StoreKind(), target.ns)) {
    if (!labels->Matches(object->meta.labels) || !fields->Matches(*object)) continue;
    Target one = target;
    one.ns = object->meta.ns;
    one.name = object->meta.name;
    Response response = Delete(request, one, query);
    // One that goes in the meantime is no failure.
    if (response.code >= 300 && response.code != 404) return response;
    gone.items.push_back(object);
  }
  gone.resource_version = server_.resource_version();
  return RenderList(std::move(gone), FormFor(request, target, query));
}

Response RestApi::Scale(const Request& request, const Target& target, const Query& query) {
  const Resource& resource = *target.resource;
  const ObjectRef object = server_.Get(resource.StoreKind(), {target.ns, target.name});
  if (object == nullptr) return NotFound(resource, target.name);
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
  if (request.method == "GET" || request.method == "HEAD") return JsonResponse(200, scale_of(*object));
  absl::StatusOr<json> parsed = ParseBody(request);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  json wanted = *std::move(parsed);
  if (request.method == "PATCH") {
    Resource scale;
    scale.kind = "Scale";
    scale.plural = resource.plural;
    // A Scale has no lists, so that a strategic merge is a merge.
    const bool strategic = request.content_type.starts_with("application/strategic-merge-patch+json");
    absl::StatusOr<json> patched =
        Patched(scale, strategic ? "application/merge-patch+json" : request.content_type, scale_of(*object), wanted);
    if (!patched.ok()) return FromStore(patched.status(), resource, target.name);
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
        scale, target.name,
        fmt::format("spec.replicas: Invalid value: {}: must be greater than or equal to 0", JsonText(replicas)));
  }
  const std::string version = wanted.contains("metadata") ? Text(wanted["metadata"], "resourceVersion") : "";
  if (!version.empty() && version != std::to_string(object->meta.resource_version)) {
    return Conflict(resource, target.name,
                    "the object has been modified; please apply your changes to the latest version and try again");
  }
  json body = object->body;
  body["spec"]["replicas"] = replicas;
  if (query.Has("dryRun")) {
    wanted["spec"]["replicas"] = replicas;
    return JsonResponse(200, wanted);
  }
  const absl::StatusOr<ObjectRef> stored =
      server_.Update(std::move(body), WriteOptionsFor(query.Get("fieldManager"), "scale"));
  if (!stored.ok()) return FromStore(stored.status(), resource, target.name);
  return JsonResponse(200, scale_of(**stored));
}

Response RestApi::Evict(const Request& request, const Target& target, const Query& query) {
  Request deletion = request;
  deletion.parsed = nullptr;
  deletion.body.clear();
  Response response = Delete(deletion, target, query);
  if (response.code >= 300) return response;
  return JsonResponse(201,
                      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Success"}});
}

}  // namespace wavetank::fakekube::http
