// Names of pods that a person can say, and which pods they mean. The one resolver of all verbs and of scenarios.
//
//   sleep-7f9b-x2nxx.sample@cluster1    as traces name it, or how that begins
//   sleep@cluster1, sleep.sample        by the app label or the Deployment; namespace and cluster may be left out
//   sleep-0@cluster1                    the first of its pods, in order of their names
//   deploy/sleep.sample@cluster1        by the Deployment alone
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::sim {
class PodProcess;
class World;
}  // namespace wavetank::sim

namespace wavetank::scenario {

struct PodName {
  std::string pod, ns, cluster, app, deployment;
  std::string Full() const;  // "pod.namespace@cluster"; without the cluster where there is none
};

// Of "pod.namespace@cluster": app and Deployment by what Kubernetes appends to a Deployment's name.
PodName PodNameOf(std::string_view full);
PodName PodNameOf(const sim::PodProcess& pod);
// Of all pods that run, in order of their names.
std::vector<PodName> PodNames(const sim::World& world);

// The shortest name that means this pod alone: "sleep@cluster1"; the full one if there is none, or no such pod any
// more.
std::string ShortName(const std::string& full, const std::vector<PodName>& all);

// The pods that `said` means; empty: none.
std::vector<PodName> FindPods(std::string_view said, const std::vector<PodName>& all);
// The full name of the only one. InvalidArgument says which there are: "more than one pod is named 'sleep'; take one
// of: ...", or that `all` is empty. `what`: "pod", "connected proxy".
absl::StatusOr<std::string> FindOnePod(std::string_view what, std::string_view said, const std::vector<PodName>& all);
// The same of pods of a world; where there is none of that kind at all, the message says why, as WhyNoProxies() does.
absl::StatusOr<std::string> FindOnePod(std::string_view what, std::string_view said, const std::vector<PodName>& all,
                                       const sim::World& world);
// Why a world has no proxy: what does not come up, who was left out, which namespaces ask for no sidecars; in a
// sentence or a few, without a full stop.
std::string WhyNoProxies(const sim::World& world);

}  // namespace wavetank::scenario
