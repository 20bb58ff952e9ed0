// StatefulSets: pods with ordinals, names and claims of their own, made and replaced one after another
// (kubernetes: pkg/controller/statefulset/stateful_set_control.go).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "fakes/kube/control/availability.h"
#include "fakes/kube/control/owned.h"
#include "fakes/kube/control/pending.h"
#include "fakes/kube/control/pod_hooks.h"
#include "fakes/kube/control/pod_maker.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class StatefulSetController {
 public:
  StatefulSetController(ApiServer& api, PodAdmission* admission);

  bool Settled() const { return pending_.idle(); }
  bool SettledButForPods() const { return pending_.idle_but_for_vain(); }  // but for those that nobody admits

 private:
  using Pods = std::map<int64_t, ObjectRef>;  // by ordinal

  void Sync(const NamespacedName& name);
  // It serves, and does so for long enough: the next one may be seen to.
  bool Healthy(const kube::Object& set, const kube::Object& pod) const;
  // What is to be done next to the pods; called again when they have changed.
  void Step(const ObjectRef& set, const std::string& current, const std::string& update, const Pods& pods);
  void DeletePod(const kube::Object& set, const std::string& pod);
  void Create(const ObjectRef& set, const std::string& revision, int64_t ordinal);
  void Claim(const kube::Object& set, const nlohmann::json& claim, const std::string& name);
  void WriteStatus(const ObjectRef& set, const std::string& current, const std::string& update, const Pods& pods);

  ApiServer& api_;
  PendingWork pending_;
  NameQueue queue_;
  PodMaker maker_;
  Availability availability_;
  Controlled pods_;
  std::set<std::pair<NamespacedName, int64_t>> being_made_;  // pods that wait for the webhook
  Subscriptions subscriptions_;
};

}  // namespace wavetank::fakekube
