// HorizontalPodAutoscalers in autoscaling/v1 and autoscaling/v2 (kubernetes: pkg/apis/autoscaling/v1/conversion.go).
// What version 1 cannot say stands in its annotations autoscaling.alpha.kubernetes.io/{metrics,behavior}.
#pragma once

#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

// `object` in place, if it is of the other version. Both keep the rest as it is.
void ToAutoscalingV1(nlohmann::json& object);
void ToAutoscalingV2(nlohmann::json& object);

}  // namespace wavetank::fakekube
