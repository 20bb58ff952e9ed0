// I10, I11 and I12: what proxies hold, however it came, held against what istiod would generate for them now, of all
// that they ask for and without a cache.
#include <fmt/format.h>

#include "core/gen/cds/cds.h"
#include "core/gen/eds/eds.h"
#include "core/istiod/istiod.h"
#include "core/registry/multicluster/registries.h"
#include "core/xds/discovery_server.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/held.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

using pilot::XdsType;

enum class Which : uint8_t { kCache, kDelta, kMerge };

class Twins final : public Checker {
 public:
  explicit Twins(Which which) : which_(which) {}

 private:
  static constexpr size_t kAtATime = 2;  // proxies at each rest, in turn

  void OnTrace(const TraceEvent& event) override {
    if (event.record.kind == TraceKind::kXdsSent) pushed_ = true;
    // What a proxy was sent before the watch began is not known.
    if (event.record.kind == TraceKind::kXdsConnected && event.record.object != kNoName)
      seen_.insert(world().kernel().names().Text(event.record.subject));
  }

  void AtRest() override {
    if (!std::exchange(pushed_, false) && doubtful_.empty()) return;
    struct Client {
      const ServingIstiod* istiod;
      const pilot::Connection* connection;
    };
    std::map<std::string, Client> clients;
    const std::vector<ServingIstiod> istiods = ServingIstiods(world());
    for (const ServingIstiod& istiod : istiods) {
      if (!istiod.istiod->Idle()) continue;
      for (const auto& [name, connection] : Connections(istiod)) {
        if (seen_.contains(name) && connection->delta() == (which_ == Which::kDelta) &&
            !LineIsCut(world(), istiod.cluster, ClusterOf(name)))
          clients[name] = {&istiod, connection};
      }
    }
    std::set<std::string> look = std::exchange(doubtful_, {});
    auto next = clients.upper_bound(last_);
    for (size_t i = 0; i < std::min(kAtATime, clients.size()); ++i) {
      if (next == clients.end()) next = clients.begin();
      look.insert(last_ = next->first);
      ++next;
    }
    for (const std::string& name : look) {
      const auto client = clients.find(name);
      const Held::Proxy* const has = held().Find(name);
      if (client == clients.end() || has == nullptr) {
        Tell(name, {});
        continue;
      }
      std::vector<Breach> breaches;
      if (which_ != Which::kMerge)
        Compare(name, *has, *client->second.istiod->istiod, *client->second.connection, XdsType::kEds, &breaches);
      if (which_ != Which::kCache)
        Compare(name, *has, *client->second.istiod->istiod, *client->second.connection, XdsType::kCds, &breaches);
      if (!breaches.empty()) {
        doubtful_.insert(name);
        // A cluster that is read anew has left the index, and nobody was told; endpoints come back when it was read.
        if (ReadsAnew(*client->second.istiod->istiod)) {
          for (Breach& breach : breaches) breach.known = "L7";
        }
      }
      Tell(name, std::move(breaches), 30s);
    }
  }

  bool ReadsAnew(const pilot::Istiod& istiod) const {
    if (Mends(world(), pilot::Change::kGracefulSecretUpdate)) return false;
    const pilot::Registries& registries = istiod.registries();
    for (const pilot::SecretController::ClusterState& cluster : registries.secrets().Clusters()) {
      if (!cluster.stopped && (registries.ClusterTimedOut(cluster.id) || !registries.ClusterSynced(cluster.id)))
        return true;
    }
    return false;
  }

  void Compare(const std::string& name, const Held::Proxy& has, const pilot::Istiod& istiod,
               const pilot::Connection& connection, XdsType type, std::vector<Breach>* breaches) {
    const pilot::Proxy& proxy = connection.proxy();
    const auto watched = proxy.watched_resources.find(type);
    if (watched == proxy.watched_resources.end() || watched->second.nonce_sent.empty()) return;
    pilot::PushRequest request;
    request.full = true;
    request.push = istiod.discovery().last_push_context();
    // Generators of their own: what a generator remembers of a proxy is part of what it does.
    const std::unique_ptr<pilot::Generator> generator =
        type == XdsType::kEds ? pilot::MakeEdsGenerator({nullptr}) : pilot::MakeCdsGenerator({nullptr});
    const pilot::GeneratedResources made = generator->Generate(proxy, watched->second, request);
    std::map<std::string_view, BytesRef> held_now;
    if (type == XdsType::kEds) {
      for (const auto& [cluster, assignment] : has.assignments) held_now[cluster] = assignment->bytes;
    } else {
      held_now = has.Resources(type);
    }
    for (const pilot::Resource& resource : made.resources) {
      const auto there = held_now.find(resource.name);
      if (there != held_now.end() && (there->second == resource.bytes || *there->second == *resource.bytes)) {
        continue;
      }
      Breach breach;
      breach.key = fmt::format("{} {}", pilot::ShortTypeName(type), resource.name);
      breach.subject = name;
      breach.what = fmt::format("{} {} {}", there == held_now.end() ? "lacks" : "holds another version of",
                                pilot::ShortTypeName(type), resource.name);
      breaches->push_back(std::move(breach));
    }
  }

  const Which which_;
  bool pushed_ = false;
  std::string last_;
  std::set<std::string> seen_, doubtful_;
};

}  // namespace

std::unique_ptr<Checker> MakeCacheTwins() { return std::make_unique<Twins>(Which::kCache); }
std::unique_ptr<Checker> MakeDeltaTwins() { return std::make_unique<Twins>(Which::kDelta); }
std::unique_ptr<Checker> MakeMergeTwins() { return std::make_unique<Twins>(Which::kMerge); }

}  // namespace wavetank::sim
