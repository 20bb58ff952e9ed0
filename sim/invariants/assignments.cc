// I1 and I4: what each ClusterLoadAssignment must not hold, whoever gets it.
#include <fmt/format.h>

#include "sim/invariants/checkers.h"
#include "sim/invariants/held.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

class ForeignAddresses final : public Checker {
  void OnAssignment(const std::string& proxy, const Assignment& now, const Assignment*) override {
    const std::optional<NetworkIndex> own = NetworkOf(world(), proxy);
    const std::string scope = proxy + " " + now.cluster;
    if (!own) return;
    if (networks_.empty()) networks_ = NetworksOf(world());
    const auto index = static_cast<size_t>(*own);
    if (now.foreign.size() <= index) now.foreign.resize(index + 1);
    if (now.foreign[index] == 0) now.foreign[index] = First(now, *own).second.empty() ? 1 : 2;
    if (now.foreign[index] == 1) return Holds(scope);
    const auto [address, cluster] = First(now, *own);
    Breach breach;
    breach.key = "foreign";
    breach.subject = proxy;
    breach.what = fmt::format("{} holds {}, a pod of {}, which is in another network", now.cluster, address, cluster);
    if (Hostnames(cluster)) breach.known = "L2";
    if (ForgetsNodePorts(world(), cluster)) breach.known = kNodePortBug;
    Tell(scope, {std::move(breach)});
  }

  // The first address that is a pod's elsewhere and none's here, and its cluster; empty: there is none.
  std::pair<std::string, std::string> First(const Assignment& now, NetworkIndex own) const {
    for (const Assignment::Endpoint& e : now.endpoints) {
      if (world().commons().network->Find(own, e.address.ip) != nullptr) continue;
      for (const auto& [network, cluster] : networks_) {
        if (network != own && world().commons().network->Find(network, e.address.ip) != nullptr)
          return {e.address.ToString(), cluster};
      }
    }
    return {};
  }

  bool Hostnames(const std::string& cluster) const {
    for (const WorldCluster& each : world().options().clusters) {
      if (each.name == cluster) return each.load_balancer_hostname;
    }
    return false;
  }

  std::vector<std::pair<NetworkIndex, std::string>> networks_;
};

class AddressesTwice final : public Checker {
  void OnAssignment(const std::string& proxy, const Assignment& now, const Assignment*) override {
    const std::string scope = proxy + " " + now.cluster;
    if (now.twice.empty()) return Holds(scope);
    Breach breach;
    breach.key = "twice";
    breach.subject = proxy;
    breach.what = fmt::format("{} holds {} more than once", now.cluster, now.twice.ToString());
    if (!Mends(world(), pilot::Change::kGatewayOncePerCla) && !IsPod(world(), now.twice.ip)) breach.known = "A01";
    Tell(scope, {std::move(breach)});
  }
};

}  // namespace

std::unique_ptr<Checker> MakeForeignAddresses() { return std::make_unique<ForeignAddresses>(); }
std::unique_ptr<Checker> MakeAddressesTwice() { return std::make_unique<AddressesTwice>(); }

}  // namespace wavetank::sim
