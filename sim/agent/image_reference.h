// Names of images as a kubelet reads them before it asks any registry (kubernetes: pkg/kubelet/images/image_manager.go,
// applyDefaultImageTag; github.com/docker/distribution, reference). What registries have is not known here.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::sim {

// Why the text names no image, in that library's words; empty: it does.
std::string ImageReferenceError(std::string_view image);

// Of the pod's first container whose image's name is none, what its kubelet says; empty: all are names.
std::string InvalidImage(const nlohmann::json& pod_spec);

}  // namespace wavetank::sim
