// The elections that one istiod takes part in at one cluster (istiod: pilot/pkg/leaderelection/leaderelection.go).
//
// An istiod of the default revision takes locks from those of other revisions, and one takes them from an istiod of
// another cluster with the same revision.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/election/leader_election.h"
#include "core/kube/informer.h"

namespace wavetank::election {

inline constexpr std::string_view kNamespaceController = "istio-namespace-controller-election";
inline constexpr std::string_view kIngressController = "istio-leader";
inline constexpr std::string_view kGatewayStatusController = "istio-gateway-status-leader";
inline constexpr std::string_view kStatusController = "istio-status-leader";
inline constexpr std::string_view kAnalyzeController = "istio-analyze-leader";
// The one whose lock is a Lease, one for each revision.
inline constexpr std::string_view kGatewayDeploymentController = "istio-gateway-deployment";

class ClusterElections {
 public:
  struct Options {
    std::string ns = "istio-system", identity, revision;
    bool remote = false;      // istiod's own cluster is another one
    bool enabled = true;      // ENABLE_LEADER_ELECTION; without it everybody leads
    bool prioritized = true;  // PRIORITIZED_LEADER_ELECTION
    uint64_t seed = 0;
  };

  // `host` and `client` outlive it; `contested` as LeaderElection's.
  ClusterElections(Host& host, kube::Client& client, Options options, std::function<bool()> contested, LogSink log);
  ~ClusterElections();

  // Takes part in that election: `started` runs when this istiod leads, `stopped` when it does no more.
  void Join(std::string_view id, std::function<void()> started, std::function<void()> stopped);
  // Asks anew whether somebody else may want to lead.
  void Reconsider();
  // The process ends in order: all work of the leader stops, all locks are handed back, then `ended` is called.
  void Stop(std::function<void()> ended);

  // What nobody has written of what this istiod holds.
  std::vector<nlohmann::json> Unwritten() const;
  bool Leads(std::string_view id) const;

 private:
  bool Evicts(const std::string& holder_key) const;
  void FollowDefaultRevision();

  Host& host_;
  kube::Client& client_;
  const Options options_;
  const std::function<bool()> contested_;
  const LogSink log_;
  std::unique_ptr<kube::Informer> default_tag_;  // null: no election has needed it yet
  std::vector<std::unique_ptr<LeaderElection>> elections_;
  std::vector<std::function<void()>> unasked_;  // of work that goes on without elections: its end
};

}  // namespace wavetank::election
