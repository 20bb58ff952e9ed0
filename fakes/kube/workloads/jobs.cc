#include "fakes/kube/workloads/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/assert.h"
#include "core/base/bounds.h"
#include "core/base/json/json_object.h"
#include "core/base/json_access.h"
#include "core/kube/time_format.h"
#include "fakes/kube/control/pod_template.h"
#include "fakes/kube/store/event_store.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kIndexKey = "batch.kubernetes.io/job-completion-index";
constexpr int64_t kNoIndex = -1;

bool Indexed(const kube::Object& job) { return Text(At(job.body, "spec"), "completionMode") == "Indexed"; }

std::string Phase(const kube::Object& pod) { return Text(At(pod.body, "status"), "phase"); }

int64_t IndexOf(const kube::Object& pod) {
  const auto it = pod.meta.annotations.find(kIndexKey);
  return it == pod.meta.annotations.end() ? kNoIndex : std::strtoll(it->second.c_str(), nullptr, 10);
}

// "0-2,5", as status.completedIndexes says it.
std::string Ranges(const std::set<int64_t>& numbers) {
  std::string out;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int64_t first = *it;
    int64_t last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    out += fmt::format("{}{}", out.empty() ? "" : ",", first);
    if (last > first) out += fmt::format("{}{}", last == first + 1 ? "," : "-", last);
  }
  return out;
}

json Condition(const char* type, std::string_view reason, std::string_view message, const std::string& now,
               const char* status = "True") {
  json out = JsonObject("type", type, "status", status, "lastProbeTime", now, "lastTransitionTime", now);
  if (!reason.empty()) out["reason"] = std::string(reason);
  if (!message.empty()) out["message"] = std::string(message);
  return out;
}

json WithCondition(const kube::Object& job, json condition) {
  json out = json::array();
  for (const json& one : Items(At(job.body, {"status", "conditions"}))) {
    if (At(one, "type") != condition["type"]) out.push_back(one);
  }
  out.push_back(std::move(condition));
  return out;
}

}  // namespace

std::string JobEnded(const kube::Object& job) {
  for (const json& condition : Items(At(job.body, {"status", "conditions"}))) {
    const std::string type = Text(condition, "type");
    if ((type == "Complete" || type == "Failed") && Text(condition, "status") == "True") return type;
  }
  return {};
}

struct JobController::Progress {
  std::vector<ObjectRef> active;  // neither ended nor going
  int64_t ready = 0, restarts = 0;
  Tally* tally = nullptr;
  int64_t wanted = -1;  // completions; -1: one success and then no new ones
  int64_t parallelism = 1;
  int64_t succeeded(const kube::Object& job) const {
    return static_cast<int64_t>(Indexed(job) ? tally->completed.size() : tally->succeeded.size());
  }
  int64_t failed() const { return static_cast<int64_t>(tally->failed.size()); }
};

JobController::JobController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission)
    : api_(api),
      options_(options),
      pending_(api.host()),
      clock_(api.host()),
      queue_(pending_, [this](const NamespacedName& name) { Sync(name); }),
      maker_(api, admission, pending_) {
  subscriptions_.Add(api_.Observe("Job", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) tallies_.erase(change.object->meta.uid);
    if (WantsAnew(change)) queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("Pod", [this](const Change& change) { OnPod(change); }));
}

void JobController::OnPod(const Change& change) {
  pods_.Follow(change);
  const kube::Object& pod = *change.object;
  const kube::OwnerReference* owner = ControllerOf(pod);
  if (owner == nullptr || owner->kind != "Job") return;
  const ObjectRef job = api_.Get("Job", {pod.meta.ns, owner->name});
  if (job == nullptr || job->meta.uid != owner->uid) return;
  const std::string phase = Phase(pod), &uid = pod.meta.uid;
  Tally& tally = tallies_[owner->uid];
  const bool counted = tally.succeeded.contains(uid) || tally.failed.contains(uid) || tally.dismissed.contains(uid);
  if (!counted && phase == "Succeeded") {
    tally.succeeded.insert(pod.meta.uid);
    if (const int64_t index = IndexOf(pod); index >= 0) tally.completed.insert(index);
  } else if (!counted && (phase == "Failed" || change.type == kube::WatchEventType::kDeleted)) {
    // One that somebody deleted before its end has failed.
    tally.failed.insert(pod.meta.uid);
    tally.last_failure = api_.host().Now();
  }
  queue_.Add({pod.meta.ns, owner->name});
}

JobController::Progress JobController::Look(const ObjectRef& job) {
  Progress out;
  out.tally = &tallies_[job->meta.uid];
  const json& spec = At(job->body, "spec");
  out.wanted = Number(spec, "completions", -1);
  out.parallelism = std::max<int64_t>(Number(spec, "parallelism", 1), 0);
  for (const ObjectRef& pod : pods_.Of(api_, *job, "Pod")) {
    if (HasEnded(pod->body) || pod->meta.deleting) continue;
    out.ready += PodReady(*pod) ? 1 : 0;
    for (const json& status : Items(At(pod->body, {"status", "containerStatuses"})))
      out.restarts += Number(status, "restartCount");
    out.active.push_back(pod);
  }
  return out;
}

