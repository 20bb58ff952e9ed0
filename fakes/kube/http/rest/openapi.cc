#include "fakes/kube/http/rest/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fakes/kube/http/api/openapi_definitions.h"
#include "fakes/kube/http/message/status.h"
#include "fakes/kube/http/rest/discovery.h"

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
  Field(&out, 2, MessageField(2, JsonText(value) + "\n"));
  return out;
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

// --- version 3

std::string ApiRoot(const Resource& resource) {
  return (resource.group.empty() ? "api/" : "apis/" + resource.group + "/") + resource.version;
}

// Everything that `value` refers to, and what that refers to.
void Reach(const json& value, const json& all, json* reached) {
  if (value.is_array()) {
    for (const json& item : value) Reach(item, all, reached);
    return;
  }
  if (!value.is_object()) return;
  if (const std::string ref = Text(value, "$ref"); !ref.empty()) {
    const std::string name = ref.substr(ref.rfind('/') + 1);
    const auto it = all.find(name);
    if (it != all.end() && !reached->contains(name)) Reach((*reached)[name] = *it, all, reached);
  }
  for (const auto& [key, item] : value.items()) Reach(item, all, reached);
}

json QueryParameters(std::initializer_list<std::string_view> names) {
  json out = json::array();
  for (const std::string_view name : names) {
    const bool number = name == "limit" || name == "timeoutSeconds";
    const bool yes_no =
        name == "watch" || name == "force" || name == "allowWatchBookmarks" || name == "sendInitialEvents";
    out.push_back({{"name", name},
                   {"in", "query"},
                   {"schema",
                    {{"type", number   ? "integer"
                              : yes_no ? "boolean"
                                       : "string"},
                     {"uniqueItems", true}}}});
  }
  return out;
}

