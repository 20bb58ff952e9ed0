#include "fakes/kube/validation/batch_rules.h"

#include <fmt/format.h>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fakes/kube/objects/cron_schedule.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr int64_t kMostIndexedParallelism = 100'000;  // Kubernetes' own

void CheckJobSpec(const json& spec, const std::string& at, FieldErrors* errors) {
  for (const char* field :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"}) {
    CheckNotNegative(spec, field, at, errors);
  }
  if (Text(spec, "completionMode") != "Indexed") CheckReplicasAreFew(spec, "parallelism", at, errors);
  CheckWord(At(spec, "completionMode"), at + ".completionMode", {"NonIndexed", "Indexed"}, errors);
  if (Text(spec, "completionMode") == "Indexed") {
    if (At(spec, "completions").is_null())
      errors->push_back(RequiredField(at + ".completions", "when completion mode is Indexed"));
    if (Number(spec, "parallelism") > kMostIndexedParallelism) {
      errors->push_back(InvalidField(
          at + ".parallelism", At(spec, "parallelism"),
          fmt::format("must be less than or equal to {} when completion mode is Indexed", kMostIndexedParallelism)));
    }
  }
  const json& restart = At(spec, {"template", "spec", "restartPolicy"});
  const std::string field = at + ".template.spec.restartPolicy";
  // Defaulted, so that a body that says nothing is told of Always.
  if (restart.is_null() || restart == "Always") {
    errors->push_back(restart.is_null() ? RequiredField(field, "valid values: \"OnFailure\", \"Never\"")
                                        : UnsupportedField(field, restart, {"OnFailure", "Never"}));
  }
}

void CheckUnchanged(const json& before, const json& now, const char* field, const std::string& at,
                    FieldErrors* errors) {
  if (At(before, field) == At(now, field)) return;
  errors->push_back(InvalidField(at + "." + field, At(now, field), "field is immutable"));
}

}  // namespace

void CheckJob(const json& body, const kube::Object* previous, FieldErrors* errors) {
  const json& spec = At(body, "spec");
  CheckJobSpec(spec, "spec", errors);
  if (At(spec, "manualSelector") == true && !At(spec, "selector").is_object())
    errors->push_back(RequiredField("spec.selector"));
  if (previous == nullptr) return;
  const json& before = At(previous->body, "spec");
  for (const char* field : {"completions", "selector", "template", "completionMode"}) {
    // A suspended Job that never ran may still change where its pods go, an Indexed one its size.
    const bool indexed = Text(spec, "completionMode") == "Indexed";
    if (field == std::string_view("completions") && indexed && At(spec, "completions") == At(spec, "parallelism"))
      continue;
    if (field == std::string_view("template") && At(before, "suspend") == true &&
        At(previous->body, {"status", "startTime"}).is_null())
      continue;
    CheckUnchanged(before, spec, field, "spec", errors);
  }
}

void CheckCronJob(const json& body, const kube::Object* previous, FieldErrors* errors) {
  constexpr size_t kLongestName = 52;  // its Jobs' names are longer
  const json& spec = At(body, "spec");
  const std::string name = TextOf(At(body, {"metadata", "name"})), schedule = Text(spec, "schedule");
  if (previous == nullptr && name.size() > kLongestName)
    errors->push_back(InvalidField("metadata.name", name, "must be no more than 52 characters"));
  if (schedule.empty()) {
    errors->push_back(RequiredField("spec.schedule"));
  } else if (schedule.find("TZ") != std::string::npos) {
    if (!At(spec, "timeZone").is_null())
      errors->push_back(
          InvalidField("spec.schedule", schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"));
  } else if (const auto parsed = CronSchedule::Parse(schedule); !parsed.ok()) {
    errors->push_back(InvalidField("spec.schedule", schedule, Message(parsed.status())));
  }
  CheckNotNegative(spec, "startingDeadlineSeconds", "spec", errors);
  CheckWord(At(spec, "concurrencyPolicy"), "spec.concurrencyPolicy", {"Allow", "Forbid", "Replace"}, errors);
  CheckNotNegative(spec, "successfulJobsHistoryLimit", "spec", errors);
  CheckNotNegative(spec, "failedJobsHistoryLimit", "spec", errors);
  const json& zone = At(spec, "timeZone");
  if (zone.is_string() && zone == "")
    errors->push_back(InvalidField("spec.timeZone", zone, "timeZone must be nil or non-empty string"));
  if (zone.is_string() && zone == "Local")
    errors->push_back(InvalidField("spec.timeZone", zone,
                                   "timeZone must be an explicit time zone as defined in "
                                   "https://www.iana.org/time-zones"));
  const json& job = At(spec, {"jobTemplate", "spec"});
  if (At(job, "manualSelector") == true) {
    errors->push_back(
        UnsupportedField("spec.jobTemplate.spec.manualSelector", At(job, "manualSelector"), {"nil", "false"}));
  }
  CheckJobSpec(job, "spec.jobTemplate.spec", errors);
}

}  // namespace wavetank::fakekube
