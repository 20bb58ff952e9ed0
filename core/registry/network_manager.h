// Gathers the gateways of all networks, resolves those that have host names, and says when they change
// (istiod: pilot/pkg/model/network.go, NetworkManager and networkGatewayNameCache).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/model/network_manager.h"
#include "core/model/xds_updater.h"
#include "core/profile/profile.h"

namespace wavetank::config {
struct MeshNetworks;
}

namespace wavetank::pilot {

// Answers of DNS to istiod itself.
class GatewayResolver {
 public:
  virtual ~GatewayResolver() = default;
  struct Answer {
    std::vector<std::string> addresses;  // empty: NXDOMAIN or no answer
    Duration ttl{};
  };
  virtual Answer Resolve(const std::string& hostname) = 0;
};

class NetworkManager {
 public:
  using GatewaySource = std::function<std::vector<NetworkGateway>()>;  // of all registries
  using NetworksSource = std::function<std::shared_ptr<const config::MeshNetworks>()>;

  // `resolver` may be null: names are never resolved.
  NetworkManager(Host& host, XdsUpdater& updater, GatewayResolver* resolver, GatewaySource registries,
                 NetworksSource networks, const Profile& profile = {});
  ~NetworkManager();

  // The registries or meshNetworks may have changed: recomputes and pushes if gateways did.
  void Reload();
  // What push contexts hold is the manager itself: a change shows in those made before it, too, until the push that it
  // leads to. istiod: pilot/pkg/model/push_context.go, initContext (networkMgr); the same in 1.30.
  std::shared_ptr<const NetworkGateways> Gateways() const;
  LogSink log;  // told what a real one logs

 private:
  struct Name {
    std::vector<std::string> addresses;
    TimerId refresh = kNoTimer;
  };

  // With Change::kResolvedGatewaysDecide: whether there are several networks is a matter of the gateways that resolve,
  // and those of DNS clusters, which are not resolved, are kept beside them.
  bool UpdateViews(std::set<NetworkGateway> resolved, const std::set<NetworkGateway>& all);
  void Changed(size_t gateways);
  // A name that was not resolved, of so many gateways.
  void SayUnresolved(const std::string& hostname, size_t gateways) const;
  const std::vector<std::string>& ResolveCached(const std::string& hostname);
  void ScheduleRefresh(const std::string& hostname, Duration after);

  Host& host_;
  XdsUpdater& updater_;
  GatewayResolver* resolver_;
  GatewaySource registries_;
  NetworksSource networks_;
  std::map<std::string, Name> names_;
  const Profile profile_;
  class Live;
  void Show(std::shared_ptr<const NetworkGateways> view);

  std::shared_ptr<Live> live_;                      // never null
  std::set<NetworkGateway> resolved_, unresolved_;  // of what it shows
  NameId trace_name_;
};

// A view of given gateways; what Reload() makes. Public for tests and benchmarks. `unresolved`: what DNS clusters use,
// null: the same. `scale_of_none`: the factor if there are no gateways.
std::shared_ptr<const NetworkGateways> MakeNetworkGateways(std::vector<NetworkGateway> gateways, bool multi_network,
                                                           std::shared_ptr<const NetworkGateways> unresolved = nullptr,
                                                           uint32_t scale_of_none = 1);

}  // namespace wavetank::pilot
