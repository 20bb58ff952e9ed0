#include "fakes/kube/workloads/cron_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/assert.h"
#include "core/base/bounds.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "core/kube/time_format.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/objects/cron_schedule.h"
#include "fakes/kube/store/event_store.h"
#include "fakes/kube/workloads/jobs.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kCron = "CronJob";

int64_t TimeIn(const json& status, const char* field, int64_t otherwise) {
  return kube::ParseRfc3339(Text(status, field)).value_or(otherwise);
}

bool KnownZone(const json& spec) {
  const std::string zone = Text(spec, "timeZone", "UTC");
  return zone == "UTC" || zone == "Etc/UTC" || zone == "GMT" || zone == "Etc/GMT";
}

}  // namespace

CronJobController::CronJobController(ApiServer& api)
    : api_(api),
      pending_(api.host()),
      clock_(api.host()),
      queue_(pending_, [this](const NamespacedName& name) { Sync(name); }) {
  subscriptions_.Add(api_.Observe(kCron, [this](const Change& change) {
    const NamespacedName name{change.object->meta.ns, change.object->meta.name};
    if (change.type == kube::WatchEventType::kDeleted) armed_.erase(name);
    if (WantsAnew(change)) queue_.Add(name);
  }));
  subscriptions_.Add(api_.Observe("Job", [this](const Change& change) {
    jobs_.Follow(change);
    const kube::OwnerReference* owner = ControllerOf(*change.object);
    if (owner != nullptr && owner->kind == kCron) queue_.Add({change.object->meta.ns, owner->name});
  }));
}

void CronJobController::Sync(const NamespacedName& name) {
  const ObjectRef cron = api_.Get(kCron, name);
  if (cron == nullptr || cron->meta.deleting) return;
  std::vector<ObjectRef> jobs = jobs_.Of(api_, *cron, "Job");
  const json& spec = At(cron->body, "spec");
  const absl::StatusOr<CronSchedule> schedule = CronSchedule::Parse(Text(spec, "schedule"));
  if (!schedule.ok()) {
    Tell(*cron, true, "UnparseableSchedule", fmt::format("unparseable schedule: \"{}\"", Text(spec, "schedule")));
    return;
  }
  if (!KnownZone(spec)) {
    Tell(*cron, true, "UnknownTimeZone",
         fmt::format("invalid timeZone: \"{}\": this simulated cluster knows UTC only", Text(spec, "timeZone")));
    return;
  }
  int64_t struck = 0;
  const int64_t now = api_.UnixNow();
  // A client may have written any time into the status.
  const int64_t since =
      std::clamp(TimeIn(At(cron->body, "status"), "lastScheduleTime", cron->meta.creation_unix_seconds),
                 std::min(cron->meta.creation_unix_seconds, now), now);
  if (At(spec, "suspend") != true) {
    // The last of the strikes that have passed counts (kubernetes: cronjob/utils.go, mostRecentScheduleTime); what was
    // missed longer ago than the deadline does not.
    const json& deadline = At(spec, "startingDeadlineSeconds");
    const int64_t from =
        deadline.is_number_integer() ? std::max(since, now - bounds::Seconds(NumberOf(deadline)) / 1s) : since;
    const std::optional<int64_t> due = schedule->Last(from, now);
    if (due) {
      if (ObjectRef job = Strike(*cron, *due, jobs); job != nullptr) {
        struck = *due;
        jobs.push_back(std::move(job));
      }
    }
    if (const std::optional<int64_t> next = schedule->Next(now); next) {
      Arm(*cron, *next);
    } else {
      // kubernetes: cronjob/utils.go, mostRecentScheduleTime(): "59 23 31 2 *" can be read, and never strikes.
      Tell(*cron, true, "InvalidSchedule",
           fmt::format("invalid schedule: {} : time difference between two schedules is less than 1 second",
                       Text(spec, "schedule")));
    }
  }
  DropOld(*cron, jobs);
  WriteStatus(*cron, jobs, struck);
}

void CronJobController::Arm(const kube::Object& cron, int64_t strike) {
  const NamespacedName name{cron.meta.ns, cron.meta.name};
  if (armed_[name] == strike) return;
  armed_[name] = strike;
  const int64_t now = api_.UnixNow();
  WAVETANK_ASSERT(strike > now, strike, now);
  clock_.After(bounds::Seconds(strike - now), [this, name, strike] {
    const auto armed = armed_.find(name);
    if (armed == armed_.end() || armed->second != strike) return;  // another schedule, or none any more
    armed_.erase(armed);
    queue_.Add(name);
  });
}

