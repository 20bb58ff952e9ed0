// What became of the pods that a cluster's API server asked istiod's injection webhook about, and of those that it did
// not ask about: why a pod is not there, or is there without a sidecar, and what to do about it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fakes/kube/store/api_server.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

class AdmissionLog {
 public:
  // `pod` as it was asked about: without a name where its owner lets the server give one. `why`: no istiod answered.
  void Injected(const nlohmann::json& pod);
  void LeftOut(const nlohmann::json& pod);  // istiod answered without a patch
  void Bypassed(const nlohmann::json& pod, const std::string& webhook, const std::string& why);
  // `again`: whoever makes it tries again, as controllers do and clients do not.
  void Refused(const nlohmann::json& pod, const std::string& webhook, const std::string& why, bool again);
  // A pod that was admitted could not be stored after all.
  void NotStored(const nlohmann::json& pod, const std::string& why);

  // Pods that are not there: a sentence each.
  std::vector<std::string> Refusals(const fakekube::ApiServer& api) const;
  // Why `pod`, which has no sidecar, has none, and the remedy. "": no webhook of its cluster selects it.
  std::string WhyWithoutSidecar(const kube::Object& pod, const fakekube::ApiServer& api) const;

 private:
  // By "ns/name" of a pod, or "ns/" and what its names begin with.
  struct Refusal {
    std::string why;
    kube::NamespacedName replica_set;  // that wanted the pod; no name: something else did
  };
  static void RememberOwner(const nlohmann::json& pod, Refusal* refusal);
  std::map<std::string, Refusal> refused_;
  std::map<std::string, std::string> bypassed_;
  std::map<std::string, bool> left_out_;
};

}  // namespace wavetank::sim
