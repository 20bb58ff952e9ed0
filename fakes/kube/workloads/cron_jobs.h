// CronJobs: Jobs by the clock (kubernetes: pkg/controller/cronjob). Time zones other than UTC are not known here: such
// a CronJob strikes never, and its Event UnknownTimeZone says so.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fakes/kube/control/controller.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class CronJobController final : public Controller {
 public:
  explicit CronJobController(ApiServer& api);

  bool Settled() const override { return pending_.idle(); }

 private:
  void Sync(const NamespacedName& name);
  // Wakes it at the schedule's next strike.
  void Arm(const kube::Object& cron, int64_t strike);
  // Makes the Job of a strike, as far as concurrencyPolicy lets it; the Job, or null.
  ObjectRef Strike(const kube::Object& cron, int64_t strike, const std::vector<ObjectRef>& jobs);
  void WriteStatus(const kube::Object& cron, const std::vector<ObjectRef>& jobs, int64_t struck);
  void DropOld(const kube::Object& cron, const std::vector<ObjectRef>& jobs);
  void Tell(const kube::Object& cron, bool warning, std::string_view reason, std::string message);

  ApiServer& api_;
  PendingWork pending_;
  PendingWork clock_;  // strikes, which a settled cluster may wait for
  NameQueue queue_;
  Controlled jobs_;
  std::map<NamespacedName, int64_t> armed_;  // the strike that each waits for
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
