// Follows the Gateway API's objects of the config cluster: keeps in the config store what istiod makes of them, writes
// their statuses, makes istiod's classes, and deploys gateways
// (istiod: pilot/pkg/config/kube/gateway/controller.go, gatewaycommon/{deploymentcontroller,gatewayclass}.go).
//
// One conversion follows all events of an instant, and each full push, as addresses and endpoints come without an event
// of these kinds. Nothing is written by it that is there already.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/store/store.h"
#include "core/gateway_api/objects.h"
#include "core/inject/injection_config.h"
#include "core/kube/informer.h"

namespace wavetank::gatewayapi {

class Controller {
 public:
  struct Options {
    std::string revision = "default", cluster_id, domain_suffix = "cluster.local";
    pilot::Profile profile;
    bool alpha = false;  // PILOT_ENABLE_ALPHA_GATEWAY_API: TCPRoutes
  };
  // What it asks of the rest of istiod.
  struct Surroundings {
    decltype(Inputs::instances) instances;
    decltype(Inputs::has_service) has_service;
    std::function<config::MeshConfigRef()> mesh;
    std::function<const pilot::InjectionConfig&()> injection;
    std::function<std::vector<kube::ObjectRef>()> proxy_configs;
    // Whether what lies in a namespace exists for this istiod; empty: all does.
    std::function<bool(std::string_view ns)> reads = nullptr;
  };

  // All references must outlive it.
  Controller(kube::Client& client, Host& host, config::ConfigStore& store, Surroundings surroundings, Options options);
  ~Controller();

  void Start();
  // What of its writing is this istiod's, of those that follow the same Gateways (core/election).
  void SetWriters(bool statuses, bool deployments);
  // All that was there at the start has been converted.
  bool HasSynced() const { return converted_; }
  bool Idle() const { return !scheduled_ && under_way_ == 0; }
  // Something else may have changed that it looks at.
  void Reconsider();
  // How often it has made what it deploys: where nothing changed that this depends on, a push does not.
  uint64_t renderings() const { return renderings_; }
  // What it has put into the store, as objects.
  const std::vector<kube::ObjectRef>& configs() const { return configs_; }

 private:
  // What RenderGateway and ApplyOver look at, by which it can be told that nothing is to be deployed anew.
  struct DeployedFor {
    uint64_t events = 0;
    config::MeshConfigRef mesh;
    nlohmann::json values;
    std::vector<kube::ObjectRef> proxy_configs;
    bool operator==(const DeployedFor&) const = default;
  };

  const kube::Informer& Of(std::string_view kind) const;
  void Watch(const kube::ResourceKind& kind, kube::ListOptions list = {});
  void MaybeSynced();
  void Run();
  Inputs MakeInputs();
  void Store(std::vector<kube::ObjectRef> configs);
  void Drop(const kube::Object& config);  // out of the store
  void WriteStatuses(const Outputs& outputs);
  void MakeClasses();
  void Deploy(const Inputs& in);
  bool IsMine(const kube::Object& object) const;
  bool MayMake(const StatusKey& key, bool there);
  // Over what is there of that kind and name, unless somebody else's.
  void ApplyOver(nlohmann::json wanted);
  void Write(const StatusKey& key, nlohmann::json body);

  kube::Client& client_;
  Host& host_;
  config::ConfigStore& store_;
  const Surroundings surroundings_;
  const Options options_;
  std::map<std::string_view, std::unique_ptr<kube::Informer>> informers_;  // by kind
  std::map<std::string_view, kube::NamedObjects> read_;                    // by kind, where not all is
  std::vector<kube::ObjectRef> configs_;
  std::map<StatusKey, std::pair<int64_t, nlohmann::json>> written_;  // by object: of which version, what
  std::map<StatusKey, std::optional<Time>> vanished_;  // of what was seen: since when it is gone, if it is
  bool writes_statuses_ = true, deploys_ = true;
  bool synced_ = false, converted_ = false, scheduled_ = false;
  int under_way_ = 0;
  uint64_t events_ = 0, renderings_ = 0;  // events: of its own kinds, of failed writings, of what may be made again
  std::optional<DeployedFor> deployed_for_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::gatewayapi
