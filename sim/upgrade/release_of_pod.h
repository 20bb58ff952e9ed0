// Which release of Istio runs in a pod. A world has one profile; an istiod that an upgrade installed says another, and
// each proxy is of the release that its image's tag names.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/kube/object.h"
#include "core/profile/profile.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

// Of an istiod's pod: the profile that it runs, since a tag names a release and no single change of one.
inline constexpr char kProfileAnnotation[] = "wavetank/profile";

// `otherwise`: the profile of an istiod that names none. InvalidArgument: it names one that there is not.
absl::StatusOr<pilot::Profile> ProfileOfIstiod(const kube::Object& pod, const pilot::Profile& otherwise);

// "docker.io/istio/proxyv2:1.30.3-distroless" of "docker.io/istio/proxyv2:1.18.2-distroless": a tag that is a version
// is another; one that is none ("latest"), a digest, an image without tag are replaced by the version.
std::string ImageOfRelease(std::string_view image, std::string_view release);
// The same of a tag alone.
std::string TagOfRelease(std::string_view tag, std::string_view release);

// A pod's or template's istiod becomes `profile`'s: the image of its container `discovery` (or first), the annotation.
void GiveIstiodRelease(const pilot::Profile& profile, nlohmann::json* pod);
// A pod's proxies become that release's: containers and initContainers named istio-proxy, istio-init, istio-validation.
void GiveProxyRelease(std::string_view release, nlohmann::json* pod);

}  // namespace wavetank::sim
