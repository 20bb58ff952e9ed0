#include "fakes/kube/http/openapi.h"

#include <string>

#include "fakes/kube/http/discovery.h"
#include "fakes/kube/http/status.h"

namespace wavetank::fakekube::http {
namespace {

// The protobuf wire format, as far as a document of text and messages needs it.
void Field(std::string* out, int number, std::string_view bytes) {
  const auto varint = [&](uint64_t value) {
    for (; value >= 0x80; value >>= 7) *out += static_cast<char>(value | 0x80);
    *out += static_cast<char>(value);
  };
  varint(static_cast<uint64_t>(number) << 3 | 2);
  varint(bytes.size());
  out->append(bytes);
}

std::string Message(int number, std::string_view bytes) {
  std::string out;
  Field(&out, number, bytes);
  return out;
}

// A resource's PATCH, which takes dryRun: by this kubectl tells whether it may ask for dry runs (kubectl:
// pkg/util/openapi/dryrun.go). gnostic's OpenAPIv2.proto: NamedPathItem {name = 1, value = 2: PathItem {patch = 8:
// Operation {parameters = 8: ParametersItem {parameter = 1: Parameter {non_body_parameter = 2: NonBodyParameter
// {query_parameter_sub_schema = 3: {in = 2, name = 4}}}}, vendor_extension = 13: NamedAny {name = 1, value = 2: Any
// {yaml = 2}}}}}.
std::string PatchPath(const Resource& resource) {
  std::string query;
  Field(&query, 2, "query");
  Field(&query, 4, "dryRun");
  std::string extension;
  Field(&extension, 1, "x-kubernetes-group-version-kind");
  Field(&extension, 2,
        Message(2,
                "group: \"" + resource.group + "\"\nkind: " + resource.kind + "\nversion: " + resource.version + "\n"));
  std::string operation;
  Field(&operation, 8, Message(1, Message(2, Message(3, query))));
  Field(&operation, 13, extension);
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version + (resource.namespaced ? "/namespaces/{namespace}/" : "/") + resource.plural + "/{name}";
  std::string named;
  Field(&named, 1, path);
  Field(&named, 2, Message(8, operation));
  return named;
}

}  // namespace

Response OpenApiV2(const ResourceTable& table, std::string_view accept) {
  Response response;
  if (accept.find("protobuf") == std::string_view::npos) {
    return JsonResponse(200, {{"swagger", "2.0"},
                              {"info", {{"title", "Kubernetes"}, {"version", kGitVersion}}},
                              {"paths", nlohmann::json::object()},
                              {"definitions", nlohmann::json::object()}});
  }
  response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  // Document {swagger = 1, info = 2 {title = 1, version = 2}, paths = 8 {path = 2}}.
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
  return response;
}

}  // namespace wavetank::fakekube::http
