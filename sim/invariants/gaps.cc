// I9, I16 and I17: endpoints that proxies lose and get back, and those that they keep for too long.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/istiod/istiod.h"
#include "core/kube/types.h"
#include "core/registry/multicluster/registries.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/held.h"
#include "sim/invariants/look.h"
#include "sim/world_site.h"

namespace wavetank::sim {
namespace {

// What was lost while something was under way, although it was there (Stands), and came back before the next rest.
class Gaps : public Checker {
 protected:
  explicit Gaps(Duration budget) : budget_(budget) {}
  virtual bool Concerns(const std::string& proxy) const = 0;
  virtual Breach Describe(const std::string& proxy, const std::string& what) const = 0;
  virtual bool Watching() const = 0;
  virtual void EndWatch() = 0;
  virtual bool Over() const { return true; }  // at rest: nothing is to be waited for
  // The bug by which the proxy loses an address now; empty: none explains it.
  virtual std::string_view Known(const std::string&, const IpAddress&) const { return {}; }
  // It was to be lost: whoever told of it was told to forget it.
  virtual bool Meant(const IpAddress&) const { return false; }

  // Of every trace event.
  void SeeSlices(const TraceEvent& event) {
    if (event.record.kind != TraceKind::kObjectApplied && event.record.kind != TraceKind::kObjectDeleted) return;
    const ObjectName object = ReadObjectName(world().kernel().names().Text(event.record.object));
    if (object.kind != "EndpointSlice") return;
    // A slice is called as its Service is, with five letters behind it.
    changed_[{std::string(object.ns), std::string(object.name.substr(0, object.name.rfind('-')))}] = world().Now();
  }

  void OnAssignment(const std::string& proxy, const Assignment& now, const Assignment* before) override {
    if (before == nullptr || !Watching() || !Concerns(proxy)) return;
    // Endpoints that went and came again, and of which the proxy was told both.
    const auto changed = changed_.find(ServiceOf(now.cluster));
    if (changed != changed_.end() && world().Now() - changed->second < kTold) return;
    for (const Assignment::Endpoint& e : before->endpoints) {
      if (now.Holds(e.address) || Meant(e.address.ip) || !Stands(world(), now.cluster, e.address.ip)) continue;
      const auto [loss, first] = lost_.try_emplace({proxy, now.cluster, e.address});
      if (first) loss->second = {world().Now(), cause(), Known(proxy, e.address.ip)};
    }
    for (const Assignment::Endpoint& e : now.endpoints) {
      const auto loss = lost_.find({proxy, now.cluster, e.address});
      if (loss == lost_.end()) continue;
      const Duration gap = world().Now() - loss->second.at;
      if (gap > budget_) {
        Breach breach =
            Describe(proxy, fmt::format("{} of {} for {} ms", e.address.ToString(), now.cluster, gap / 1ms));
        breach.key = fmt::format("{}", loss->second.at.time_since_epoch().count());
        breach.cause = loss->second.cause;
        if (breach.known.empty()) breach.known = loss->second.known;
        Tell(proxy + " " + now.cluster + " " + breach.key, {std::move(breach)});
      }
      lost_.erase(loss);
    }
  }
  void AtRest() override {
    if (!Over()) return;
    lost_.clear();
    EndWatch();
  }

 private:
  struct Loss {
    Time at{};
    CauseId cause{};
    std::string_view known;
  };
  static constexpr Duration kTold = 3s;  // a change is everywhere by then, debounced as it may be
  const Duration budget_;
  std::map<std::pair<std::string, std::string>, Time> changed_;  // by namespace and Service: its slices
  std::map<std::tuple<std::string, std::string, SocketAddress>, Loss> lost_;
};

class Restarts final : public Gaps {
 public:
  Restarts() : Gaps(Duration::zero()) {}

