// Where things are: which clusters there are, which have an istiod, and in which of them each change was made, as far
// as lines, dumps and what several istiods saw of it tell.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "import/evidence/evidence.h"

namespace wavetank::importing {

// What dumps tell of where things are, by the clusters' names: lines leave it open.
struct DumpedPlaces {
  std::string primary;             // where the first istiod is
  std::set<std::string> clusters;  // that dumps hold
  using InCluster = std::pair<std::string, std::string>;
  std::set<InCluster> services;                      // "NAME.NAMESPACE"
  std::set<InCluster> gateways;                      // those that are network gateways
  std::map<InCluster, std::vector<WallNs>> pods_of;  // of a service's slices: when its pods were created
  std::map<std::string, std::string> accounts;       // of the pods of "NAME.NAMESPACE"
  std::set<InCluster> remotes;                       // clusters that a remote Secret of that cluster names
  std::map<std::pair<std::string, std::string>, std::string> pods;  // namespace and name; cluster
};

class Places {
 public:
  // `dumped`: null if there are no dumps. Both are kept, not copied.
  Places(const Evidence& evidence, const DumpedPlaces* dumped);

  const std::string& primary() const { return primary_; }  // where the first istiod is, and what no line places
  const std::set<std::string>& primaries() const { return primaries_; }  // with an istiod
  const std::set<std::string>& clusters() const { return clusters_; }
  // The cluster of the istiod whose log it is.
  const std::string& Home(const std::string& replica) const;
  // Each has another; the primary's is 0.
  int NumberOf(const std::string& cluster) const;
  // The cluster in which the input of that place in the evidence was made; empty: nothing tells.
  const std::string& Of(size_t input) const { return placed_[input]; }
  // Remote Secrets that were there before the logs begin.
  const std::vector<InferredInput>& before() const { return before_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void FindClusters();
  void FindSecretsOfBefore();
  void PlaceInputs();
  void Filled(const InferredInput& input, const std::string& placed, std::set<DumpedPlaces::InCluster>& emptied) const;
  size_t UnlikelyIn(const std::string& cluster, const InferredInput& input,
                    const std::set<DumpedPlaces::InCluster>& emptied) const;
  size_t GatewayUnlikelyIn(const std::string& cluster, const InferredInput& input) const;

  const Evidence& evidence_;
  const DumpedPlaces* const dumped_;
  std::string primary_;
  std::set<std::string> primaries_, clusters_;
  std::map<std::string, std::string> istiod_of_, replica_of_;  // cluster by replica, a replica by cluster
  std::vector<InferredInput> before_;
  std::vector<std::string> placed_;  // by input
  std::vector<std::string> notes_;
};

}  // namespace wavetank::importing