void JobController::Sync(const NamespacedName& name) {
  const ObjectRef job = api_.Get("Job", name);
  if (job == nullptr || job->meta.deleting) return;
  if (!JobEnded(*job).empty()) return Expire(*job);
  const json& spec = At(job->body, "spec");
  Progress progress = Look(job);
  if (At(spec, "suspend") == true) return Suspend(*job, progress);
  if (!At(job->body, {"status", "startTime"}).is_string()) {
    json status = JsonObject("startTime", api_.DateNow());
    for (const json& one : Items(At(job->body, {"status", "conditions"}))) {
      if (Text(one, "type") == "Suspended" && Text(one, "status") == "True")
        status["conditions"] =
            WithCondition(*job, Condition("Suspended", "JobResumed", "Job resumed", api_.DateNow(), "False"));
    }
    api_.Patch("Job", name, JsonObject("status", std::move(status))).IgnoreError();
    if (const int64_t deadline = Number(spec, "activeDeadlineSeconds"); deadline > 0)
      clock_.After(bounds::Seconds(deadline), [this, name] { queue_.Add(name); });
    return queue_.Add(name);
  }
  if (const std::string reason = Failure(*job, progress); !reason.empty()) return Finish(*job, progress, reason);
  const int64_t succeeded = progress.succeeded(*job);
  const bool complete = progress.wanted >= 0 ? succeeded >= progress.wanted : succeeded > 0 && progress.active.empty();
  if (complete) return Finish(*job, progress, "");
  MakePods(job, progress);
  WriteStatus(*job, progress, json::object());
}

std::string JobController::Failure(const kube::Object& job, const Progress& progress) const {
  const json& spec = At(job.body, "spec");
  if (progress.failed() + progress.restarts > Number(spec, "backoffLimit", 6)) return "BackoffLimitExceeded";
  const int64_t deadline = Number(spec, "activeDeadlineSeconds");
  const auto since = kube::ParseRfc3339(TextOf(At(job.body, {"status", "startTime"})));
  return deadline > 0 && since && api_.UnixNow() - *since >= deadline ? "DeadlineExceeded" : "";
}

void JobController::Finish(const kube::Object& job, Progress& progress, const std::string& reason) {
  const std::string now = api_.DateNow();
  for (const ObjectRef& pod : progress.active) Dismiss(job, *progress.tally, *pod);
  json more = json::object();
  if (reason.empty()) {
    more["completionTime"] = now;
    more["conditions"] = WithCondition(job, Condition("Complete", "", "", now));
    Tell(job, false, "Completed", "Job completed");
  } else {
    const std::string message = reason == "DeadlineExceeded" ? "Job was active longer than specified deadline"
                                                             : "Job has reached the specified backoff limit";
    for (const ObjectRef& pod : progress.active) progress.tally->failed.insert(pod->meta.uid);  // as a Job's that fails
    more["conditions"] = WithCondition(job, Condition("Failed", reason, message, now));
    Tell(job, true, reason, message);
  }
  progress.active.clear();
  progress.ready = 0;
  WriteStatus(job, progress, std::move(more));
  queue_.Add({job.meta.ns, job.meta.name});
}

void JobController::Dismiss(const kube::Object& job, Tally& tally, const kube::Object& pod) {
  tally.dismissed.insert(pod.meta.uid);
  if (api_.Delete("Pod", {pod.meta.ns, pod.meta.name}).ok()) TellDeleted(api_, job, pod.meta.name);
}

void JobController::Suspend(const kube::Object& job, const Progress& progress) {
  for (const ObjectRef& pod : progress.active) Dismiss(job, *progress.tally, *pod);
  for (const json& one : Items(At(job.body, {"status", "conditions"}))) {
    if (Text(one, "type") == "Suspended" && Text(one, "status") == "True") return;
  }
  Tell(job, false, "Suspended", "Job suspended");
  Progress none = progress;
  none.active.clear();
  none.ready = 0;
  WriteStatus(job, none,
              JsonObject("startTime", nullptr, "conditions",
                         WithCondition(job, Condition("Suspended", "JobSuspended", "Job suspended", api_.DateNow()))));
}

