// ControllerRevisions: which templates a StatefulSet or a DaemonSet has had, as `kubectl rollout history` and `undo`
// read them (kubernetes: pkg/controller/history).
#pragma once

#include <set>
#include <string>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// What a revision's name ends with, as a label of its pods.
inline constexpr const char* kRevisionLabel = "controller-revision-hash";

// Keeps the template that `set` has now as the ControllerRevision `name`, the newest of its revisions. Those beyond
// spec.revisionHistoryLimit go, the oldest first, but for `live` ones. Labels: the template's and `more`.
void KeepRevision(ApiServer& api, const kube::Object& set, const std::string& name, const nlohmann::json& more,
                  const std::set<std::string>& live);

// The template that a revision keeps; null if `revision` is.
nlohmann::json TemplateOfRevision(const kube::Object* revision);

}  // namespace wavetank::fakekube
