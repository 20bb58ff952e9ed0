#include "fakes/kube/http/api/openapi_definitions.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/kube/list_types.h"
#include "fakes/kube/http/api/api_descriptions.h"
#include "fakes/kube/http/api/api_types.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// --- definitions of Kubernetes' own types

// Where a type lives that is not in core/v1, by how its name begins; "$": that is all of it. The last that fits.
constexpr std::pair<std::string_view, std::string_view> kPackages[] = {
    {"APIService", "kube-aggregator.pkg.apis.apiregistration.v1"},
    {"AdmissionregistrationV1", "api.admissionregistration.v1"},
    {"AggregationRule", "api.rbac.v1"},
    {"ApiextensionsV1", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"ApiregistrationV1", "kube-aggregator.pkg.apis.apiregistration.v1"},
    {"AutoscalingV1", "api.autoscaling.v1"},
    {"BoundObjectReference", "api.authentication.v1"},
    {"CertificateSigningRequest", "api.certificates.v1"},
    {"ClusterRole", "api.rbac.v1"},
    {"Condition$", "apimachinery.pkg.apis.meta.v1"},
    {"ControllerRevision", "api.apps.v1"},
    {"CronJob", "api.batch.v1"},
    {"CustomResource", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"DaemonSet", "api.apps.v1"},
    {"DeleteOptions", "apimachinery.pkg.apis.meta.v1"},
    {"Deployment", "api.apps.v1"},
    {"DiscoveryV1", "api.discovery.v1"},
    {"Endpoint$", "api.discovery.v1"},
    {"EndpointConditions", "api.discovery.v1"},
    {"EndpointHints", "api.discovery.v1"},
    {"EndpointSlice", "api.discovery.v1"},
    {"EventsV1", "api.events.v1"},
    {"Eviction$", "api.policy.v1"},
    {"ExternalDocumentation", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"FieldSelector", "apimachinery.pkg.apis.meta.v1"},
    {"FieldSelectorAttributes", "api.authorization.v1"},
    {"ForNode", "api.discovery.v1"},
    {"ForZone", "api.discovery.v1"},
    {"HTTPIngress", "api.networking.v1"},
    {"IPBlock", "api.networking.v1"},
    {"Ingress", "api.networking.v1"},
    {"JSONSchemaProps", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"Job", "api.batch.v1"},
    {"LabelSelector", "apimachinery.pkg.apis.meta.v1"},
    {"LabelSelectorAttributes", "api.authorization.v1"},
    {"Lease", "api.coordination.v1"},
    {"LocalSubjectAccessReview", "api.authorization.v1"},
    {"ManagedFieldsEntry", "apimachinery.pkg.apis.meta.v1"},
    {"MutatingWebhook", "api.admissionregistration.v1"},
    {"NetworkPolicy", "api.networking.v1"},
    {"NonResourceAttributes", "api.authorization.v1"},
    {"ObjectMeta", "apimachinery.pkg.apis.meta.v1"},
    {"OwnerReference", "apimachinery.pkg.apis.meta.v1"},
    {"PodDisruptionBudget", "api.policy.v1"},
    {"PodFailurePolicy", "api.batch.v1"},
    {"PolicyRule", "api.rbac.v1"},
    {"Preconditions", "apimachinery.pkg.apis.meta.v1"},
    {"PriorityClass", "api.scheduling.v1"},
    {"ReplicaSet", "api.apps.v1"},
    {"ResourceAttributes", "api.authorization.v1"},
    {"Role", "api.rbac.v1"},
    {"RollingUpdate", "api.apps.v1"},
    {"Scale$", "api.autoscaling.v1"},
    {"ScaleSpec", "api.autoscaling.v1"},
    {"ScaleStatus", "api.autoscaling.v1"},
    {"SelectableField", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"SelfSubject", "api.authorization.v1"},
    {"SelfSubjectReview", "api.authentication.v1"},
    {"StatefulSet", "api.apps.v1"},
    {"StorageClass", "api.storage.v1"},
    {"StorageV1", "api.storage.v1"},
    {"Subject$", "api.rbac.v1"},
    {"SubjectAccessReview", "api.authorization.v1"},
    {"TokenRequest", "api.authentication.v1"},
    {"TokenReview", "api.authentication.v1"},
    {"V2", "api.autoscaling.v2"},
    {"ValidatingWebhook", "api.admissionregistration.v1"},
    {"ValidationRule", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
    {"VolumeAttachment", "api.storage.v1"},
    {"WebhookConversion", "apiextensions-apiserver.pkg.apis.apiextensions.v1"},
};

// What the table puts before a name that several packages have.
constexpr std::string_view kApart[] = {"AdmissionregistrationV1",
                                       "ApiextensionsV1",
                                       "ApiregistrationV1",
                                       "AutoscalingV1",
                                       "DiscoveryV1",
                                       "EventsV1",
                                       "StorageV1",
                                       "V2"};

// "io.k8s.api.core.v1.PodSpec": kubectl shows it in its refusals.
std::string DefinitionName(std::string_view type) {
  std::string_view package = "api.core.v1", name = type;
  for (const auto& [begin, of] : kPackages) {
    if (begin.ends_with('$') ? type == begin.substr(0, begin.size() - 1) : type.starts_with(begin)) package = of;
  }
  for (const std::string_view apart : kApart) {
    if (name.starts_with(apart)) name.remove_prefix(apart.size());
  }
  return "io.k8s." + std::string(package) + "." + std::string(name);
}

constexpr std::string_view kIntOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

json Ref(OpenApi version, std::string_view name) {
  return {{"$ref", (version == OpenApi::kV2 ? "#/definitions/" : "#/components/schemas/") + std::string(name)}};
}

json TypeSchema(const FieldType& type, OpenApi version) {
  if (type.or_anything) return json::object();  // OpenAPI has no word for it that its readers know
  switch (type.shape) {
    case FieldShape::kList:
      return {{"type", "array"}, {"items", TypeSchema(*type.of, version)}};
    case FieldShape::kMap:
      return {{"type", "object"}, {"additionalProperties", TypeSchema(*type.of, version)}};
    case FieldShape::kAnything:
      return json::object();
    case FieldShape::kString:
    case FieldShape::kQuantity:
      return {{"type", "string"}};
    case FieldShape::kInteger:
      return {{"type", "integer"}, {"format", "int64"}};
    case FieldShape::kNumber:
      return {{"type", "number"}, {"format", "double"}};
    case FieldShape::kBoolean:
      return {{"type", "boolean"}};
    case FieldShape::kTime:
    case FieldShape::kMicroTime:
      return {{"type", "string"}, {"format", "date-time"}};
    case FieldShape::kBytes:
      return {{"type", "string"}, {"format", "byte"}};
    case FieldShape::kIntegerOrString:
      if (version == OpenApi::kV3) return Ref(version, kIntOrString);
      return {{"type", "string"}, {"format", "int-or-string"}};
    case FieldShape::kObject:
      return {{"type", "object"}};
    case FieldShape::kType:
      break;
  }
  return Ref(version, DefinitionName(type.name));
}

// How kubectl merges a field, as the store does (core/kube/list_types.h): these two must agree.
void AddPatchStrategy(std::string_view type, const ApiField& field, json* schema) {
  // A change of these replaces what another choice had brought along.
  if (type == "DeploymentSpec" && field.name == "strategy") (*schema)["x-kubernetes-patch-strategy"] = "retainKeys";
  if (field.type.shape != FieldShape::kList || field.type.or_anything) return;
  const std::string_view kind = type == "ServiceSpec" || type == "ServiceAccount" ? type.substr(0, type.find("Spec"))
                                : type == "NodeStatus"                            ? "Node"
                                                                                  : "Pod";
  std::string_view parent;
  if (type == "ObjectMeta") parent = "metadata";
  if (type == "Container" || type == "EphemeralContainer") parent = "containers";
  if (type.ends_with("Spec")) parent = "spec";
  if (type.ends_with("Status")) parent = "status";
  const kube::ListType list = kube::ListTypeOf(kind, parent, field.name);
  if (list.patch == kube::ListType::Merge::kAtomic) return;
  (*schema)["x-kubernetes-patch-strategy"] = field.name == "volumes" ? "merge,retainKeys" : "merge";
  if (!list.patch_key.empty()) (*schema)["x-kubernetes-patch-merge-key"] = list.patch_key;
}

// In version 3 nothing beside a reference counts.
json Described(json schema, std::string_view text, OpenApi version) {
  if (text.empty()) return schema;
  if (version == OpenApi::kV3 && schema.contains("$ref")) schema = {{"allOf", json::array({std::move(schema)})}};
  schema["description"] = text;
  return schema;
}

json Definition(const ApiType& type, const std::vector<json>& kinds, OpenApi version) {
  json properties = json::object(), required = json::array();
  for (const ApiField& field : type.fields) {
    json schema = Described(TypeSchema(field.type, version), ApiDescription(type.name, field.name), version);
    AddPatchStrategy(type.name, field, &schema);
    properties[std::string(field.name)] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  if (!kinds.empty()) {
    for (const char* field : {"apiVersion", "kind"})
      properties[field] =
          Described(TypeSchema({.shape = FieldShape::kString}, version), ApiDescription(type.name, field), version);
  }
  json out = Described({{"type", "object"}}, ApiDescription(type.name), version);
  if (!properties.empty()) out["properties"] = std::move(properties);
  if (!required.empty()) out["required"] = std::move(required);
  if (!kinds.empty()) out["x-kubernetes-group-version-kind"] = kinds;
  return out;
}

// --- definitions of custom resources

// What of a definition's schema version 2 of OpenAPI can say, as kube-apiserver cuts it down (apiextensions-apiserver:
// pkg/controller/openapi/builder, ToStructuralOpenAPIV2): kubectl would refuse what it cannot tell.
json CutDown(const json& schema) {
  json out = json::object();
  const std::string description = Text(schema, "description");
  if (!description.empty()) out["description"] = description;
  if (At(schema, "x-kubernetes-preserve-unknown-fields") == true || At(schema, "x-kubernetes-int-or-string") == true ||
      At(schema, "nullable") == true) {
    return out;
  }
  for (const char* key : {"type", "format"}) {
    if (const std::string text = Text(schema, key); !text.empty()) out[key] = text;
  }
  if (At(schema, "required").is_array()) out["required"] = At(schema, "required");
  if (const json& items = At(schema, "items"); items.is_object()) out["items"] = CutDown(items);
  if (const json& more = At(schema, "additionalProperties"); more.is_object())
    out["additionalProperties"] = CutDown(more);
  if (const json& properties = At(schema, "properties"); properties.is_object()) {
    out["properties"] = json::object();
    for (const auto& [name, property] : properties.items()) out["properties"][name] = CutDown(property);
  }
  return out;
}

// What of a definition's schema version 3 says: all but an additionalProperties that is no schema, which kubectl's
// templates cannot read and kube-apiserver leaves out (x-kubernetes-preserve-unknown-fields says the same).
json Told(const json& schema) {
  if (!schema.is_structured()) return schema;
  json out = schema;
  if (out.is_object() && At(out, "additionalProperties").is_boolean()) out.erase("additionalProperties");
  for (json& inner : out) inner = Told(inner);
  return out;
}

// "io.example.library.v1.Shelf": the group the other way round.
std::string CustomName(const Resource& resource) {
  std::vector<std::string> parts = absl::StrSplit(resource.group, '.');
  std::string out;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) out += *part + ".";
  return out + resource.version + "." + resource.kind;
}

json CustomDefinition(const Resource& resource, OpenApi version) {
  json out = json::object();
  if (resource.schema != nullptr) out = version == OpenApi::kV2 ? CutDown(*resource.schema) : Told(*resource.schema);
  if (out.contains("properties") && out["properties"].is_object()) {
    for (const char* field : {"apiVersion", "kind"})
      out["properties"][field] =
          Described(TypeSchema({.shape = FieldShape::kString}, version), ApiDescription("", field), version);
    out["properties"]["metadata"] =
        Described(Ref(version, DefinitionName("ObjectMeta")), ApiDescription("", "metadata"), version);
  }
  out["x-kubernetes-group-version-kind"] = json::array({GroupVersionKind(resource)});
  return out;
}

}  // namespace

json GroupVersionKind(const Resource& resource) {
  return {{"group", resource.group}, {"kind", resource.kind}, {"version", resource.version}};
}

json OpenApiDefinitions(const ResourceTable& table, OpenApi version) {
  std::map<std::string_view, std::vector<json>> kinds;
  json out = json::object();
  table.ForEach([&](const Resource& resource) {
    if (resource.custom) out[CustomName(resource)] = CustomDefinition(resource, version);
    if (const ApiType* type = ApiTypeOf(resource); type != nullptr)
      kinds[type->name].push_back(GroupVersionKind(resource));
  });
  ForEachApiType(
      [&](const ApiType& type) { out[DefinitionName(type.name)] = Definition(type, kinds[type.name], version); });
  if (version == OpenApi::kV3) {
    out[std::string(kIntOrString)] = {{"description", "A number, or a text."},
                                      {"format", "int-or-string"},
                                      {"oneOf", {{{"type", "integer"}}, {{"type", "string"}}}}};
  }
  return out;
}

}  // namespace wavetank::fakekube::http
