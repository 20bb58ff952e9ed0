#include "replay/golden/case_istiod.h"

#include <utility>

#include "core/kube/client.h"

namespace wavetank::golden {

using nlohmann::json;

class CaseIstiod::Resolver final : public pilot::GatewayResolver {
 public:
  explicit Resolver(const Case& spec) : case_(spec) {}
  Answer Resolve(const std::string& hostname) override {
    const auto it = case_.dns.find(hostname);
    return it == case_.dns.end() ? Answer() : Answer{it->second, 3600s};
  }

 private:
  const Case& case_;
};

// The index alone, without pushes.
class CaseIstiod::Updater final : public pilot::XdsUpdater {
 public:
  void EdsUpdate(const pilot::ShardKey& shard, std::string_view hostname, std::string_view ns,
                 pilot::EndpointList endpoints) override {
    index.UpdateServiceEndpoints(shard, hostname, ns, std::move(endpoints));
  }
  void EdsCacheUpdate(const pilot::ShardKey& shard, std::string_view hostname, std::string_view ns,
                      pilot::EndpointList endpoints) override {
    index.UpdateServiceEndpoints(shard, hostname, ns, std::move(endpoints));
  }
  void SvcUpdate(const pilot::ShardKey& shard, std::string_view hostname, std::string_view ns,
                 pilot::Event event) override {
    if (event == pilot::Event::kDelete) index.DeleteServiceShard(shard, hostname, ns, false);
  }
  void ConfigUpdate(pilot::PushRequest) override {}
  void ProxyUpdate(const pilot::ClusterId&, std::string_view) override {}
  void RemoveShard(const pilot::ShardKey& shard) override { index.DeleteShard(shard); }

  pilot::EndpointIndex index;
};

CaseIstiod::CaseIstiod(const Case& spec, IstiodSettings settings)
    : case_(spec),
      settings_(std::move(settings)),
      kernel_(settings_.seed),
      host_(kernel_.NewHost("istiod", 0, nullptr)),
      factory_(servers_) {
  for (const auto& [name, objects] : case_.clusters) {
    auto server = std::make_unique<CaseServer>(host_);
    for (const json& object : objects) (void)server->Apply(object);
    servers_[name] = std::move(server);
  }
  config_map_ = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "istio"}, {"namespace", "istio-system"}}},
                 {"data", {{"mesh", case_.mesh_config.dump()}}}};
  if (case_.mesh_networks) config_map_["data"]["meshNetworks"] = case_.mesh_networks->dump();
  (void)servers_.at(case_.config_cluster)->Apply(config_map_);

  client_ = servers_.at(case_.config_cluster)->MakeClient();
  resolver_ = std::make_unique<Resolver>(case_);
  updater_ = std::make_unique<Updater>();
  mesh_ = std::make_unique<config::MeshWatcher>(*client_, host_, "istio-system");
  configs_ = std::make_unique<config::CrdClient>(*client_, host_, store_, *updater_, config::CrdClient::Options{});
  pilot::Registries::Options options;
  options.config_cluster = pilot::ClusterId(case_.config_cluster);
  options.trust_domain = [this] { return mesh_->mesh()->trust_domain; };
  options.networks = [this] { return mesh_->networks(); };
  options.resolver = resolver_.get();
  options.profile = &settings_.profile;
  registries_ = std::make_unique<pilot::Registries>(*client_, factory_, host_, *updater_, store_, std::move(options));
  mesh_->AddNetworksHandler([this] { registries_->OnMeshNetworksChanged(); });
  // The mesh is read before anything else starts (istiod: pilot/pkg/bootstrap/server.go, NewServer).
  mesh_->OnSynced([this] {
    configs_->Start();
    registries_->Start();
  });
  mesh_->Start();
  Settle();
}

CaseIstiod::~CaseIstiod() = default;

// Nothing in a case takes time but debouncing; names of gateways are looked up again after an hour.
void CaseIstiod::Settle() { kernel_.RunUntil(kernel_.Now() + 60s); }

absl::Status CaseIstiod::ApplyConfigMap(const char* key, const json& value) {
  config_map_["data"][key] = value.dump();
  return servers_.at(case_.config_cluster)->Apply(config_map_);
}

absl::Status CaseIstiod::Step(size_t index) {
  for (const Operation& operation : case_.steps[index].operations) {
    absl::Status status;
    const auto server = servers_.find(operation.cluster);
    switch (operation.kind) {
      case Operation::Kind::kApply:
      case Operation::Kind::kDelete:
        if (server == servers_.end()) {
          status = absl::NotFoundError("cluster " + operation.cluster + " has no file in clusters/");
        } else {
          status = operation.kind == Operation::Kind::kApply ? server->second->Apply(operation.value)
                                                             : server->second->Delete(operation.value);
        }
        break;
      case Operation::Kind::kMeshConfig:
        status = ApplyConfigMap("mesh", operation.value);
        break;
      case Operation::Kind::kMeshNetworks:
        status = ApplyConfigMap("meshNetworks", operation.value);
        break;
      case Operation::Kind::kSettle:
        Settle();
        break;
    }
    if (!status.ok()) return status;
  }
  Settle();
  return absl::OkStatus();
}

const pilot::EndpointIndex& CaseIstiod::endpoints() const { return updater_->index; }

bool CaseIstiod::IsClusterLocal(const pilot::Service&) const { return false; }

}  // namespace wavetank::golden
