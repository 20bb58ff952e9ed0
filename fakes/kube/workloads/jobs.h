// Jobs: pods that run to their end, until as many as wanted have succeeded (kubernetes: pkg/controller/job).
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/kube/control/cluster_options.h"
#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/control/pod_maker.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// "Complete", "Failed": why a Job is over; "" while it is not.
std::string JobEnded(const kube::Object& job);

class JobController final : public Controller {
 public:
  JobController(ApiServer& api, const ClusterOptions& options, PodAdmission* admission);

  bool Settled() const override { return pending_.idle(); }

 private:
  // What has become of a Job's pods, those included that are gone by now.
  struct Tally {
    std::set<std::string> succeeded, failed;  // uids
    std::set<std::string> dismissed;          // that the controller itself has ended
    std::set<int64_t> completed;              // indexes, of an Indexed Job
    Time last_failure{};
  };
  struct Progress;

  void OnPod(const Change& change);
  void Sync(const NamespacedName& name);
  Progress Look(const ObjectRef& job);
  // Why the Job fails now; empty if it does not.
  std::string Failure(const kube::Object& job, const Progress& progress) const;
  void Finish(const kube::Object& job, Progress& progress, const std::string& reason);
  void Suspend(const kube::Object& job, const Progress& progress);
  void Dismiss(const kube::Object& job, Tally& tally, const kube::Object& pod);
  void MakePods(const ObjectRef& job, const Progress& progress);
  void Create(const ObjectRef& job, int64_t index);
  void WriteStatus(const kube::Object& job, const Progress& progress, nlohmann::json more);
  void Expire(const kube::Object& job);
  void Tell(const kube::Object& job, bool warning, std::string_view reason, std::string message);

  ApiServer& api_;
  const ClusterOptions& options_;
  PendingWork pending_;
  PendingWork clock_;  // deadlines, which a settled cluster may have
  NameQueue queue_;
  PodMaker maker_;
  Controlled pods_;
  std::map<std::string, Tally> tallies_;  // by the Job's uid
  std::map<NamespacedName, uint64_t> made_;
  std::set<std::pair<NamespacedName, int64_t>> being_made_;  // and the pod's index, or its number from the end
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
