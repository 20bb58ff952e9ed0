// The part of the REST API that changes the store.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kube/safe_text.h"
#include "fakes/kube/control/limit_ranges.h"
#include "fakes/kube/control/quotas.h"
#include "fakes/kube/http/api/api_types.h"
#include "fakes/kube/http/api/go_words.h"
#include "fakes/kube/http/api/schema.h"
#include "fakes/kube/http/api/schema_rules.h"
#include "fakes/kube/http/api/unreadable.h"
#include "fakes/kube/http/message/event_views.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/absent_owners.h"
#include "fakes/kube/http/rest/ephemeral_containers.h"
#include "fakes/kube/http/rest/patching.h"
#include "fakes/kube/http/rest/rest.h"
#include "fakes/kube/merge/server_side_apply.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/objects/autoscaler_versions.h"
#include "fakes/kube/validation/defaults.h"
#include "fakes/kube/validation/validation.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr int kRatchetsSince = 30;  // CRDValidationRatcheting is on by default

Response CannotHandle(const Resource& resource, std::string_view wrong) {
  return BadRequest(
      fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}", resource.kind, resource.version, wrong));
}

// Custom resources' metadata is read by itself, that of Kubernetes' own kinds as a part of them.
std::string UnreadableMetadataOf(const Resource& resource, const json& body) {
  const json& metadata = At(body, "metadata");
  const ApiType* type = ApiTypeOf(resource);
  return type == nullptr ? UnreadableMetadata(metadata) : UnreadableField(*type, {{"metadata", metadata}});
}

