#include "import/skeleton/places.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "fmt/format.h"
#include "import/skeleton/parts.h"

namespace wavetank::importing {

using Kind = InputKind;

Places::Places(const Evidence& evidence, const DumpedPlaces* dumped) : evidence_(evidence), dumped_(dumped) {
  FindClusters();
  FindSecretsOfBefore();
  PlaceInputs();
}

void Places::FindClusters() {
  std::set<std::string>& primaries = primaries_;
  // A log that does not say whose it is: of the first istiod that dumps hold.
  if (dumped_ != nullptr && (evidence_.runs.empty() || evidence_.runs.front().cluster.empty())) {
    primary_ = dumped_->primary;
  }
  std::set<std::string> all;
  for (const IstiodRun& run : evidence_.runs) {
    if (!run.cluster.empty()) primaries.insert(run.cluster);
    if (primary_.empty()) primary_ = run.cluster;
    if (std::string& known = istiod_of_[run.replica]; !run.cluster.empty() || known.empty()) known = run.cluster;
    replica_of_.try_emplace(run.cluster, run.replica);
  }
  if (primary_.empty()) {
    primary_ = "primary";
    notes_.push_back("no line tells the istiod's own cluster; it is called 'primary'");
  }
  primaries.insert(primary_);
  all = primaries;
  for (const InferredInput& input : evidence_.inputs) {
    for (const auto& [cluster, effect] : input.clusters) all.insert(cluster);
    // With dumps, traffic is of the pods that they hold.
    if (!input.cluster.empty() && (dumped_ == nullptr || !IsTraffic(input))) all.insert(input.cluster);
  }
  if (dumped_ != nullptr) all.insert(dumped_->clusters.begin(), dumped_->clusters.end());
  clusters_ = std::move(all);
}

const std::string& Places::Home(const std::string& replica) const {
  const auto it = istiod_of_.find(replica);
  return it == istiod_of_.end() || it->second.empty() ? primary_ : it->second;
}
int Places::NumberOf(const std::string& cluster) const {
  if (cluster == primary_) return 0;
  return 1 + static_cast<int>(std::distance(clusters_.begin(), clusters_.find(cluster)));
}

// A log that begins later than its istiod does not tell which clusters that istiod had read by then: those whose
// first line is no addition, and, where other istiods' logs show the same changes of Services, their clusters.
void Places::FindSecretsOfBefore() {
  std::set<std::string> from_start;
  for (const InferredInput& input : evidence_.inputs) {
    if (input.kind == Kind::kIstiodStarted && input.initial) from_start.insert(Home(input.replica));
  }
  std::map<std::string, std::set<std::string>> spoken_of;  // by istiod's cluster
  const auto read_before = [&](const std::string& istiod, const std::string& cluster, std::string ns,
                               std::string name) {
    if (istiod == cluster || from_start.contains(istiod)) return;
    if (dumped_ != nullptr && dumped_->remotes.contains({istiod, cluster})) return;
    if (!spoken_of[istiod].insert(cluster).second) return;
    InferredInput& secret = before_.emplace_back();
    secret.kind = Kind::kRemoteSecret;
    secret.initial = true;
    secret.replica = replica_of_[istiod];
    secret.ns = std::move(ns);
    secret.name = std::move(name);
    secret.clusters = {{cluster, "added"}};
  };
  for (const InferredInput& input : evidence_.inputs) {
    const std::string& istiod = Home(input.replica);
    if (input.kind == Kind::kRemoteSecret) {
      for (const auto& [cluster, effect] : input.clusters) {
        if (effect == "updated" || effect == "unchanged" || effect == "removed") {
          read_before(istiod, cluster, input.ns, input.name);
        } else {
          spoken_of[istiod].insert(cluster);
        }
      }
      continue;
    }
    if (ReadFromOwnClusterAlone(input)) continue;
    if (input.kind == Kind::kEndpoints && !input.cluster.empty()) {
      read_before(istiod, input.cluster, kSystemNamespace, "istio-remote-secret-" + input.cluster);
    }
    for (const std::string& replica : input.also_of) {
      const std::string& other = Home(replica);
      read_before(istiod, other, kSystemNamespace, "istio-remote-secret-" + other);
      read_before(other, istiod, kSystemNamespace, "istio-remote-secret-" + istiod);
    }
  }
  if (!before_.empty()) {
    notes_.push_back(
        fmt::format("{} remote clusters are taken as read since before the logs begin, by what lines tell of them",
                    before_.size()));
  }
}

// Where each change is made, if no line tells: of several istiods' clusters that which those read that saw it. A
// single istiod sees all alike, wherever they are made.
void Places::PlaceInputs() {
  placed_.resize(evidence_.inputs.size());
  std::map<std::string, std::set<std::string>> reads;  // remote clusters, by istiod's
  std::map<std::string, std::string> last;             // of a host
  std::set<DumpedPlaces::InCluster> emptied;           // cluster and host
  const auto follow = [&](const InferredInput& input) {
    for (const auto& [cluster, effect] : input.clusters) {
      if (effect == "added" || effect == "updated") reads[Home(input.replica)].insert(cluster);
      if (effect == "removed") reads[Home(input.replica)].erase(cluster);
    }
  };
  for (const InferredInput& secret : before_) follow(secret);
  if (dumped_ != nullptr) {
    for (const auto& [istiod, cluster] : dumped_->remotes) reads[istiod].insert(cluster);
    for (const InferredInput& input : evidence_.inputs) {
      // Until it comes, as lines tell.
      if (input.kind != Kind::kRemoteSecret || input.initial) continue;
      for (const auto& [cluster, effect] : input.clusters) {
        if (effect == "added") reads[Home(input.replica)].erase(cluster);
      }
    }
  }
  for (size_t i = 0; i < evidence_.inputs.size(); ++i) {
    const InferredInput& input = evidence_.inputs[i];
    if (input.kind == Kind::kRemoteSecret) {
      follow(input);
      continue;
    }
    placed_[i] = ReadFromOwnClusterAlone(input) ? Home(input.replica) : input.cluster;
    const bool toZero = input.kind == Kind::kEndpoints && input.change == "toZero";
    if (primaries_.size() == 1) {
      placed_[i] = input.cluster;
      if (dumped_ == nullptr) continue;
    }
    if (!input.cluster.empty()) reads[Home(input.replica)].insert(input.cluster);
    if (!placed_[i].empty()) {
      if (toZero) emptied.emplace(placed_[i], input.host);
      continue;
    }
    std::set<std::string> seers = {Home(input.replica)};
    for (const std::string& replica : input.also_of) seers.insert(Home(replica));
    const std::string& usual = last[input.host];
    size_t best = SIZE_MAX;
    for (const std::string& cluster : clusters_) {
      size_t apart = 0;
      for (const std::string& istiod : primaries_) {
        const bool sees = istiod == cluster || reads[istiod].contains(cluster);
        apart += sees != seers.contains(istiod) ? 1 : 0;
      }
      // An istiod sees its own cluster before those that are a line away.
      const size_t rank = 128 * apart + 8 * UnlikelyIn(cluster, input, emptied) +
                          (cluster == Home(input.replica) ? 0
                           : cluster == usual             ? 1
                           : cluster == primary_          ? 2
                           : primaries_.contains(cluster) ? 3
                                                          : 4);
      if (rank >= best) continue;
      best = rank;
      placed_[i] = cluster;
    }
    if (!input.host.empty()) last[input.host] = placed_[i];
    if (input.kind == Kind::kEndpoints) Filled(input, placed_[i], emptied);
  }
}

// Of those that one burst merges, lines name one: what had come by then came with it.
void Places::Filled(const InferredInput& input, const std::string& placed,
                    std::set<DumpedPlaces::InCluster>& emptied) const {
  emptied.erase({placed, input.host});
  if (dumped_ == nullptr) return;
  std::erase_if(emptied, [&](const DumpedPlaces::InCluster& one) {
    if (one.second != input.host) return false;
    const auto pods = dumped_->pods_of.find({one.first, input.host.substr(0, input.host.find(".svc."))});
    return pods != dumped_->pods_of.end() &&
           std::any_of(pods->second.begin(), pods->second.end(), [&](WallNs at) { return at <= input.at; });
  });
}

// How little a dump speaks for it that this happened in that cluster: 0 to 15.
size_t Places::UnlikelyIn(const std::string& cluster, const InferredInput& input,
                          const std::set<DumpedPlaces::InCluster>& emptied) const {
  if (dumped_ == nullptr) return 0;
  if (input.kind == Kind::kGateway) return GatewayUnlikelyIn(cluster, input);
  // Of a cluster without a dump nothing speaks for or against it.
  if (!dumped_->clusters.contains(cluster) || !IsKubernetesHost(input.host) || input.kind == Kind::kNetwork) return 4;
  const DumpedPlaces::InCluster service{cluster, input.host.substr(0, input.host.find(".svc."))};
  if (!dumped_->services.contains(service)) return 12;
  if (input.kind != Kind::kEndpoints) return 4;
  const auto pods = dumped_->pods_of.find(service);
  if (pods == dumped_->pods_of.end() || pods->second.empty()) return 6;
  if (emptied.contains({cluster, input.host})) return 1;
  // Pods that came then, or are about to be ready.
  constexpr WallNs kSecond = 1'000'000'000, kStarts = 120 * kSecond;
  return std::any_of(pods->second.begin(), pods->second.end(),
                     [&](WallNs at) { return at != kNoTime && at <= input.at + kSecond && input.at <= at + kStarts; })
             ? 2
             : 4;
}
// A gateway whose endpoints went in the same moment has gone itself, or its pods have. A dump lacks those that went.
size_t Places::GatewayUnlikelyIn(const std::string& cluster, const InferredInput& input) const {
  constexpr WallNs kOnce = 250'000'000;  // as align.cc takes what several istiods see for one
  std::set<std::string> names;
  bool has = false;
  for (const auto& [its, name] : dumped_->gateways) {
    names.insert(name);
    has = has || its == cluster;
  }
  for (const InferredInput& other : evidence_.inputs) {
    if (other.kind != Kind::kEndpoints || other.change != "toZero" || other.cluster != cluster) continue;
    if (!IsKubernetesHost(other.host) || !names.contains(other.host.substr(0, other.host.find(".svc.")))) continue;
    has = true;
    if (std::abs(other.at - input.at) <= kOnce) return 0;
  }
  return has ? 4 : dumped_->clusters.contains(cluster) ? 12 : 8;
}

}  // namespace wavetank::importing
