// What a world is made of, and the requests in it, as a scenario says.
#pragma once

#include <string>
#include <vector>

#include "core/kube/object.h"
#include "scenarios/language/scenario.h"
#include "sim/inputs/input.h"
#include "sim/world_options.h"

namespace wavetank::sim {
class World;
}

namespace wavetank::scenario {

// Reads files of installers among the manifests, for what they say of addresses (installer_files.h).
sim::WorldOptions MakeWorldOptions(const Scenario& scenario);
// What lies under its clusters' networks alone.
sim::UnderlayPlan MakeUnderlayPlan(const Scenario& scenario);
// The other way round, of a log's world: its clusters by what steps may say of them.
std::vector<ClusterSpec> ClustersOfWorld(const sim::WorldOptions& options);

// Istiods whose Deployments name an image of another release than the world's profile: the simulated one is the
// profile's, whatever its image is called. None where another profile than the usual one was chosen.
struct ForeignIstiod {
  std::string cluster;
  kube::ObjectRef deployment;
  std::string image;
};
std::vector<ForeignIstiod> IstiodsOfOtherReleases(sim::World& world);
std::vector<std::string> NotesOfOtherReleases(sim::World& world);  // a line for each

// From one event of a rate to the next, cut to a nanosecond; of no rate as of the smallest.
Duration PeriodOf(int64_t rate_per_kilosecond);

// How long so many requests take to be sent, at the traffic's rate or else the flow's; bounds::kInputDuration at most,
// which no traffic may take.
Duration SendingTime(const FlowSpec& flow, const Traffic& traffic);

// `id` names this run of the flow, for the results.
sim::Input MakeTraffic(const FlowSpec& flow, const Traffic& traffic, const std::string& id);

}  // namespace wavetank::scenario
