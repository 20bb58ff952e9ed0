// Game day: every single failure, and samples of pairs, tried in a fork of the settled mesh under its traffic, and what
// each did to each flow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "check/game_day/failure.h"
#include "check/traffic/flows.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {

struct GameDayOptions {
  int failures = 1;     // at once: 1 or 2
  size_t sample = 100;  // of pairs, at most
  // Not null: asked before each pair whether there is time for it. Single failures are always tried.
  std::function<bool()> time_left;
  size_t flow_limit = 24;  // where the mesh has no flows of its own
  int64_t rate = 50;       // requests per second and flow, at most
  Duration horizon = 40s;  // virtual time that a failure is watched
  int processes = 0;       // 0: as many as there are processors
  std::function<void(std::string_view)> progress;
};

// Of the requests after the failure. kLost: some failed. Otherwise kMoved: another cluster answers more than a tenth of
// them; kSlower: their p99 is half as much again, and 1 ms more; or none of these.
enum class Fate : uint8_t { kUnharmed, kSlower, kMoved, kLost, kClientGone };
std::string_view FateName(Fate fate);

struct Effect {
  Fate fate = Fate::kUnharmed;
  int64_t sent = 0, failed = 0, retried = 0;
  bool recovered = true;  // nothing failed in the last 5 s
  Duration recovery{};    // from the failure to the last request that failed
  Duration p99_before{}, p99{};
  std::map<std::string, int64_t> by_cluster;  // answered
  std::vector<std::string>
      reasons;  // why requests failed, the most frequent first: "UF,URX ... at 172.30.2.1:15443 (40)"
};

struct Trial {
  std::string failure;             // "gateway istio-eastwestgateway.istio-system@cluster2", or two joined by " and "
  std::vector<Effect> effects;     // by flow
  std::vector<std::string> chain;  // what followed, in order
  int64_t Failed() const;
  bool Recovered() const;
};

// What is single: without it a flow has no way at all; and how much fits between two clusters.
struct WeakPoint {
  std::string flow, point;
};
struct Capacity {
  std::string from, to;
  int gateways = 0;  // gateway pods that traffic can use at once: the max-flow from cluster to cluster
  std::string cut;   // what the smallest cut is
};

struct GameDay {
  std::vector<std::string> flows;
  std::vector<Trial> trials;  // single failures in order, then pairs
  size_t pairs_possible = 0, pairs_tried = 0;
  std::vector<WeakPoint> weak_points;
  std::vector<Capacity> capacities;
  // Trials by harm: those that do not recover, then by how many requests failed.
  std::vector<const Trial*> Worst(size_t count) const;
};

// The mesh's world is left as it was. Errors: the system refuses forks, or a flow cannot be sent.
absl::StatusOr<GameDay> RunGameDay(const Mesh& mesh, const GameDayOptions& options);

// Points of single failure (articulation points between a client and its Service) and capacities (Edmonds and Karp).
std::vector<WeakPoint> WeakPoints(const Mesh& mesh, const std::vector<scenario::FlowSpec>& flows);
std::vector<Capacity> Capacities(const Mesh& mesh);

// Pairs of failure and flow that answered less than `slo_ppm` of their requests. Clients that are gone do not count.
std::vector<std::string> SloBreaches(const GameDay& day, int64_t slo_ppm);

std::string GameDayText(const GameDay& day);
nlohmann::ordered_json GameDayJson(const GameDay& day);

}  // namespace wavetank::check
