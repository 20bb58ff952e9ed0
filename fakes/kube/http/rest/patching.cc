#include "fakes/kube/http/rest/patching.h"

#include <fmt/format.h>

#include <optional>

#include "fakes/kube/merge/patch.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

absl::StatusOr<json> Patched(const Resource& resource, std::string_view content_type, const json& current,
                             const json& patch) {
  const std::string_view name = content_type.substr(0, content_type.find(';'));
  std::optional<PatchType> type;
  if (name == "application/json-patch+json") type = PatchType::kJson;
  if (name == "application/merge-patch+json") type = PatchType::kMerge;
  if (name == "application/strategic-merge-patch+json") type = PatchType::kStrategic;
  if (!type) {
    return absl::UnimplementedError(
        fmt::format("the body of the request was in an unknown format - accepted media types include: "
                    "application/json-patch+json, application/merge-patch+json, {}application/apply-patch+yaml",
                    resource.custom ? "" : "application/strategic-merge-patch+json, "));
  }
  json out = current;
  if (absl::Status status = ApplyPatch(*type, {resource.kind, resource.group}, out, patch); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::fakekube::http
