// Names of images as a kubelet reads them before it asks any registry (kubernetes: pkg/kubelet/images/image_manager.go,
// applyDefaultImageTag; github.com/docker/distribution, reference). Of what registries have only Istio's own images are
// known (core/profile/published_images.h).
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::sim {

// Why the text names no image, in that library's words; empty: it does.
std::string ImageReferenceError(std::string_view image);

// Of the pod's first container whose image's name is none, what its kubelet says; empty: all are names.
std::string InvalidImage(const nlohmann::json& pod_spec);

// Of the pod's first container whose image no registry has (Istio's that were never published, and what is not
// injected), what its kubelet says; empty: all may be there.
std::string UnpublishedImage(const nlohmann::json& pod_spec);

}  // namespace wavetank::sim
