#include "fakes/kube/http/openapi.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/json_access.h"
#include "core/kube/list_types.h"
#include "fakes/kube/http/api_descriptions.h"
#include "fakes/kube/http/api_types.h"
#include "fakes/kube/http/discovery.h"
#include "fakes/kube/http/status.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

// --- the protobuf wire format, as far as a document of text and messages needs it

void Varint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
  *out += static_cast<char>(value);
}

void Field(std::string* out, int number, std::string_view bytes) {
  Varint(out, static_cast<uint64_t>(number) << 3 | 2);
  Varint(out, bytes.size());
  out->append(bytes);
}

std::string MessageField(int number, std::string_view bytes) {
  std::string out;
  Field(&out, number, bytes);
  return out;
}

// NamedAny {name = 1, value = 2: Any {yaml = 2}}; JSON is YAML.
std::string Extension(std::string_view name, const json& value) {
  std::string out;
  Field(&out, 1, name);
  Field(&out, 2, MessageField(2, value.dump() + "\n"));
  return out;
}

json GroupVersionKind(const Resource& resource) {
  return {{"group", resource.group}, {"kind", resource.kind}, {"version", resource.version}};
}

// A resource's PATCH, which takes dryRun: by this kubectl tells whether it may ask for dry runs (kubectl:
// pkg/util/openapi/dryrun.go). gnostic's OpenAPIv2.proto: NamedPathItem {name = 1, value = 2: PathItem {patch = 8:
// Operation {parameters = 8: ParametersItem {parameter = 1: Parameter {non_body_parameter = 2: NonBodyParameter
// {query_parameter_sub_schema = 3: {in = 2, name = 4}}}}, vendor_extension = 13: NamedAny}}}.
std::string PatchPath(const Resource& resource) {
  std::string query;
  Field(&query, 2, "query");
  Field(&query, 4, "dryRun");
  std::string operation;
  Field(&operation, 8, MessageField(1, MessageField(2, MessageField(3, query))));
  Field(&operation, 13, Extension("x-kubernetes-group-version-kind", GroupVersionKind(resource)));
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version + (resource.namespaced ? "/namespaces/{namespace}/" : "/") + resource.plural + "/{name}";
  std::string named;
  Field(&named, 1, path);
  Field(&named, 2, MessageField(8, operation));
  return named;
}

// gnostic's Schema {_ref = 1, format = 2, description = 4, required = 19, additional_properties = 21: {schema = 1},
// type = 22: {value = 1}, items = 23: {schema = 1}, properties = 25: {additional_properties = 1: NamedSchema {name = 1,
// value = 2}}, vendor_extension = 31}.
std::string SchemaMessage(const json& schema) {
  std::string out;
  if (const std::string ref = Text(schema, "$ref"); !ref.empty()) Field(&out, 1, ref);
  if (const std::string format = Text(schema, "format"); !format.empty()) Field(&out, 2, format);
  if (const std::string text = Text(schema, "description"); !text.empty()) Field(&out, 4, text);
  for (const json& name : Items(At(schema, "required"))) Field(&out, 19, TextOf(name));
  if (const json& more = At(schema, "additionalProperties"); more.is_object())
    Field(&out, 21, MessageField(1, SchemaMessage(more)));
  if (const std::string type = Text(schema, "type"); !type.empty()) Field(&out, 22, MessageField(1, type));
  if (const json& items = At(schema, "items"); items.is_object())
    Field(&out, 23, MessageField(1, SchemaMessage(items)));
  if (const json& properties = At(schema, "properties"); properties.is_object() && !properties.empty()) {
    std::string all;
    for (const auto& [name, property] : properties.items()) {
      std::string named;
      Field(&named, 1, name);
      Field(&named, 2, SchemaMessage(property));
      Field(&all, 1, named);
    }
    Field(&out, 25, all);
  }
  if (schema.is_object()) {
    for (const auto& [name, value] : schema.items()) {
      if (name.starts_with("x-kubernetes-")) Field(&out, 31, Extension(name, value));
    }
  }
  return out;
}

