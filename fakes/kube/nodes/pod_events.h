// What scheduler, kubelets and the node lifecycle controller tell of pods and nodes (kubernetes: pkg/scheduler,
// pkg/kubelet/events, pkg/controller/nodelifecycle), while somebody listens.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

// Images that nodes have, by node and image.
using NodeImages = std::set<std::pair<std::string, std::string>>;

void TellScheduled(ApiServer& api, const kube::Object& pod, const std::string& node);
void TellUnschedulable(ApiServer& api, const kube::Object& pod, const std::string& why);
void TellNoSandbox(ApiServer& api, const kube::Object& pod, const std::string& why);
// Its containers run, those of initialization have. `took`: what an image that was not there took at most.
void TellStarted(ApiServer& api, const kube::Object& pod, Duration took, NodeImages* images);
void TellUnready(ApiServer& api, const kube::Object& pod);
void TellKilling(ApiServer& api, const kube::Object& pod);
void TellNodeNotReady(ApiServer& api, const kube::Object& pod);
void TellNodeStatus(ApiServer& api, const kube::Object& node, bool ready);
void TellEvicted(ApiServer& api, const kube::Object& pod);

}  // namespace wavetank::fakekube
