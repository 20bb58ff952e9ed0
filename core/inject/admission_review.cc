// The API server's side of admission.
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "core/base/containers/memo.h"
#include "core/base/json_text.h"
#include "core/inject/injection_webhook.h"
#include "core/inject/json_access.h"
#include "fmt/format.h"

namespace wavetank::pilot {

using nlohmann::json;

namespace {

// Replicas get one and the same patch: the last ones are not read again.
absl::StatusOr<std::shared_ptr<const json>> ReadPatch(const std::string& encoded) {
  thread_local Memo<std::shared_ptr<const json>> read(16);
  if (const auto* known = read.Find(encoded); known != nullptr) return *known;
  std::string text;
  if (!absl::Base64Unescape(encoded, &text)) return absl::InternalError("the webhook's patch is no base64");
  json patch = ParseJson(text);
  if (patch.is_discarded()) return absl::InternalError("the webhook's patch is no JSON");
  auto out = std::make_shared<const json>(std::move(patch));
  read.Keep(encoded, out);
  return out;
}

// RFC 6902. Throws json::exception. What webhooks mostly do is to add members and elements: those are copied once, by
// the library twice.
void Execute(const json& operation, json& target) {
  if (operation.at("op") == "add") {
    const json::json_pointer path(operation.at("path").get_ref<const std::string&>());
    json* const parent = path.empty() ? nullptr : &target.at(path.parent_pointer());
    if (parent != nullptr && parent->is_object()) {
      (*parent)[path.back()] = operation.at("value");
      return;
    }
    if (parent != nullptr && parent->is_array() &&
        (path.back() == "-" || path.back() == std::to_string(parent->size()))) {
      parent->push_back(operation.at("value"));
      return;
    }
  }
  target.patch_inplace(json::array({operation}));
}

}  // namespace

json MakeAdmissionReview(json pod, std::string_view uid) {
  const json& metadata = At(pod, "metadata");
  json request = {{"uid", uid},
                  {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
                  {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
                  {"name", Text(metadata, "name")},
                  {"namespace", Text(metadata, "namespace")},
                  {"operation", "CREATE"},
                  {"dryRun", false}};
  request["object"] = std::move(pod);
  return {{"kind", "AdmissionReview"}, {"apiVersion", "admission.k8s.io/v1"}, {"request", std::move(request)}};
}

absl::StatusOr<json> ApplyAdmissionResponse(json pod, const json& review) {
  const json& response = At(review, "response");
  if (!At(response, "allowed").is_boolean()) return absl::InternalError("the webhook's answer says neither yes nor no");
  if (response["allowed"] == false) {
    const std::string why = Text(At(response, "status"), "message");
    return absl::PermissionDeniedError(
        fmt::format("admission webhook denied the request: {}", why.empty() ? "no reason given" : why));
  }
  const std::string encoded = Text(response, "patch");
  if (encoded.empty()) return pod;
  const absl::StatusOr<std::shared_ptr<const json>> patch = ReadPatch(encoded);
  if (!patch.ok()) return patch.status();
  try {
    if (!(*patch)->is_array()) pod.patch_inplace(**patch);  // which says what is wrong
    for (const json& operation : **patch) Execute(operation, pod);
    return pod;
  } catch (const json::exception& e) {
    return absl::InternalError(fmt::format("the webhook's patch does not fit the pod: {}", e.what()));
  }
}

}  // namespace wavetank::pilot