// --- definitions of Kubernetes' own types

// Where a type lives that is not in core/v1, by how its name begins; "$": that is all of it.
constexpr std::pair<std::string_view, std::string_view> kPackages[] = {
    {"APIService", "kube-aggregator.pkg.apis.apiregistration.v1"},
    {"AggregationRule", "api.rbac.v1"},
    {"CertificateSigningRequest", "api.certificates.v1"},
    {"ClusterRole", "api.rbac.v1"},
    {"Condition$", "apimachinery.pkg.apis.meta.v1"},
    {"ControllerRevision", "api.apps.v1"},
    {"CronJob", "api.batch.v1"},
    {"DaemonSet", "api.apps.v1"},
    {"Deployment", "api.apps.v1"},
    {"EndpointConditions", "api.discovery.v1"},
    {"EndpointHints", "api.discovery.v1"},
    {"EndpointSlice", "api.discovery.v1"},
    {"Endpoint$", "api.discovery.v1"},
    {"ForNode", "api.discovery.v1"},
    {"ForZone", "api.discovery.v1"},
    {"HTTPIngress", "api.networking.v1"},
    {"IPBlock", "api.networking.v1"},
    {"Ingress", "api.networking.v1"},
    {"Job", "api.batch.v1"},
    {"LabelSelector", "apimachinery.pkg.apis.meta.v1"},
    {"Lease", "api.coordination.v1"},
    {"ManagedFieldsEntry", "apimachinery.pkg.apis.meta.v1"},
    {"MutatingWebhook", "api.admissionregistration.v1"},
    {"NetworkPolicy", "api.networking.v1"},
    {"ObjectMeta", "apimachinery.pkg.apis.meta.v1"},
    {"OwnerReference", "apimachinery.pkg.apis.meta.v1"},
    {"PodDisruptionBudget", "api.policy.v1"},
    {"PodFailurePolicy", "api.batch.v1"},
    {"PolicyRule", "api.rbac.v1"},
    {"PriorityClass", "api.scheduling.v1"},
    {"ReplicaSet", "api.apps.v1"},
    {"Role", "api.rbac.v1"},
    {"RollingUpdate", "api.apps.v1"},
    {"StatefulSet", "api.apps.v1"},
    {"StorageClass", "api.storage.v1"},
    {"Subject$", "api.rbac.v1"},
    {"ValidatingWebhook", "api.admissionregistration.v1"},
    {"VolumeAttachment", "api.storage.v1"},
};

// "io.k8s.api.core.v1.PodSpec": kubectl shows it in its refusals. Names that the table had to tell apart keep what they
// begin with.
std::string DefinitionName(std::string_view type) {
  std::string_view package = "api.core.v1";
  for (const auto& [begin, of] : kPackages) {
    if (begin.ends_with('$') ? type == begin.substr(0, begin.size() - 1) : type.starts_with(begin)) package = of;
  }
  return "io.k8s." + std::string(package) + "." + std::string(type);
}

json TypeSchema(std::string_view type) {
  switch (type.front()) {
    case '[':
      return {{"type", "array"}, {"items", TypeSchema(type.substr(1))}};
    case '{':
      return {{"type", "object"}, {"additionalProperties", TypeSchema(type.substr(1))}};
    case 's':
      return {{"type", "string"}};
    case 'i':
      return {{"type", "integer"}, {"format", "int64"}};
    case 'f':
      return {{"type", "number"}, {"format", "double"}};
    case 'b':
      return {{"type", "boolean"}};
    case 't':
      return {{"type", "string"}, {"format", "date-time"}};
    case 'y':
      return {{"type", "string"}, {"format", "byte"}};
    case 'x':
      return {{"type", "string"}, {"format", "int-or-string"}};
    case 'o':
      return {{"type", "object"}};
    default:
      return {{"$ref", "#/definitions/" + DefinitionName(type)}};
  }
}