ObjectRef CronJobController::Strike(const kube::Object& cron, int64_t strike, const std::vector<ObjectRef>& jobs) {
  const json& spec = At(cron.body, "spec");
  const std::string policy = Text(spec, "concurrencyPolicy");
  for (const ObjectRef& job : jobs) {
    if (!JobEnded(*job).empty()) continue;
    if (policy == "Forbid") {
      Tell(cron, false, "JobAlreadyActive",
           "Not starting job because prior execution is running and concurrency policy is Forbid");
      return nullptr;
    }
    if (policy != "Replace") continue;
    if (api_.Delete("Job", {job->meta.ns, job->meta.name}).ok())
      Tell(cron, false, "SuccessfulDelete", "Deleted job " + job->meta.name);
  }
  const json& job_template = At(spec, "jobTemplate");
  json metadata = JsonObject("name", fmt::format("{}-{}", cron.meta.name, strike / 60), "namespace", cron.meta.ns,
                             "ownerReferences", OwnedBy(cron));
  for (const char* field : {"labels", "annotations"}) {
    if (const json& said = At(job_template, {"metadata", field}); said.is_object()) metadata[field] = said;
  }
  absl::StatusOr<ObjectRef> made = api_.Create(JsonObject("apiVersion", "batch/v1", "kind", "Job", "metadata",
                                                          std::move(metadata), "spec", At(job_template, "spec")));
  if (!made.ok()) return nullptr;
  Tell(cron, false, "SuccessfulCreate", "Created job " + (*made)->meta.name);
  return *std::move(made);
}

void CronJobController::WriteStatus(const kube::Object& cron, const std::vector<ObjectRef>& jobs, int64_t struck) {
  json active = json::array();
  int64_t succeeded = TimeIn(At(cron.body, "status"), "lastSuccessfulTime", 0);
  for (const ObjectRef& job : jobs) {
    if (JobEnded(*job).empty()) {
      active.push_back({{"kind", "Job"},
                        {"namespace", job->meta.ns},
                        {"name", job->meta.name},
                        {"uid", job->meta.uid},
                        {"apiVersion", "batch/v1"},
                        {"resourceVersion", std::to_string(job->meta.resource_version)}});
    }
    succeeded = std::max(succeeded, TimeIn(At(job->body, "status"), "completionTime", 0));
  }
  json status = JsonObject("active", active.empty() ? json() : std::move(active));
  if (struck > 0) status["lastScheduleTime"] = kube::FormatRfc3339(struck);
  if (succeeded > 0) status["lastSuccessfulTime"] = kube::FormatRfc3339(succeeded);
  api_.Patch(kCron, {cron.meta.ns, cron.meta.name}, JsonObject("status", std::move(status))).IgnoreError();
}

void CronJobController::DropOld(const kube::Object& cron, const std::vector<ObjectRef>& jobs) {
  const json& spec = At(cron.body, "spec");
  struct History {
    const char *end, *limit;
    int64_t otherwise;
  };
  for (const auto& [end, limit, otherwise] :
       {History{"Complete", "successfulJobsHistoryLimit", 3}, History{"Failed", "failedJobsHistoryLimit", 1}}) {
    std::vector<ObjectRef> ended;
    for (const ObjectRef& job : jobs) {
      if (JobEnded(*job) == end) ended.push_back(job);
    }
    std::stable_sort(ended.begin(), ended.end(), [](const ObjectRef& a, const ObjectRef& b) {
      return a->meta.creation_unix_seconds < b->meta.creation_unix_seconds;
    });
    const size_t gone = BeyondLimit(ended.size(), At(spec, limit), otherwise);
    for (size_t i = 0; i < gone; ++i) {
      if (api_.Delete("Job", {ended[i]->meta.ns, ended[i]->meta.name}).ok())
        Tell(cron, false, "SuccessfulDelete", "Deleted job " + ended[i]->meta.name);
    }
  }
}

void CronJobController::Tell(const kube::Object& cron, bool warning, std::string_view reason, std::string message) {
  if (EventStore* events = api_.listening(); events != nullptr)
    events->Tell(
        cron, {.component = "cronjob-controller", .warning = warning, .reason = reason, .message = std::move(message)});
}

}  // namespace wavetank::fakekube