void JobController::MakePods(const ObjectRef& job, const Progress& progress) {
  const NamespacedName name{job->meta.ns, job->meta.name};
  // After a failure 10 s pass, doubling up to 6 min (kubernetes: getBackoff of the Job controller).
  constexpr Duration kFirst = 10s, kMost = 6min;
  if (const int64_t failed = progress.failed(); failed > 0) {
    const Duration wait = std::min<Duration>(kFirst * (int64_t{1} << std::min<int64_t>(failed - 1, 6)), kMost);
    const Time ready = progress.tally->last_failure + wait;
    if (const Time now = api_.host().Now(); now < ready)
      return clock_.After(ready - now, [this, name] { queue_.Add(name); });
  }
  const auto made = [&](int64_t index) { return being_made_.contains({name, index}); };
  int64_t waiting = 0;
  for (auto it = being_made_.lower_bound({name, INT64_MIN}); it != being_made_.end() && it->first == name; ++it)
    ++waiting;
  int64_t room = progress.parallelism - static_cast<int64_t>(progress.active.size()) - waiting;
  for (auto pod = progress.active.rbegin(); room < 0 && pod != progress.active.rend(); ++pod, ++room)
    Dismiss(*job, *progress.tally, **pod);
  if (Indexed(*job)) {
    std::set<int64_t> running;
    for (const ObjectRef& pod : progress.active) running.insert(IndexOf(*pod));
    for (int64_t index = 0; index < progress.wanted && room > 0; ++index) {
      if (progress.tally->completed.contains(index) || running.contains(index) || made(index)) continue;
      Create(job, index);
      --room;
    }
    return;
  }
  if (progress.wanted >= 0) {
    room = std::min(
        room, progress.wanted - progress.succeeded(*job) - static_cast<int64_t>(progress.active.size()) - waiting);
  } else if (progress.succeeded(*job) > 0) {
    room = 0;
  }
  for (int64_t place = kNoIndex; room > 0; --place) {
    if (made(place)) continue;
    Create(job, place);
    --room;
  }
}

void JobController::Create(const ObjectRef& job, int64_t index) {
  const NamespacedName name{job->meta.ns, job->meta.name};
  const std::string suffix = GeneratedSuffix(options_.name, options_.seed, name, made_[name]++);
  const std::string stem = index >= 0 ? fmt::format("{}-{}", name.name, index) : name.name;
  json pod = PodOfTemplate(At(job->body, {"spec", "template"}), *job, stem + "-" + suffix);
  pod["metadata"]["generateName"] = stem + "-";
  if (index >= 0) {
    pod["metadata"]["annotations"][kIndexKey] = std::to_string(index);
    pod["metadata"]["labels"][kIndexKey] = std::to_string(index);
    pod["spec"]["hostname"] = stem;
    for (json& container : pod["spec"]["containers"])
      container["env"].push_back({{"name", "JOB_COMPLETION_INDEX"}, {"value", std::to_string(index)}});
  }
  const bool fresh = being_made_.insert({name, index}).second;
  WAVETANK_ASSERT(fresh, name.ns, name.name, index);
  maker_.Make({.pod = std::move(pod),
               .owner_kind = "Job",
               .owner = name,
               .wanted = [](const kube::Object& owner) { return JobEnded(owner).empty(); },
               .done =
                   [this, name, index](bool) {
                     const size_t was_made = being_made_.erase({name, index});
                     WAVETANK_ASSERT(was_made == 1, name.ns, name.name, index);  // done is called once
                     queue_.Add(name);
                   }});
}

void JobController::WriteStatus(const kube::Object& job, const Progress& progress, json more) {
  json status =
      JsonObject("active", progress.active.size(), "ready", progress.ready, "succeeded", progress.succeeded(job),
                 "failed", progress.failed(), "uncountedTerminatedPods", json::object());
  // Go leaves zeroes out.
  for (const char* field : {"active", "succeeded", "failed"}) {
    if (status[field] == 0) status[field] = nullptr;
  }
  if (Indexed(job)) status["completedIndexes"] = Ranges(progress.tally->completed);
  status.update(more);
  api_.Patch("Job", {job.meta.ns, job.meta.name}, JsonObject("status", std::move(status))).IgnoreError();
}

// kubernetes: pkg/controller/ttlafterfinished.
void JobController::Expire(const kube::Object& job) {
  const json& ttl = At(job.body, {"spec", "ttlSecondsAfterFinished"});
  if (!ttl.is_number_integer()) return;
  int64_t ended = api_.UnixNow();
  for (const json& condition : Items(At(job.body, {"status", "conditions"}))) {
    if (Text(condition, "type") == "Complete" || Text(condition, "type") == "Failed")
      ended = kube::ParseRfc3339(Text(condition, "lastTransitionTime")).value_or(ended);
  }
  const int64_t left = ended + bounds::Seconds(NumberOf(ttl)) / 1s - api_.UnixNow();
  const NamespacedName name{job.meta.ns, job.meta.name};
  if (left <= 0) return api_.Delete("Job", name, {Propagation::kForeground, std::nullopt}).IgnoreError();
  clock_.After(bounds::Seconds(left), [this, name, uid = job.meta.uid] {
    const ObjectRef now = api_.Get("Job", name);
    if (now != nullptr && now->meta.uid == uid) queue_.Add(name);
  });
}

void JobController::Tell(const kube::Object& job, bool warning, std::string_view reason, std::string message) {
  if (EventStore* events = api_.listening(); events != nullptr)
    events->Tell(job,
                 {.component = "job-controller", .warning = warning, .reason = reason, .message = std::move(message)});
}

}  // namespace wavetank::fakekube
