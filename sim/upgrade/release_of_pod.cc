#include "sim/upgrade/release_of_pod.h"

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr std::string_view kProxyContainers[] = {"istio-proxy", "istio-init", "istio-validation"};

bool IsVersion(std::string_view tag) {
  return !tag.empty() && tag.front() >= '0' && tag.front() <= '9' && tag.find('.') != std::string_view::npos;
}

void SetImage(std::string_view release, json* container) {
  if (const std::string image = Text(*container, "image"); !image.empty() && image != "auto") {
    (*container)["image"] = ImageOfRelease(image, release);
  }
}

json* ContainersOf(const char* list, json* pod) {
  if (!pod->is_object() || !At(*pod, {"spec", list}).is_array()) return nullptr;
  return &(*pod)["spec"][list];
}

}  // namespace

absl::StatusOr<pilot::Profile> ProfileOfIstiod(const kube::Object& pod, const pilot::Profile& otherwise) {
  const auto said = pod.meta.annotations.find(kProfileAnnotation);
  if (said == pod.meta.annotations.end()) return otherwise;
  absl::StatusOr<pilot::Profile> profile = pilot::ParseProfile(said->second);
  if (profile.ok()) return profile;
  return absl::InvalidArgumentError(fmt::format("annotation {}: {}", kProfileAnnotation, Message(profile.status())));
}

std::string TagOfRelease(std::string_view tag, std::string_view release) {
  // "1.18.2-distroless" keeps its variant, "1.18-alpha.abc" is another version as a whole.
  const size_t dash = tag.find('-');
  const std::string_view variant = dash == std::string_view::npos ? "" : tag.substr(dash);
  const bool keeps = IsVersion(tag) && (variant == "-distroless" || variant == "-debug");
  return fmt::format("{}{}", release, keeps ? variant : "");
}

std::string ImageOfRelease(std::string_view image, std::string_view release) {
  if (const size_t digest = image.find('@'); digest != std::string_view::npos) image = image.substr(0, digest);
  const size_t colon = image.rfind(':'), slash = image.rfind('/');
  const bool tagged = colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return fmt::format("{}:{}", tagged ? image.substr(0, colon) : image,
                     TagOfRelease(tagged ? image.substr(colon + 1) : "", release));
}

void GiveIstiodRelease(const pilot::Profile& profile, json* pod) {
  json* const containers = ContainersOf("containers", pod);
  if (containers == nullptr || containers->empty()) return;
  json* istiod = &containers->front();
  for (json& container : *containers) {
    if (Text(container, "name") == "discovery") istiod = &container;
  }
  SetImage(profile.istio, istiod);
  (*pod)["metadata"]["annotations"][kProfileAnnotation] = profile.Name();
}

void GiveProxyRelease(std::string_view release, json* pod) {
  for (const char* list : {"containers", "initContainers"}) {
    json* const containers = ContainersOf(list, pod);
    if (containers == nullptr) continue;
    for (json& container : *containers) {
      for (const std::string_view name : kProxyContainers) {
        if (Text(container, "name") == name) SetImage(release, &container);
      }
    }
  }
}

}  // namespace wavetank::sim
