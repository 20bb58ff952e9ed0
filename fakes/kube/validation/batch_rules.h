// Jobs and CronJobs (kubernetes: pkg/apis/batch/validation/validation.go), but for their pods' template, which
// validation.h sees to.
#pragma once

#include "core/kube/object.h"
#include "fakes/kube/validation/field_checks.h"

namespace wavetank::fakekube {

void CheckJob(const nlohmann::json& body, const kube::Object* previous, FieldErrors* errors);
void CheckCronJob(const nlohmann::json& body, const kube::Object* previous, FieldErrors* errors);

}  // namespace wavetank::fakekube