// How kubectl merges a field, as the store does (core/kube/list_types.h): these two must agree.
void AddPatchStrategy(std::string_view type, const ApiField& field, json* schema) {
  // Who changes these replaces what another choice had brought along.
  if (type == "DeploymentSpec" && field.name == "strategy") (*schema)["x-kubernetes-patch-strategy"] = "retainKeys";
  if (field.type.front() != '[') return;
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

json Definition(const ApiType& type, const std::vector<json>& kinds) {
  json properties = json::object(), required = json::array();
  const auto describe = [](json schema, std::string_view text) {
    if (!text.empty()) schema["description"] = text;
    return schema;
  };
  for (const ApiField& field : type.fields) {
    json schema = describe(TypeSchema(field.type), ApiDescription(type.name, field.name));
    AddPatchStrategy(type.name, field, &schema);
    properties[std::string(field.name)] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  if (!kinds.empty()) {
    for (const char* field : {"apiVersion", "kind"})
      properties[field] = describe(TypeSchema("s"), ApiDescription(type.name, field));
  }
  json out = describe({{"type", "object"}}, ApiDescription(type.name));
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

json CustomDefinition(const Resource& resource) {
  json out = resource.schema == nullptr ? json::object() : CutDown(*resource.schema);
  if (out.contains("properties")) {
    for (const char* field : {"apiVersion", "kind"}) {
      out["properties"][field] = TypeSchema("s");
      out["properties"][field]["description"] = ApiDescription("", field);
    }
    out["properties"]["metadata"] = TypeSchema("ObjectMeta");
    out["properties"]["metadata"]["description"] = ApiDescription("", "metadata");
  }
  out["x-kubernetes-group-version-kind"] = json::array({GroupVersionKind(resource)});
  return out;
}

// "io.istio.networking.v1beta1.VirtualService"
std::string CustomName(const Resource& resource) {
  std::vector<std::string> parts = absl::StrSplit(resource.group, '.');
  std::string out;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) out += *part + ".";
  return out + resource.version + "." + resource.kind;
}

json Definitions(const ResourceTable& table) {
  std::map<std::string_view, std::vector<json>> kinds;
  json out = json::object();
  table.ForEach([&](const Resource& resource) {
    if (resource.custom) out[CustomName(resource)] = CustomDefinition(resource);
    if (const ApiType* type = ApiTypeOf(resource); type != nullptr)
      kinds[type->name].push_back(GroupVersionKind(resource));
  });
  ForEachApiType([&](const ApiType& type) { out[DefinitionName(type.name)] = Definition(type, kinds[type.name]); });
  return out;
}

}  // namespace

Response OpenApiV2(const ResourceTable& table, std::string_view accept) {
  const json definitions = Definitions(table);
  Response response;
  if (accept.find("protobuf") == std::string_view::npos) {
    return JsonResponse(200, {{"swagger", "2.0"},
                              {"info", {{"title", "Kubernetes"}, {"version", kGitVersion}}},
                              {"paths", json::object()},
                              {"definitions", definitions}});
  }
  response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  // Document {swagger = 1, info = 2 {title = 1, version = 2}, paths = 8 {path = 2}, definitions = 9
  // {additional_properties = 1: NamedSchema}}.
  std::string info;
  Field(&info, 1, "Kubernetes");
  Field(&info, 2, kGitVersion);
  Field(&response.body, 1, "2.0");
  Field(&response.body, 2, info);
  std::string paths;
  table.ForEach([&](const Resource& resource) {
    if (!resource.review_only) Field(&paths, 2, PatchPath(resource));
  });
  Field(&response.body, 8, paths);
  std::string all;
  for (const auto& [name, definition] : definitions.items()) {
    std::string named;
    Field(&named, 1, name);
    Field(&named, 2, SchemaMessage(definition));
    Field(&all, 1, named);
  }
  Field(&response.body, 9, all);
  return response;
}

}  // namespace wavetank::fakekube::http
