// I14, I19 and I20: what becomes of responses at proxies, and who is connected.
#include <fmt/format.h>

#include <set>

#include "sim/invariants/checkers.h"
#include "sim/invariants/held.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

using pilot::XdsType;

class Warming final : public Checker {
  static constexpr Duration kLimit = 30s;
  using Key = std::pair<NameId, NameId>;  // proxy, type

  void OnTrace(const TraceEvent& event) override {
    const TraceRecord& r = event.record;
    switch (r.kind) {
      case TraceKind::kXdsReceived:
        waiting_.try_emplace({r.subject, r.object}, event.time, event.cause);
        break;
      case TraceKind::kXdsApplied:
      case TraceKind::kXdsNack:
        End({r.subject, r.object});
        break;
      case TraceKind::kXdsDisconnected:
        for (auto it = waiting_.lower_bound({r.subject, kNoName});
             it != waiting_.end() && it->first.first == r.subject;)
          End((it++)->first);
        break;
      default:
        break;
    }
  }
  // By value: callers name the entry that goes.
  void End(Key key) {
    if (waiting_.erase(key) > 0) Holds(Scope(key));
  }
  std::string Scope(const Key& key) const {
    const NameTable& names = world().kernel().names();
    return names.Text(key.first) + " " + names.Text(key.second);
  }

  bool Tick() override {
    std::set<std::string_view> alive;
    std::optional<std::set<std::string>> reached;  // looked up when something is overdue
    const NameTable& names = world().kernel().names();
    if (!waiting_.empty()) {
      for (const PodProcess* pod : world().Pods()) alive.insert(pod->name());
    }
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      auto& [key, since] = *it++;
      if (!alive.contains(names.Text(key.first))) {
        End(key);
      } else if (world().Now() - since.first > kLimit) {
        if (!reached) reached = Reached();
        if (!reached->contains(names.Text(key.first))) {
          since.first = world().Now();  // what it waits for nobody can send it
          continue;
        }
        Breach breach;
        breach.key = "warming";
        breach.subject = names.Text(key.first);
        breach.what = fmt::format("received {} {} s ago, and it is not in force", names.Text(key.second),
                                  (world().Now() - since.first) / 1s);
        breach.cause = since.second;
        Tell(Scope(key), {std::move(breach)});
      }
    }
    return !waiting_.empty();
  }

  // Proxies whose istiod can tell them something.
  std::set<std::string> Reached() const {
    std::set<std::string> out;
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      for (const auto& [name, connection] : Connections(istiod)) {
        if (!LineIsCut(world(), istiod.cluster, ClusterOf(name))) out.insert(name);
      }
    }
    return out;
  }

  std::map<Key, std::pair<Time, CauseId>> waiting_;
};

class TrueConnections final : public Checker {
  void AtRest() override { Look(); }
  bool Tick() override { return Look(); }

  bool Look() {
    if (world().commons().ads_elsewhere != nullptr) return false;
    std::map<std::string_view, const PodProcess*> pods;
    for (const PodProcess* pod : world().Pods()) pods[pod->name()] = pod;
    bool doubt = false;
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      std::vector<Breach> breaches;
      for (const auto& [name, connection] : Connections(istiod)) {
        const auto pod = pods.find(name);
        if (pod != pods.end() && pod->second->envoy() != nullptr && pod->second->envoy()->ads_connected()) continue;
        // Real clients are no pods of this world.
        if (world().FindSite(ClusterOf(name)) == nullptr) continue;
        // Nobody hears the end of a stream over a cut line.
        if (LineIsCut(world(), istiod.cluster, ClusterOf(name))) continue;
        Breach breach;
        breach.key = name;
        breach.subject = istiod.name;
        breach.what =
            fmt::format("counts {} as connected, which {}", name, pod == pods.end() ? "runs no more" : "has no stream");
        breaches.push_back(std::move(breach));
      }
      doubt = doubt || !breaches.empty();
      Tell(istiod.name, std::move(breaches), 60s);
    }
    return doubt;
  }
};

class NackIsolation final : public Checker {
  void OnTrace(const TraceEvent& event) override {
    const TraceRecord& r = event.record;
    const bool of_list = r.kind == TraceKind::kXdsNack || r.kind == TraceKind::kXdsAck;
    if (!of_list) return;
    const NameTable& names = world().kernel().names();
    const std::string& type = names.Text(r.object);
    if (type != "CDS" && type != "LDS") return;
    const std::pair<std::string, bool> key{names.Text(r.subject), type == "CDS"};
    if (r.kind == TraceKind::kXdsNack) {
      refused_[key] = {std::string(r.detail), event.cause};
    } else if (refused_.erase(key) > 0) {
      Holds(key.first + (key.second ? " CDS" : " LDS"));
    }
  }

  void AtRest() override {
    for (const auto& [key, refusal] : refused_) {
      const PodProcess* const pod = world().FindPod(key.first);
      const Held::Proxy* const has = held().Find(key.first);
      if (pod == nullptr || pod->envoy() == nullptr || has == nullptr) continue;
      const std::vector<std::string> active = key.second ? pod->envoy()->ClusterNames() : pod->envoy()->ListenerNames();
      const std::set<std::string_view> there(active.begin(), active.end());
      std::vector<Breach> breaches;
      for (const auto& [name, bytes] : has->Resources(key.second ? XdsType::kCds : XdsType::kLds)) {
        if (there.contains(name) || refusal.first.find(name) != std::string::npos) continue;
        Breach breach;
        breach.key = name;
        breach.subject = key.first;
        breach.what = fmt::format("has no {}, which it did not refuse; it refused: {}", name, refusal.first);
        breach.cause = refusal.second;
        breaches.push_back(std::move(breach));
      }
      Tell(key.first + (key.second ? " CDS" : " LDS"), std::move(breaches), 30s);
    }
  }

  std::map<std::pair<std::string, bool>, std::pair<std::string, CauseId>> refused_;
};

}  // namespace

std::unique_ptr<Checker> MakeWarming() { return std::make_unique<Warming>(); }
std::unique_ptr<Checker> MakeConnections() { return std::make_unique<TrueConnections>(); }
std::unique_ptr<Checker> MakeNackIsolation() { return std::make_unique<NackIsolation>(); }

}  // namespace wavetank::sim
