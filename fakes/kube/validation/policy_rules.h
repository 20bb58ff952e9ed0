// What limits and leads: HorizontalPodAutoscalers, PodDisruptionBudgets, NetworkPolicies, Ingresses, LimitRanges,
// ResourceQuotas, Endpoints, and probes of containers (kubernetes: pkg/apis/{policy,networking,core}/validation).
#pragma once

#include "core/kube/object.h"
#include "fakes/kube/validation/field_checks.h"

namespace wavetank::fakekube {

void CheckAutoscaler(const nlohmann::json& body, FieldErrors* errors);
void CheckDisruptionBudget(const nlohmann::json& body, FieldErrors* errors);
void CheckNetworkPolicy(const nlohmann::json& body, FieldErrors* errors);
void CheckIngress(const nlohmann::json& body, FieldErrors* errors);
void CheckLimitRange(const nlohmann::json& body, FieldErrors* errors);
void CheckResourceQuota(const nlohmann::json& body, FieldErrors* errors);
void CheckEndpoints(const nlohmann::json& body, FieldErrors* errors);
// Those that `container` has; `at`: its field.
void CheckProbes(const nlohmann::json& container, const std::string& at, FieldErrors* errors);

}  // namespace wavetank::fakekube