// The body of a request about `resource`, with the kind, name and namespace that its path says; or the refusal.
// `text`: the body as it came.
std::optional<Response> FitToPath(const Resource& resource, const std::string& ns, const std::string& name,
                                  std::string_view text, json* body) {
  if (const std::string wrong = UnreadableKind(*body); !wrong.empty())
    return BadRequest(UnrecognizedObject(resource.kind, wrong, text));
  if (!body->is_object()) {
    return BadRequest(
        fmt::format("the object provided is unrecognized (must be of type {}): it is no object", resource.kind));
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
  if (const std::string wrong = UnreadableMetadataOf(resource, *body); !wrong.empty())
    return CannotHandle(resource, wrong);
  json& metadata = (*body)["metadata"];
  if (metadata.is_null()) metadata = json::object();
  for (const char* field : {"name", "generateName", "namespace", "uid", "resourceVersion"}) {
    if (const auto it = metadata.find(field); it != metadata.end() && it->is_null()) metadata.erase(it);
  }
  // Go reads a null into the zero of its type: of a mapping of texts into none, of one of its values into "".
  for (const char* field : {"labels", "annotations"}) {
    const auto it = metadata.find(field);
    if (it == metadata.end()) continue;
    if (it->is_null()) {
      metadata.erase(it);
    } else if (it->is_object()) {
      for (json& value : *it) {
        if (value.is_null()) value = "";
      }
    }
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
  return CannotHandle(resource, wrong);
}

// What a patch would make of an object and Go could not read: nobody's object, but the patch is wrong, or what it makes
// (apiserver: pkg/endpoints/handlers/patch.go).
std::optional<Response> RefusePatched(const Resource& resource, std::string_view patch_type, const json& patch,
                                      const json& previous, const json& patched) {
  const ApiType* type = resource.event_view ? nullptr : ApiTypeOf(resource);
  const bool strategic = patch_type == "application/strategic-merge-patch+json";
  const auto wrong_of = [&](const json& object) {
    if (std::string kind = UnreadableKind(object); !kind.empty()) return kind;
    if (type == nullptr) return UnreadableMetadata(At(object, "metadata"));
    return strategic ? UnconvertibleField(*type, object) : UnreadableField(*type, object);
  };
  const std::string wrong = wrong_of(patched);
  if (wrong.empty() || wrong == wrong_of(previous)) return std::nullopt;
  const FieldError error = InvalidField("patch", strategic ? json(GoText(patch)) : json(JsonText(patched)), wrong);
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

// kubectl prints these (RFC 7234, 5.5). A long one is left out.
void WarnOf(const std::vector<std::string>& warnings, Response* response) {
  constexpr size_t kMost = 32, kLongest = 2048;
  for (size_t i = 0; i < std::min(warnings.size(), kMost); ++i) {
    if (warnings[i].size() > kLongest) continue;
    response->headers.emplace_back("Warning", "299 - " + JsonText(json(warnings[i])));
  }
}

void Warn(const std::vector<std::string>& unknown, const Query& query, Response* response) {
  constexpr size_t kMost = 10, kLongest = 500;
  if (query.Get("fieldValidation") == "Ignore") return;
  for (size_t i = 0; i < std::min(unknown.size(), kMost); ++i) {
    // Escaped twice: once as kubectl's user reads it, once for the header, which so holds no line break.
    if (unknown[i].size() > kLongest) continue;
    response->headers.emplace_back("Warning", "299 - " + JsonText(json("unknown field " + JsonText(json(unknown[i])))));
  }
}

// What a write of a subresource makes of the object (kubernetes: pkg/registry/*/strategy.go): status, finalizers of a
// namespace, conditions of a certificate's request. Of Kubernetes' own kinds labels and annotations come along with a
// status, but a Deployment's labels.
json WithSubresource(const Resource& resource, std::string_view subresource, json whole, json body) {
  if (subresource == "finalize") {
    whole["spec"]["finalizers"] = Items(At(body, {"spec", "finalizers"}));
  } else if (subresource == "ephemeralcontainers") {
    whole["spec"]["ephemeralContainers"] = Items(At(body, {"spec", "ephemeralContainers"}));
    return whole;
  } else if (subresource == "approval") {
    whole["status"]["conditions"] = Items(At(body, {"status", "conditions"}));
  } else {
    whole["status"] = At(body, "status").is_null() ? json::object() : At(body, "status");
  }
  if (resource.custom) return whole;
  for (const char* field : {"labels", "annotations"}) {
    if (resource.kind == "Deployment" && std::string_view(field) == "labels") continue;
    if (const json& said = At(body, {"metadata", field}); said.is_object()) {
      whole["metadata"][field] = said;
    } else {
      whole["metadata"].erase(field);
    }
  }
  return whole;
}

// Ephemeral containers come by their subresource alone.
std::optional<Response> RefuseEphemeral(const json& pod, const ObjectRef& previous, const Call& call) {
  const Resource& resource = *call.target.resource;
  if (resource.StoreKind() != "Pod.") return std::nullopt;
  const json& now = Items(At(pod, {"spec", "ephemeralContainers"}));
  std::vector<FieldError> errors;
  if (call.target.subresource == "ephemeralcontainers") {
    errors = CheckEphemeralContainers(pod, previous->body);
  } else if (previous == nullptr && !now.empty()) {
    errors.push_back(ForbiddenField("spec.ephemeralContainers", "cannot be set on create"));
  } else if (previous != nullptr && now != Items(At(previous->body, {"spec", "ephemeralContainers"}))) {
    errors.push_back(ForbiddenField("spec",
                                    "pod updates may not change fields other than `spec.containers[*].image`,"
                                    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
                                    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
                                    "(allow it to be set to 1 if it was previously negative)"));
  }
  if (errors.empty()) return std::nullopt;
  return FromStore(InvalidObject({resource.kind, resource.group}, TextOf(At(pod, {"metadata", "name"})), errors),
                   resource, TextOf(At(pod, {"metadata", "name"})));
}

// kubernetes: plugin/pkg/admission/namespace/lifecycle, by whose cause controllers know it.
std::optional<Response> RefuseNewInTerminating(const ApiServer& server, const Resource& resource, const std::string& ns,
                                               const std::string& name) {
  const ObjectRef in = resource.namespaced ? server.Get("Namespace.", {"", ns}) : nullptr;
  if (in == nullptr || !in->meta.deleting) return std::nullopt;
  json details = {{"kind", resource.plural}, {"name", name}};
  if (!resource.group.empty()) details["group"] = resource.group;
  details["causes"] = json::array({{{"reason", "NamespaceTerminating"},
                                    {"message", fmt::format("namespace {} is being terminated", ns)},
                                    {"field", "metadata.namespace"}}});
  return Failure(403, "Forbidden",
                 fmt::format("{} \"{}\" is forbidden: unable to create new content in namespace {} because it is being "
                             "terminated",
                             resource.Qualified(), name, ns),
                 std::move(details));
}

}  // namespace

std::optional<Response> RestApi::CheckNamespace(const Call& call) const {
  // Worlds make namespaces as scenarios name them; clients are told, as by any cluster.
  if (server_.Get("Namespace.", {"", call.target.ns}) != nullptr) return std::nullopt;
  return NotFound(*resources_.Find("", "v1", "namespaces"), call.target.ns);
}

Response RestApi::Create(const Call& call) {
  const Resource& resource = *call.target.resource;
  if (resource.namespaced && call.target.ns.empty()) return MethodNotAllowed();
  absl::StatusOr<json> parsed = ParseBody(*call.request);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  json body = *std::move(parsed);
  if (std::optional<Response> wrong = FitToPath(resource, call.target.ns, "", call.request->body, &body))
    return *std::move(wrong);
  // It is read before anybody is asked about it, admission included.
  if (std::optional<Response> refused = RefuseUnreadable(resource, nullptr, body)) return *std::move(refused);
  if (resource.event_view) body = ToCoreEvent(std::move(body));
  json& metadata = body["metadata"];
  if (!Text(metadata, "resourceVersion").empty())
    return Failure(500, "", "resourceVersion should not be set on objects to be created");
  const bool dry_run = call.query.Has("dryRun");
  if (Text(metadata, "name").empty()) {
    metadata.erase("name");
    if (const std::string prefix = Text(metadata, "generateName"); !prefix.empty()) {
      // Counted, so that a replay makes the same names.
      for (;;) {
        const uint64_t draw = HashName(prefix, HashName(server_.name(), generated_names_));
        ++generated_names_;
        std::string name = prefix.substr(0, 58) + kube::SafeText(draw, 5);
        if (StoreOf(resource).Get(resource.StoreKind(), {call.target.ns, name}) != nullptr) continue;
        metadata["name"] = std::move(name);
        break;
      }
      if (dry_run) --generated_names_;
    }
  }
  const std::string name = Text(metadata, "name");
  if (name.empty()) return Invalid(resource, "", "metadata.name: Required value: name or generateName is required");
  if (resource.namespaced) {
    if (std::optional<Response> wrong = CheckNamespace(call)) return *std::move(wrong);
  }
  for (const char* field :
       {"uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    metadata.erase(field);
  }
  if (std::optional<Response> wrong = RefuseNewInTerminating(server_, resource, call.target.ns, name))
    return *std::move(wrong);
  if (StoreOf(resource).Get(resource.StoreKind(), {call.target.ns, name}) != nullptr)
    return AlreadyExists(resource, name);
  if (std::optional<Response> wrong = RefuseEphemeral(body, nullptr, call)) return *std::move(wrong);
  if (dry_run) return Write(std::move(body), nullptr, call);
  return Admit(std::move(body), call,
               [this, call](json admitted) { return Write(std::move(admitted), nullptr, call); });
}

Response RestApi::Admit(json body, const Call& call, absl::AnyInvocable<Response(json admitted)> write) {
  if (options_.admission == nullptr || call.target.resource->StoreKind() != "Pod.") return write(std::move(body));
  SetDefaults(body);
  const ObjectRef ns = server_.Get("Namespace.", {"", call.target.ns});
  auto later = std::make_shared<LaterResponse>();
  options_.admission->Review(
      std::move(body), ns == nullptr ? kube::Labels() : ns->meta.labels,
      [later, write = std::move(write)](absl::StatusOr<json> admitted) mutable {
        if (!admitted.ok()) {
          return later->Set(
              Failure(500, "InternalError", fmt::format("Internal error occurred: {}", Message(admitted.status()))));
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

namespace {

// Rules of a definition's schemas (apiextensions-apiserver: pkg/apis/apiextensions/validation): what is no expression
// is refused, and of what nobody evaluates here its user is told where it is.
std::vector<FieldError> CheckDefinitionsRules(const json& body, std::vector<std::string>* warnings) {
  std::vector<FieldError> errors;
  if (Text(body, "kind") != "CustomResourceDefinition") return errors;
  size_t version = 0;
  for (const json& each : Items(At(body, {"spec", "versions"}))) {
    for (const RuleProblem& problem : FindRuleProblems(At(each, {"schema", "openAPIV3Schema"}))) {
      if (problem.refused) {
        errors.push_back(InvalidField(fmt::format("spec.versions[{}].schema.openAPIV3Schema{}", version, problem.path),
                                      problem.rule, fmt::format("compilation failed: {}", problem.why)));
      } else {
        warnings->push_back(fmt::format("version {}: {} is kept, but not evaluated by this server: {}",
                                        Text(each, "name"), problem.path.substr(1), problem.why));
      }
    }
    ++version;
  }
  return errors;
}

// Those after which rules cannot be asked (apiextensions-apiserver: pkg/apiserver/validation, hasBlockingErr).
bool Blocks(const FieldError& error) {
  return error.reason == "FieldValueRequired" || error.reason == "FieldValueTypeInvalid" ||
         error.reason == "FieldValueTooLong" || error.reason == "FieldValueTooMany";
}

// What a definition says of its objects, its rules in CEL included, and what is said of definitions. Sets the defaults.
std::vector<FieldError> CheckBySchema(const Resource& resource, const ObjectRef& previous, bool ratchets, json* body,
                                      std::vector<std::string>* warnings) {
  if (resource.schema == nullptr) return CheckDefinitionsRules(*body, warnings);
  const json& schema = *resource.schema;
  SetSchemaDefaults(schema, body);
  std::vector<FieldError> errors = ValidateBySchema(schema, *body);
  if (std::any_of(errors.begin(), errors.end(), Blocks)) {
    if (HasSchemaRules(schema)) {
      errors.push_back({"FieldValueInvalid", "<nil>",
                        "Invalid value: \"null\": some validation rules were not checked because the object was "
                        "invalid; correct the existing errors to complete validation"});
    }
    return errors;
  }
  RuleVerdict verdict = CheckSchemaRules(schema, *body, previous == nullptr ? Null() : previous->body, ratchets);
  errors.insert(errors.end(), verdict.errors.begin(), verdict.errors.end());
  warnings->insert(warnings->end(), verdict.warnings.begin(), verdict.warnings.end());
  return errors;
}

}  // namespace

Response RestApi::Write(json body, const ObjectRef& previous, const Call& call) {
  const Resource& resource = *call.target.resource;
  const std::string name = Text(body["metadata"], "name");
  if (std::optional<Response> refused = RefuseUnreadable(resource, previous, body)) return *std::move(refused);
  const std::vector<std::string> unknown = DropUnknown(resource, previous, &body);
  if (std::optional<Response> refused = RefuseUnknown(resource, unknown, call.query)) return *std::move(refused);
  std::vector<std::string> warnings;
  const bool ratchets = server_.release().minor() >= kRatchetsSince;
  if (const std::vector<FieldError> errors = CheckBySchema(resource, previous, ratchets, &body, &warnings);
      !errors.empty())
    return FromStore(InvalidObject({resource.kind, resource.group}, name, errors), resource, name);
  if (previous == nullptr) {
    if (std::optional<Response> refused = RefuseByLimits(resource, &body)) return *std::move(refused);
  }
  if (std::optional<Response> denied = AskWebhooks(body, call, &warnings)) return *std::move(denied);
  Response response = Store(std::move(body), previous, call);
  if (response.code < 300) {
    Warn(unknown, call.query, &response);
    WarnOf(warnings, &response);
  }
  return response;
}

std::optional<Response> RestApi::RefuseByLimits(const Resource& resource, json* body) const {
  if (!resource.namespaced) return std::nullopt;
  absl::Status fits = AdmitByLimitRanges(server_, *body);
  if (fits.ok()) fits = CheckQuotas(server_, *body);
  if (fits.ok()) return std::nullopt;
  return FromStore(fits, resource, TextOf(At(*body, {"metadata", "name"})));
}

std::optional<Response> RestApi::AskWebhooks(const json& object, const Call& call,
                                             std::vector<std::string>* warnings) const {
  if (options_.webhooks == nullptr || !call.target.subresource.empty()) return std::nullopt;
  WebhookVerdict verdict = options_.webhooks(object);
  if (verdict.denied.has_value())
    return verdict.failed ? Failure(500, "InternalError", *verdict.denied) : Failure(400, "", *verdict.denied);
  warnings->insert(warnings->end(), verdict.warnings.begin(), verdict.warnings.end());
  return std::nullopt;
}

Response RestApi::Store(json body, const ObjectRef& previous, const Call& call) {
  const Resource& resource = *call.target.resource;
  const std::string name = Text(body["metadata"], "name");
  if (call.query.Has("dryRun")) {
    SetDefaults(body);
    if (absl::Status status = Validate(body, previous.get()); !status.ok()) return FromStore(status, resource, name);
    if (previous != nullptr) body["metadata"]["resourceVersion"] = std::to_string(previous->meta.resource_version);
    const absl::StatusOr<ObjectRef> object = kube::Object::FromJson(std::move(body));
    if (!object.ok()) return FromStore(object.status(), resource, name);
    return One(previous == nullptr ? 201 : 200, **object, call);
  }
  const WriteOptions options = HowToWrite(call);
  const absl::StatusOr<ObjectRef> stored = previous == nullptr ? StoreOf(resource).Create(std::move(body), options)
                                                               : StoreOf(resource).Update(std::move(body), options);
  if (!stored.ok()) return FromStore(stored.status(), resource, name);
  if (previous == nullptr) CollectIfOwnersAreAbsent(server_, **stored, lines_);
  return One(previous == nullptr ? 201 : 200, **stored, call);
}

Response RestApi::Update(const Call& call) {
  const Resource& resource = *call.target.resource;
  absl::StatusOr<json> parsed = ParseBody(*call.request);
  if (!parsed.ok()) return BadRequest(std::string(parsed.status().message()));
  json body = *std::move(parsed);
  if (std::optional<Response> wrong = FitToPath(resource, call.target.ns, call.target.name, call.request->body, &body))
    return *std::move(wrong);
  const ObjectRef previous = StoreOf(resource).Get(resource.StoreKind(), {call.target.ns, call.target.name});
  if (std::optional<Response> refused = RefuseUnreadable(resource, previous, body)) return *std::move(refused);
  if (previous == nullptr) return NotFound(resource, call.target.name);
  json& metadata = body["metadata"];
  if (const std::string uid = Text(metadata, "uid"); !uid.empty() && uid != previous->meta.uid) {
    return Conflict(
        resource, call.target.name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", uid, previous->meta.uid));
  }
  const std::string version = Text(metadata, "resourceVersion");
  if (version.empty() && resource.custom) {
    return Invalid(resource, call.target.name,
                   "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
  }
  if (!version.empty() && version != "0" && version != std::to_string(previous->meta.resource_version)) {
    return Conflict(resource, call.target.name,
                    "the object has been modified; please apply your changes to the latest version and try again");
  }
  metadata.erase("resourceVersion");
  if (!call.target.subresource.empty()) {
    body = WithSubresource(resource, call.target.subresource, previous->body, std::move(body));
  } else if (resource.HasSubresource("status")) {
    if (const auto status = previous->body.find("status"); status != previous->body.end()) {
      body["status"] = *status;
    } else {
      body.erase("status");
    }
  }
  // An autoscaler is judged in the version that it came in; the store makes it version 2.
  if (resource.ApiVersion() != "autoscaling/v1") body["apiVersion"] = previous->api_version;
  if (std::optional<Response> wrong = RefuseEphemeral(body, previous, call)) return *std::move(wrong);
  return Write(std::move(body), previous, call);
}

Response RestApi::Patch(const Call& call) {
  const Resource& resource = *call.target.resource;
  absl::StatusOr<json> patch = ParseBody(*call.request);
  if (!patch.ok()) return BadRequest(std::string(patch.status().message()));
  const std::string_view type =
      std::string_view(call.request->content_type).substr(0, call.request->content_type.find(';'));
  const ObjectRef previous = StoreOf(resource).Get(resource.StoreKind(), {call.target.ns, call.target.name});
  if (type == "application/apply-patch+yaml") return Apply(*std::move(patch), previous, call);
  if (previous == nullptr) return NotFound(resource, call.target.name);
  json current = previous->body;
  if (resource.ApiVersion() == "autoscaling/v1") ToAutoscalingV1(current);
  absl::StatusOr<json> patched = Patched(resource, type, current, *patch);
  if (!patched.ok()) return FromStore(patched.status(), resource, call.target.name);
  json body = *std::move(patched);
  if (std::optional<Response> wrong = RefusePatched(resource, type, *patch, current, body)) return *std::move(wrong);
  // A patch may well say the version that it was made for.
  if (body.is_object()) body["apiVersion"] = resource.ApiVersion();
  if (std::optional<Response> wrong = FitToPath(resource, call.target.ns, call.target.name, call.request->body, &body))
    return *std::move(wrong);
  Request update = *call.request;
  update.parsed = std::make_shared<const json>(std::move(body));
  return Update(call.For(std::move(update)));
}

Response RestApi::Apply(json applied, const ObjectRef& previous, const Call& call) {
  const Resource& resource = *call.target.resource;
  if (call.query.Get("fieldManager").empty()) {
    Resource options;
    options.kind = "PatchOptions";
    options.group = "meta.k8s.io";
    return Invalid(options, "", "fieldManager: Required value: is required for apply patch");
  }
  // An apply must say what it is that it applies.
  for (const char* field : {"apiVersion", "kind"}) {
    if (applied.is_object() && Text(applied, field).empty())
      return BadRequest(fmt::format("Object '{}' is missing in the applied configuration", field));
  }
  if (const std::string wrong = UntypedApply(resource, applied); !wrong.empty()) return Failure(500, "", wrong);
  // A subresource is of what is there, whatever is applied to it.
  if (previous == nullptr && !call.target.subresource.empty()) return NotFound(resource, call.target.name);
  if (std::optional<Response> wrong =
          FitToPath(resource, call.target.ns, call.target.name, call.request->body, &applied))
    return *std::move(wrong);
  if (resource.namespaced && previous == nullptr) {
    if (std::optional<Response> wrong = CheckNamespace(call)) return *std::move(wrong);
    if (std::optional<Response> wrong = RefuseNewInTerminating(server_, resource, call.target.ns, call.target.name))
      return *std::move(wrong);
  }
  if (call.target.subresource.empty() && resource.HasSubresource("status")) applied.erase("status");
  if (std::optional<Response> refused = RefuseUnreadable(resource, previous, applied)) return *std::move(refused);
  const std::vector<std::string> unknown = DropUnknown(resource, previous, &applied);
  if (std::optional<Response> refused = RefuseUnknown(resource, unknown, call.query)) return *std::move(refused);
  if (resource.ApiVersion() == "autoscaling/v1") ToAutoscalingV2(applied);
  const bool force = call.query.Flag("force");
  const WriteOptions options = HowToWrite(call);
  std::vector<std::string> warnings;
  if (const bool dry_run = call.query.Has("dryRun");
      dry_run || resource.schema != nullptr || options_.webhooks != nullptr || previous == nullptr ||
      resource.StoreKind() == "Pod." || resource.kind == "CustomResourceDefinition") {
    const FieldManager manager{options.field_manager, options.subresource, server_.DateNow(), resource.schema.get()};
    absl::StatusOr<json> merged = ServerSideApply(previous == nullptr ? json() : previous->body, applied,
                                                  {resource.kind, resource.group}, manager, force);
    if (!merged.ok()) return FromStore(merged.status(), resource, call.target.name);
    if (std::optional<Response> wrong = RefuseEphemeral(*merged, previous, call)) return *std::move(wrong);
    if (dry_run) return Write(*std::move(merged), previous, call);
    // What is stored is merged by the store; here it is only judged.
    const bool ratchets = server_.release().minor() >= kRatchetsSince;
    if (const std::vector<FieldError> errors = CheckBySchema(resource, previous, ratchets, &*merged, &warnings);
        !errors.empty()) {
      return FromStore(InvalidObject({resource.kind, resource.group}, call.target.name, errors), resource,
                       call.target.name);
    }
    const bool admitted_later = resource.StoreKind() == "Pod." && options_.admission != nullptr;
    if (previous == nullptr && !admitted_later) {
      if (std::optional<Response> refused = RefuseByLimits(resource, &*merged)) return *std::move(refused);
    }
    if (std::optional<Response> denied = AskWebhooks(*merged, call, &warnings)) return *std::move(denied);
  }
  if (previous == nullptr && resource.StoreKind() == "Pod." && options_.admission != nullptr) {
    // Admission sees what the apply makes; what it adds is nobody's.
    const FieldManager manager{options.field_manager, options.subresource, server_.DateNow(), resource.schema.get()};
    absl::StatusOr<json> merged = ServerSideApply(json(), applied, {resource.kind, resource.group}, manager, force);
    if (!merged.ok()) return FromStore(merged.status(), resource, call.target.name);
    json owners = At((*merged)["metadata"], "managedFields");  // webhooks see none
    const auto write = [this, call, options, owners = std::move(owners)](json admitted) {
      if (std::optional<Response> refused = RefuseByLimits(*call.target.resource, &admitted))
        return *std::move(refused);
      admitted["metadata"]["managedFields"] = owners;
      WriteOptions how = options;
      how.applied = true;
      const absl::StatusOr<ObjectRef> stored = server_.Create(std::move(admitted), how);
      if (!stored.ok()) return FromStore(stored.status(), *call.target.resource, call.target.name);
      return One(201, **stored, call);
    };
    return Admit(*std::move(merged), call, write);
  }
  if (previous != nullptr) applied["apiVersion"] = previous->api_version;
  const absl::StatusOr<ObjectRef> stored = StoreOf(resource).ServerSideApply(std::move(applied), force, options);
  if (!stored.ok()) return FromStore(stored.status(), resource, call.target.name);
  Response response = One(previous == nullptr ? 201 : 200, **stored, call);
  Warn(unknown, call.query, &response);
  WarnOf(warnings, &response);
  return response;
}

}  // namespace wavetank::fakekube::http