 private:
  void OnTrace(const TraceEvent& event) override {
    SeeSlices(event);
    disturbances_.See(world(), event);
    if (event.record.kind == TraceKind::kXdsConnected && event.record.object != kNoName)
      fresh_.insert(world().kernel().names().Text(event.record.subject));
    if (event.record.kind == TraceKind::kClusterRemoved)
      forgotten_.insert(world().kernel().names().Text(event.record.object));
    // A replica that finds a Secret it cannot use has never known the cluster.
    if (event.record.kind == TraceKind::kClusterRejected)
      forgotten_.insert(world().kernel().names().Text(event.record.subject));
    if (event.record.kind == TraceKind::kClusterAdded && event.record.a == 1 && LosesBySwap(world()))
      swapped_.insert(world().kernel().names().Text(event.record.object));
  }
  bool Watching() const override { return !fresh_.empty(); }
  // A replica whose watches are not back yet knows less than the one before it.
  bool Concerns(const std::string& proxy) const override {
    return fresh_.contains(proxy) && (!disturbances_.AnyRecent(world()) || ServesWithoutACluster(proxy));
  }
  void EndWatch() override {
    fresh_.clear();
    // What an istiod still does not know is lost on purpose, however late its proxies come.
    absl::erase_if(forgotten_, [this](const std::string& cluster) { return AllKnow(cluster); });
  }
  // Of a cluster whose remote Secret an istiod was told to forget.
  bool Meant(const IpAddress& ip) const override { return OfAny(forgotten_, ip); }
  // An address of a pod of these clusters, or of a gateway of them or before them.
  bool OfAny(const absl::flat_hash_set<std::string>& names, const IpAddress& ip) const {
    if (names.empty()) return false;
    const std::vector<WorldCluster>& clusters = world().options().clusters;
    for (const WorldCluster& cluster : clusters) {
      if (AnyContains(PodRanges(cluster), ip)) return names.contains(cluster.name);
    }
    bool is_gateway = false;
    for (const WorldCluster& cluster : clusters) {
      for (const kube::ObjectRef& object : world().FindSite(cluster.name)->cluster().api().List("Service")) {
        const auto network = object->meta.labels.find("topology.istio.io/network");
        if (network == object->meta.labels.end()) continue;
        const auto ingress = kube::ParseService(*object).ingress;
        if (std::none_of(ingress.begin(), ingress.end(), [&](const auto& each) { return each.ip == ip.ToString(); }))
          continue;
        is_gateway = true;
        if (names.contains(cluster.name)) return true;
        for (const WorldCluster& behind : clusters) {
          if (behind.mesh_network() == network->second && names.contains(behind.name)) return true;
        }
      }
    }
    return !is_gateway;  // else a node's address, or one that a name stands for: whose it is cannot be told
  }
  bool AllKnow(const std::string& cluster) const {
    const std::vector<ServingIstiod> istiods = ServingIstiods(world());
    return std::all_of(istiods.begin(), istiods.end(), [&](const ServingIstiod& istiod) {
      const auto known = istiod.istiod->registries().secrets().Clusters();
      return istiod.cluster == cluster ||
             std::any_of(known.begin(), known.end(), [&](const auto& each) { return each.id.str() == cluster; });
    });
  }
  std::string_view Known(const std::string& proxy, const IpAddress& ip) const override {
    if (ServesWithoutACluster(proxy)) return "A34";
    return OfAny(swapped_, ip) ? kSwapBug : std::string_view();
  }
  // The proxy's istiod does, and has perhaps given up waiting for it.
  bool ServesWithoutACluster(const std::string& proxy) const {
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      if (!Connections(istiod).contains(proxy)) continue;
      const pilot::Registries& registries = istiod.istiod->registries();
      for (const pilot::SecretController::ClusterState& cluster : registries.secrets().Clusters()) {
        if (registries.ClusterTimedOut(cluster.id) || !registries.ClusterSynced(cluster.id)) return true;
      }
    }
    return false;
  }
  Breach Describe(const std::string& proxy, const std::string& what) const override {
    Breach out;
    out.subject = proxy;
    out.what = "connected anew, and lost " + what;
    return out;
  }
  absl::flat_hash_set<std::string> fresh_, forgotten_;  // proxies, clusters
  absl::flat_hash_set<std::string> swapped_;  // clusters that some istiod read anew, and lost a part of by that
  mutable Disturbances disturbances_;
};

class Blackouts final : public Gaps {
 public:
  Blackouts() : Gaps(1s) {}

 private:
  void OnTrace(const TraceEvent& event) override {
    SeeSlices(event);
    if (event.record.kind == TraceKind::kClusterAdded && event.record.a == 1) updating_ = true;
  }
  bool Watching() const override { return updating_; }
  bool Concerns(const std::string&) const override { return true; }
  void EndWatch() override { updating_ = false; }
  // A registry that cannot read its cluster yet is quiet, too.
  bool Over() const override {
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      const pilot::Registries& registries = istiod.istiod->registries();
      for (const pilot::SecretController::ClusterState& cluster : registries.secrets().Clusters()) {
        if (!cluster.stopped && !registries.ClusterSynced(cluster.id)) return false;
      }
    }
    return true;
  }
  Breach Describe(const std::string& proxy, const std::string& what) const override {
    Breach out;
    out.subject = proxy;
    out.what = "while a remote Secret was changed, it had not " + what;
    if (!Mends(world(), pilot::Change::kGracefulSecretUpdate)) {
      out.known = "L7";
    } else if (LosesBySwap(world())) {
      out.known = kSwapBug;  // until the proxy's next istiod, which has started since
    }
    return out;
  }
  bool updating_ = false;
};

class StaleEndpoints final : public Checker {
  static constexpr Duration kGrace = 30s;

