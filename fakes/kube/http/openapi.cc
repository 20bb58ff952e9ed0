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

}  // namespace

Response OpenApiV2(const ResourceTable&, std::string_view accept) {
  Response response;
  if (accept.find("protobuf") == std::string_view::npos) {
    return JsonResponse(200, {{"swagger", "2.0"},
                              {"info", {{"title", "Kubernetes"}, {"version", kGitVersion}}},
                              {"paths", nlohmann::json::object()},
                              {"definitions", nlohmann::json::object()}});
  }
  response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
  // gnostic's OpenAPIv2.proto: Document {swagger = 1, info = 2 {title = 1, version = 2}, paths = 8}.
  std::string info;
  Field(&info, 1, "Kubernetes");
  Field(&info, 2, kGitVersion);
  Field(&response.body, 1, "2.0");
  Field(&response.body, 2, info);
  Field(&response.body, 8, "");
  return response;
}

}  // namespace wavetank::fakekube::http
