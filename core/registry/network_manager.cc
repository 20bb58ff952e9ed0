#include "core/registry/network_manager.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/assert.h"
#include "core/base/ip.h"
#include "core/config/mesh/mesh_networks.h"
#include "core/profile/changes.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

// istiod: MinGatewayTTL and the retry of names that do not resolve.
constexpr Duration kMinGatewayTtl = 30s;

class View final : public NetworkGateways {
 public:
  View(std::vector<NetworkGateway> gateways, bool multi_network, std::shared_ptr<const NetworkGateways> unresolved,
       uint32_t scale_of_none)
      : all_(std::move(gateways)), multi_(multi_network), unresolved_(std::move(unresolved)) {
    if (all_.empty()) lcm_ = scale_of_none;
    // istiod sorts by address, then port; what is equal in both is ordered here by cluster, for want of an order there.
    std::sort(all_.begin(), all_.end(), [](const NetworkGateway& a, const NetworkGateway& b) {
      return std::tie(a.addr, a.port, a.network, a.cluster) < std::tie(b.addr, b.port, b.network, b.cluster);
    });
    for (const NetworkGateway& gateway : all_) {
      by_network_[gateway.network].push_back(gateway);
      by_network_and_cluster_[{gateway.network, gateway.cluster}].push_back(gateway);
    }
    for (const auto& [network, group] : by_network_) lcm_ = std::lcm(lcm_, static_cast<uint32_t>(group.size()));
    for (const auto& [key, group] : by_network_and_cluster_) lcm_ = std::lcm(lcm_, static_cast<uint32_t>(group.size()));
    WAVETANK_ASSERT(all_.empty() || lcm_ > 0, lcm_);  // every weight is multiplied by it
  }

  bool IsMultiNetworkEnabled() const override { return multi_; }
  uint32_t LbWeightScaleFactor() const override { return lcm_; }
  const std::vector<NetworkGateway>& All() const override { return all_; }
  const NetworkGateways& Unresolved() const override { return unresolved_ == nullptr ? *this : *unresolved_; }
  const std::vector<NetworkGateway>& ForNetwork(const NetworkId& network) const override {
    const auto it = by_network_.find(network);
    return it == by_network_.end() ? none_ : it->second;
  }
  const std::vector<NetworkGateway>& ForNetworkAndCluster(const NetworkId& network,
                                                          const ClusterId& cluster) const override {
    const auto it = by_network_and_cluster_.find({network, cluster});
    return it == by_network_and_cluster_.end() ? none_ : it->second;
  }

 private:
  std::vector<NetworkGateway> all_, none_;
  bool multi_;
  std::shared_ptr<const NetworkGateways> unresolved_;
  uint32_t lcm_ = 1;
  std::map<NetworkId, std::vector<NetworkGateway>> by_network_;
  std::map<std::pair<NetworkId, ClusterId>, std::vector<NetworkGateway>> by_network_and_cluster_;
};

}  // namespace

std::shared_ptr<const NetworkGateways> MakeNetworkGateways(std::vector<NetworkGateway> gateways, bool multi_network,
                                                           std::shared_ptr<const NetworkGateways> unresolved,
                                                           uint32_t scale_of_none) {
  return std::make_shared<View>(std::move(gateways), multi_network, std::move(unresolved), scale_of_none);
}

// Shows what the manager knows by now; outlives it in contexts that stand longer.
class NetworkManager::Live final : public NetworkGateways {
 public:
  explicit Live(std::shared_ptr<const NetworkGateways> view) : view_(std::move(view)) {}
  void Show(std::shared_ptr<const NetworkGateways> view) { view_ = std::move(view); }

  bool IsMultiNetworkEnabled() const override { return view_->IsMultiNetworkEnabled(); }
  uint32_t LbWeightScaleFactor() const override { return view_->LbWeightScaleFactor(); }
  const std::vector<NetworkGateway>& All() const override { return view_->All(); }
  const NetworkGateways& Unresolved() const override { return view_->Unresolved(); }
  const std::vector<NetworkGateway>& ForNetwork(const NetworkId& network) const override {
    return view_->ForNetwork(network);
  }
  const std::vector<NetworkGateway>& ForNetworkAndCluster(const NetworkId& network,
                                                          const ClusterId& cluster) const override {
    return view_->ForNetworkAndCluster(network, cluster);
  }

 private:
  std::shared_ptr<const NetworkGateways> view_;
};

NetworkManager::NetworkManager(Host& host, XdsUpdater& updater, GatewayResolver* resolver, GatewaySource registries,
                               NetworksSource networks, const Profile& profile)
    : host_(host),
      updater_(updater),
      resolver_(resolver),
      registries_(std::move(registries)),
      networks_(std::move(networks)),
      profile_(profile),
      // istiod works the factor out when gateways change for the first time.
      live_(std::make_shared<Live>(
          MakeNetworkGateways({}, false, nullptr, profile.Has(Change::kResolvedGatewaysDecide) ? 0 : 1))),
      trace_name_(host.Intern("network manager")) {}

NetworkManager::~NetworkManager() {
  for (const auto& [hostname, name] : names_) host_.Cancel(name.refresh);
}

