// What several sources saw of the same: one input, with all of its lines.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "import/importer.h"

namespace wavetank::importing {
namespace {

// Between replicas whose clocks are kept by NTP, and whose watches lag differently.
constexpr WallNs kSameChange = 250'000'000;

bool SeenByAllReplicas(InputKind kind) {
  return kind != InputKind::kIstiodStarted && kind != InputKind::kProxyConnected &&
         kind != InputKind::kProxyDisconnected && kind != InputKind::kProxyRefused && kind != InputKind::kTraffic &&
         kind != InputKind::kBehaviour;
}

using Key = std::tuple<InputKind, std::string, std::string, std::string, std::string, std::string, bool, std::string>;
Key KeyOf(const InferredInput& input, const std::string& istiod) {
  return {input.kind, input.cluster,     input.ns,      input.name,
          input.host, input.object_kind, input.initial, ReadFromOwnClusterAlone(input) ? istiod : std::string()};
}

}  // namespace

void Align(Evidence& evidence) {
  std::stable_sort(evidence.inputs.begin(), evidence.inputs.end(),
                   [](const InferredInput& a, const InferredInput& b) { return a.at < b.at; });
  std::stable_sort(evidence.claims.begin(), evidence.claims.end(),
                   [](const Claim& a, const Claim& b) { return a.at < b.at; });
  std::stable_sort(evidence.runs.begin(), evidence.runs.end(),
                   [](const IstiodRun& a, const IstiodRun& b) { return a.from < b.from; });
  std::map<std::string, std::string> cluster_of;  // by replica
  for (const IstiodRun& run : evidence.runs) cluster_of[run.replica] = run.cluster;
  // The latest of each key, and which replicas it has been told by.
  std::map<Key, std::vector<size_t>> latest;
  std::vector<InferredInput> merged;
  std::vector<std::vector<std::string>> told;
  for (InferredInput& input : evidence.inputs) {
    if (SeenByAllReplicas(input.kind)) {
      bool same = false;
      std::vector<size_t>& recent = latest[KeyOf(input, cluster_of[input.replica])];
      for (const size_t at : recent) {
        std::vector<std::string>& replicas = told[at];
        if (input.at - merged[at].at > kSameChange ||
            std::find(replicas.begin(), replicas.end(), input.replica) != replicas.end()) {
          continue;
        }
        merged[at].also.push_back(input.place);
        merged[at].also_of.push_back(input.replica);
        // Of two that know it differently, the one that knows it better.
        if (merged[at].change.empty()) merged[at].change = input.change;
        if (merged[at].clusters.empty()) merged[at].clusters = input.clusters;
        replicas.push_back(input.replica);
        same = true;
        break;
      }
      if (same) continue;
      std::erase_if(recent, [&](size_t at) { return input.at - merged[at].at > kSameChange; });
      recent.push_back(merged.size());
    }
    told.push_back({input.replica});
    merged.push_back(std::move(input));
  }
  // A remote Secret is one of those that other istiods see as any Secret of a cluster that they read.
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<WallNs, std::string>>> remote;
  for (const InferredInput& input : merged) {
    if (input.kind == InputKind::kRemoteSecret) remote[{input.ns, input.name}].emplace_back(input.at, input.replica);
  }
  std::erase_if(merged, [&](const InferredInput& input) {
    if (input.kind != InputKind::kSecret) return false;
    const auto it = remote.find({input.ns, input.name});
    return it != remote.end() && std::any_of(it->second.begin(), it->second.end(), [&](const auto& seen) {
             return seen.second != input.replica && std::abs(seen.first - input.at) <= kSameChange;
           });
  });
  evidence.inputs = std::move(merged);
}

}  // namespace wavetank::importing