  void OnAssignment(const std::string&, const Assignment& now, const Assignment*) override {
    if (!seen_.insert(now.bytes.get()).second) return;
    for (const Assignment::Endpoint& e : now.endpoints) {
      if (!pods_.contains(e.address.ip) && IsPod(world(), e.address.ip)) pods_.insert(e.address.ip);
    }
    if (seen_.size() > 100'000) seen_.clear();
  }
  void OnTrace(const TraceEvent& event) override {
    disturbances_.See(world(), event);
    if (event.record.kind != TraceKind::kObjectDeleted) return;
    if (world().kernel().names().Text(event.record.object).rfind("Pod/", 0) != 0) return;
    changed_ = true;
    cause_ = event.cause;
  }

  bool Tick() override {
    if (!changed_ && gone_.empty()) return false;
    changed_ = false;
    std::set<std::string_view> alive;
    for (const PodProcess* pod : world().Pods()) alive.insert(pod->name());
    // A proxy that no istiod reaches is told nothing: where istiods are away, proxies keep what they have.
    std::set<std::string> reached;
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      for (const auto& [proxy, connection] : Connections(istiod)) {
        if (!LineIsCut(world(), istiod.cluster, ClusterOf(proxy))) reached.insert(proxy);
      }
    }
    // Nor does anybody learn what an API server hides that answers from the past or not at all, before watches are
    // back.
    std::vector<IpPrefix> hidden;
    for (const WorldCluster& cluster : world().options().clusters) {
      if (!disturbances_.Recent(world(), cluster.name)) continue;
      const std::vector<IpPrefix> ranges = PodRanges(cluster);
      hidden.insert(hidden.end(), ranges.begin(), ranges.end());
    }
    // By address of a pod that is gone: the proxies that still hold it.
    std::map<IpAddress, std::pair<std::string, std::string>> held_still;
    absl::flat_hash_map<const Assignment*, std::vector<IpAddress>> looked;
    for (const auto& [proxy, what] : held().proxies()) {
      if (!alive.contains(proxy) || !reached.contains(proxy)) continue;
      for (const auto& [cluster, assignment] : what.assignments) {
        const auto [it, fresh] = looked.try_emplace(assignment.get());
        if (fresh) {
          for (const Assignment::Endpoint& e : assignment->endpoints) {
            const IpAddress& ip = e.address.ip;
            if (pods_.contains(ip) && !IsPod(world(), ip) && !AnyContains(hidden, ip)) it->second.push_back(ip);
          }
        }
        for (const IpAddress& ip : it->second) held_still.try_emplace(ip, proxy, cluster);
      }
    }
    for (auto it = gone_.begin(); it != gone_.end();) {
      if (held_still.contains(it->first)) {
        ++it;
      } else {
        Holds(it->first.ToString());
        it = gone_.erase(it);
      }
    }
    for (const auto& [ip, where] : held_still) {
      const auto since = gone_.try_emplace(ip, world().Now(), cause_).first->second;
      if (world().Now() - since.first < kGrace) continue;
      Breach breach;
      breach.key = "stale";
      breach.subject = where.first;
      breach.what = fmt::format("{} holds {}, whose pod has gone", where.second, ip.ToString());
      breach.cause = since.second;
      if (Deserted(ip)) breach.known = "L5";
      Tell(ip.ToString(), {std::move(breach)});
    }
    return !gone_.empty();
  }

  // A pod's address of a cluster that an istiod has stopped to watch.
  bool Deserted(const IpAddress& ip) const {
    if (Mends(world(), pilot::Change::kGracefulSecretUpdate)) return false;
    for (const WorldCluster& cluster : world().options().clusters) {
      if (!AnyContains(PodRanges(cluster), ip)) continue;
      for (const ServingIstiod& istiod : ServingIstiods(world())) {
        for (const pilot::SecretController::ClusterState& remote : istiod.istiod->registries().secrets().Clusters()) {
          if (remote.stopped && remote.id.str() == cluster.name) return true;
        }
      }
    }
    return false;
  }

  Disturbances disturbances_;
  absl::flat_hash_set<const void*> seen_;
  absl::flat_hash_set<IpAddress> pods_;  // addresses that were pods' when they were sent
  std::map<IpAddress, std::pair<Time, CauseId>> gone_;
  bool changed_ = false;
  CauseId cause_ = kNoCause;
};

}  // namespace

std::unique_ptr<Checker> MakeRestarts() { return std::make_unique<Restarts>(); }
std::unique_ptr<Checker> MakeBlackouts() { return std::make_unique<Blackouts>(); }
std::unique_ptr<Checker> MakeStaleEndpoints() { return std::make_unique<StaleEndpoints>(); }

}  // namespace wavetank::sim
