#include "fakes/kube/http/patching.h"

#include <string>

namespace wavetank::fakekube::http {

using nlohmann::json;

absl::StatusOr<json> Patched(const Resource& resource, std::string_view content_type, const json& current,
                             const json& patch) {
  const std::string_view type = content_type.substr(0, content_type.find(';'));
  json out = current;
  if (type == "application/json-patch+json") {
    if (!patch.is_array()) return absl::InvalidArgumentError("a JSON patch is a list of operations");
    try {
      return out.patch(patch);
    } catch (const json::exception&) {
      return absl::InvalidArgumentError("the server rejected our request due to an error in our request");
    }
  }
  if (!patch.is_object()) return absl::InvalidArgumentError("a patch must be an object");
  if (type == "application/merge-patch+json" || type == "application/apply-patch+yaml" ||
      (type == "application/strategic-merge-patch+json" && !resource.custom)) {
    out.merge_patch(patch);
    return out;
  }
  return absl::UnimplementedError(
      "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
      "application/merge-patch+json, application/apply-patch+yaml");
}

}  // namespace wavetank::fakekube::http
