// What rules of several kinds share: errors of fields, and the checks that occur again and again (apimachinery:
// pkg/util/validation; kubernetes: pkg/apis/core/validation).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/kube/objects/api_error.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

using FieldErrors = std::vector<FieldError>;

// A number that is there must not be below zero.
void CheckNotNegative(const nlohmann::json& in, const char* name, const std::string& at, FieldErrors* errors);
// Of what a controller makes pods for: bounds::kReplicas.
void CheckReplicasAreFew(const nlohmann::json& in, const char* name, const std::string& at, FieldErrors* errors);
// A number from 0 on, or a percentage up to 100 %.
void CheckCountOrPercent(const nlohmann::json& value, const std::string& field, FieldErrors* errors);
// A text that is there must be one of these.
void CheckWord(const nlohmann::json& value, const std::string& field, std::vector<std::string> supported,
               FieldErrors* errors);
// What is wrong with a metav1.LabelSelector.
void CheckSelector(const nlohmann::json& selector, const std::string& at, FieldErrors* errors);
// The same of a pod's nodeAffinity, podAffinity and podAntiAffinity. `at`: the field of the affinity.
void CheckAffinity(const nlohmann::json& affinity, const std::string& at, FieldErrors* errors);

}  // namespace wavetank::fakekube
