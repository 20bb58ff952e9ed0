// Objects in Kubernetes' protobuf encoding: "k8s\0" and a runtime.Unknown message around the object's own. kubectl from
// 1.32 on sends its typed requests so (`create namespace`, `auth can-i`, `create token`); it reads JSON answers.
//
// Fault model: the bytes are from anybody. What is torn or nested too deep is refused.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "fakes/kube/http/api/api_types.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

bool IsProtobufBody(std::string_view body);

// The object that `body` holds, as JSON would have it: what is zero is left out where JSON leaves it out, too. Fields
// that the type does not have are passed over, as kube-apiserver does. `type_of`: what a kind looks like, null if that
// is not known. InvalidArgument with the reason, which shows nothing of the body. O(body).
absl::StatusOr<nlohmann::json> DecodeProtobufBody(
    std::string_view body,
    const std::function<const ApiType*(std::string_view api_version, std::string_view kind)>& type_of);

}  // namespace wavetank::fakekube::http