json PathParameters(const Resource& resource, bool in_namespace, bool one) {
  json out = json::array();
  const auto add = [&](const char* name) {
    out.push_back({{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  };
  if (resource.namespaced && in_namespace) add("namespace");
  if (one) add("name");
  return out;
}

// What can be done at a resource's path. kubectl looks for the kind of what is listed there, and for the parameters of
// PATCH (k8s.io/kubectl: pkg/explain/v2; cli-runtime: pkg/resource/query_param_verifier_v3.go).
json PathItem(const Resource& resource, const json& schema, bool in_namespace, bool one) {
  json out = {{"parameters", PathParameters(resource, in_namespace, one)}};
  const auto operation = [&](const char* action, json parameters, bool answers_one) {
    json made = {{"x-kubernetes-action", action},
                 {"x-kubernetes-group-version-kind", GroupVersionKind(resource)},
                 {"responses", {{"200", {{"description", "OK"}}}}}};
    if (!parameters.empty()) made["parameters"] = std::move(parameters);
    if (answers_one && !schema.is_null())
      made["responses"]["200"]["content"] = {{"application/json", {{"schema", schema}}}};
    return made;
  };
  const auto with_body = [&](json made) {
    made["requestBody"] = {{"required", true},
                           {"content", {{"*/*", {{"schema", schema.is_null() ? json::object() : schema}}}}}};
    return made;
  };
  const bool writes = !resource.event_view;
  if (one) {
    out["get"] = operation("get", json::array(), true);
    if (writes) {
      out["put"] = with_body(operation("put", QueryParameters({"dryRun", "fieldManager", "fieldValidation"}), true));
      json patch = operation("patch", QueryParameters({"dryRun", "fieldManager", "fieldValidation", "force"}), true);
      json content = json::object();
      for (const char* type : {"application/apply-patch+yaml", "application/json-patch+json",
                               "application/merge-patch+json", "application/strategic-merge-patch+json"}) {
        if (!resource.custom || !std::string_view(type).starts_with("application/strategic"))
          content[type] = {{"schema", json::object()}};
      }
      patch["requestBody"] = {{"required", true}, {"content", std::move(content)}};
      out["patch"] = std::move(patch);
    }
    out["delete"] = operation("delete", QueryParameters({"dryRun", "propagationPolicy"}), false);
    return out;
  }
  if (!resource.review_only) {
    out["get"] = operation(
        "list",
        QueryParameters({"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit",
                         "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"}),
        false);
  }
  if (in_namespace) {
    out["post"] = with_body(operation("post", QueryParameters({"dryRun", "fieldManager", "fieldValidation"}), true));
    if (!resource.review_only)
      out["delete"] =
          operation("deletecollection", QueryParameters({"dryRun", "fieldSelector", "labelSelector"}), false);
  }
  return out;
}

json GroupVersionDocument(const ResourceTable& table, const KubernetesRelease& release,
                          const std::vector<const Resource*>& resources) {
  const json all = OpenApiDefinitions(table, OpenApi::kV3);
  json paths = json::object(), schemas = json::object();
  for (const Resource* resource : resources) {
    const json kind = GroupVersionKind(*resource);
    json schema;
    for (const auto& [name, definition] : all.items()) {
      const json& kinds = At(definition, "x-kubernetes-group-version-kind");
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
      schema = {{"$ref", "#/components/schemas/" + name}};
      schemas[name] = definition;
      Reach(definition, all, &schemas);
    }
    const std::string root = "/" + ApiRoot(*resource) + "/";
    const std::string within = root + (resource->namespaced ? "namespaces/{namespace}/" : "") + resource->plural;
    if (within != root + resource->plural && !resource->review_only)
      paths[root + resource->plural] = PathItem(*resource, schema, false, false);
    paths[within] = PathItem(*resource, schema, true, false);
    if (!resource->review_only) paths[within + "/{name}"] = PathItem(*resource, schema, true, true);
  }
  return {{"openapi", "3.0.0"},
          {"info", {{"title", "Kubernetes"}, {"version", release.git_version()}}},
          {"paths", std::move(paths)},
          {"components", {{"schemas", std::move(schemas)}}}};
}

}  // namespace

Response OpenApiV2(const ResourceTable& table, const KubernetesRelease& release, std::string_view accept) {
  const json definitions = OpenApiDefinitions(table, OpenApi::kV2);
  Response response;
  if (accept.find("protobuf") == std::string_view::npos) {
    return JsonResponse(200, {{"swagger", "2.0"},
                              {"info", {{"title", "Kubernetes"}, {"version", release.git_version()}}},
                              {"paths", json::object()},
                              {"definitions", definitions}});
  }
  response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  // Document {swagger = 1, info = 2 {title = 1, version = 2}, paths = 8 {path = 2}, definitions = 9
  // {additional_properties = 1: NamedSchema}}.
  std::string info;
  Field(&info, 1, "Kubernetes");
  Field(&info, 2, release.git_version());
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

std::optional<Response> OpenApiV3(const ResourceTable& table, const KubernetesRelease& release, std::string_view path,
                                  std::string_view accept) {
  constexpr std::string_view kRoot = "/openapi/v3";
  if (!path.starts_with(kRoot)) return std::nullopt;
  path.remove_prefix(kRoot.size());
  json roots = json::object();
  std::vector<const Resource*> resources;
  table.ForEach([&](const Resource& resource) {
    const std::string root = ApiRoot(resource);
    roots[root] = {{"serverRelativeURL", fmt::format("{}/{}", kRoot, root)}};
    if (path == "/" + root) resources.push_back(&resource);
  });
  if (!path.empty() && resources.empty()) return std::nullopt;
  if (!accept.empty() && accept.find("json") == std::string_view::npos && accept.find('*') == std::string_view::npos) {
    return Failure(406, "NotAcceptable", "only the following media types are accepted: application/json");
  }
  if (path.empty()) return JsonResponse(200, {{"paths", std::move(roots)}});
  return JsonResponse(200, GroupVersionDocument(table, release, resources));
}

}  // namespace wavetank::fakekube::http