std::shared_ptr<const NetworkGateways> NetworkManager::Gateways() const { return live_; }
void NetworkManager::Show(std::shared_ptr<const NetworkGateways> view) { live_->Show(std::move(view)); }

void NetworkManager::Reload() {
  log({.scope = "model", .text = "reloading network gateways"});
  std::set<NetworkGateway> gateways;
  if (const auto networks = networks_()) {
    for (const auto& [network, spec] : networks->networks) {
      for (const auto& gateway : spec.gateways) {
        if (!gateway.address.empty()) gateways.insert({NetworkId(network), ClusterId(), gateway.address, gateway.port});
      }
    }
  }
  for (NetworkGateway& gateway : registries_()) gateways.insert(std::move(gateway));
  // Before names are resolved: a gateway whose name does not resolve still says that there are several networks.
  const bool multi_network = !gateways.empty();

  std::set<NetworkGateway> resolved;
  std::map<std::string, size_t> names;  // and how many gateways have it
  for (const NetworkGateway& gateway : gateways) {
    if (IsIpAddress(gateway.addr)) {
      resolved.insert(gateway);
      continue;
    }
    ++names[gateway.addr];
    for (const std::string& address : ResolveCached(gateway.addr)) {
      NetworkGateway copy = gateway;
      copy.addr = address;
      resolved.insert(std::move(copy));
    }
  }
  for (const auto& [hostname, count] : names) {
    if (log && names_.at(hostname).addresses.empty()) SayUnresolved(hostname, count);
  }
  // Names that nobody uses any more are no longer looked after.
  for (auto it = names_.begin(); it != names_.end();) {
    if (names.count(it->first) != 0) {
      ++it;
      continue;
    }
    host_.Cancel(it->second.refresh);
    it = names_.erase(it);
  }

  if (profile_.Has(Change::kResolvedGatewaysDecide)) {
    const size_t count = resolved.size();
    if (UpdateViews(std::move(resolved), gateways)) Changed(count);
    return;
  }
  const std::vector<NetworkGateway>& before = live_->All();
  const bool changed = std::set<NetworkGateway>(before.begin(), before.end()) != resolved;
  if (!changed && multi_network == live_->IsMultiNetworkEnabled()) return;
  Show(MakeNetworkGateways({resolved.begin(), resolved.end()}, multi_network));
  if (changed) Changed(resolved.size());
}

void NetworkManager::Changed(size_t gateways) {
  log({.scope = "model", .text = "gateways changed, triggering push"});
  host_.Emit({TraceKind::kGatewaysChanged, trace_name_, kNoName, static_cast<int64_t>(gateways), 0, {}});
  updater_.ConfigUpdate({.full = true, .reasons = Reason(TriggerReason::kNetworks)});
}

void NetworkManager::SayUnresolved(const std::string& hostname, size_t gateways) const {
  if (resolver_ != nullptr) {
    log({"warn", "model", fmt::format("could not resolve hostname \"{}\" for {} gateways", hostname, gateways)});
    return;
  }
  for (size_t i = 0; i < gateways; ++i) {
    log({"warn", "model",
         fmt::format("Failed parsing gateway address {} from Service Registry. Set RESOLVE_HOSTNAME_GATEWAYS on istiod "
                     "to enable resolving hostnames in the control plane.",
                     hostname)});
  }
}

// One set at a time, as istiod does (network.go, reload: `a.update() || b.update()`): those that are not resolved lag
// behind until a reload that changes nothing of the others.
bool NetworkManager::UpdateViews(std::set<NetworkGateway> resolved, const std::set<NetworkGateway>& all) {
  if (resolved != resolved_) {
    resolved_ = std::move(resolved);
  } else if (all != unresolved_) {
    unresolved_ = all;
  } else {
    return false;
  }
  Show(MakeNetworkGateways({resolved_.begin(), resolved_.end()}, !resolved_.empty(),
                           MakeNetworkGateways({unresolved_.begin(), unresolved_.end()}, !unresolved_.empty())));
  return true;
}

const std::vector<std::string>& NetworkManager::ResolveCached(const std::string& hostname) {
  const auto [it, fresh] = names_.try_emplace(hostname);
  if (fresh && resolver_ != nullptr) {
    GatewayResolver::Answer answer = resolver_->Resolve(hostname);
    it->second.addresses = std::move(answer.addresses);
    ScheduleRefresh(hostname, std::max(answer.ttl, kMinGatewayTtl));
  }
  return it->second.addresses;
}

void NetworkManager::ScheduleRefresh(const std::string& hostname, Duration after) {
  WAVETANK_ASSERT(after >= kMinGatewayTtl, after, hostname);
  WAVETANK_ASSERT(names_[hostname].refresh == kNoTimer, hostname);  // one timer for each name
  names_[hostname].refresh = host_.RunAfter(after, [this, hostname] {
    const auto it = names_.find(hostname);
    if (it == names_.end()) return;
    it->second.refresh = kNoTimer;
    GatewayResolver::Answer answer = resolver_->Resolve(hostname);
    const bool changed = answer.addresses != it->second.addresses;
    it->second.addresses = std::move(answer.addresses);
    ScheduleRefresh(hostname, std::max(answer.ttl, kMinGatewayTtl));
    if (changed) Reload();
  });
}

}  // namespace wavetank::pilot
