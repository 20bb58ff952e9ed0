// What an input may touch of a world: given to Input::Apply, and to nothing else.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/world_site.h"

namespace wavetank::sim {

struct InputTarget {
  World& world;
  const WorldOptions& options;
  const pilot::Profile& profile;
  Host& host;
  Links& links;
  Commons& commons;
  TokenIssuers& issuers;
  OutsideClients& outside;
  std::map<std::string, std::unique_ptr<TrafficSource>, std::less<>>& traffic;  // by id
  std::vector<std::unique_ptr<World::Site>>& sites;
  std::map<std::pair<std::string, std::string>, int>& secret_generations;  // (of, in) -> rotations
  Subscriptions& subscriptions;                                            // what goes on for as long as the world
  KubeExchange* exchange = nullptr;                                        // null: no client waits, as in a replay

  // Those that run, in order of cluster, namespace and name.
  std::vector<PodProcess*> AllPods() const;
  // InvalidArgument: no cluster of the world has that name.
  absl::StatusOr<World::Site*> FindSite(std::string_view name) const;
};

}  // namespace wavetank::sim
