#include "oracles/golden/case_istiod.h"

#include <utility>

#include "core/base/json_text.h"
#include "core/kube/client.h"
#include "core/profile/changes.h"
#include "core/registry/network_manager.h"
#include "oracles/golden/fetch.h"

namespace wavetank::golden {

using nlohmann::json;

// The recordings compare what is there when all is quiet, so work takes no time. Except a proxy's state: a push event
// passes two goroutines before it is worked on, while a registry goes through its first list without a pause.
class CaseIstiod::Costs final : public sim::CostModel {
 public:
  Duration Cost(const Work& work) const override { return work.kind == WorkKind::kProxyState ? 1ms : 0ms; }
};

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

namespace {
constexpr int kProcessors = 1024;  // nothing waits for another's work
}  // namespace

CaseIstiod::CaseIstiod(const Case& spec, IstiodSettings settings)
    : case_(spec),
      settings_(std::move(settings)),
      costs_(std::make_unique<Costs>()),
      kernel_(settings_.seed),
      host_(kernel_.NewHost("istiod", kProcessors, costs_.get())),
      factory_(host_, servers_) {
  for (const auto& [name, objects] : case_.clusters) {
    auto server = std::make_unique<CaseServer>(host_);
    for (const json& object : objects) (void)server->Apply(object);
    servers_[name] = std::move(server);
  }
  config_map_ = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "istio"}, {"namespace", "istio-system"}}},
                 {"data", {{"mesh", JsonText(case_.mesh_config)}}}};
  if (case_.mesh_networks) config_map_["data"]["meshNetworks"] = case_.mesh_networks->dump();
  (void)servers_.at(case_.config_cluster)->Apply(config_map_);

  client_ = servers_.at(case_.config_cluster)->MakeClient();
  resolver_ = std::make_unique<Resolver>(case_);
  pilot::IstiodSurroundings surroundings;
  surroundings.host = &host_;
  surroundings.config_cluster = client_.get();
  surroundings.remote_clusters = &factory_;
  surroundings.resolver = resolver_.get();
  surroundings.observer = settings_.observer;
  pilot::IstiodOptions options;
  options.cluster_id = pilot::ClusterId(case_.config_cluster);
  options.profile = settings_.profile;
  options.debounce_after = settings_.debounce_after;
  options.requests_per_second = 0;
  options.enable_ca = false;  // as in the recordings; what istiod wrote would count as a version of the API server
  istiod_ = std::make_unique<pilot::Istiod>(std::move(surroundings), std::move(options));
  istiod_->Start([](absl::Status) {});
  Settle();
}

CaseIstiod::~CaseIstiod() = default;

// Nothing in a case takes time but debouncing; names of gateways are looked up again after an hour.
void CaseIstiod::Settle() { kernel_.RunUntil(kernel_.Now() + 60s); }

absl::Status CaseIstiod::ApplyConfigMap(const char* key, const json& value) {
  config_map_["data"][key] = JsonText(value);
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
    // Writing the next object takes a moment, in which watches deliver this one.
    kernel_.RunUntil(kernel_.Now() + 1ms);
  }
  Settle();
  return absl::OkStatus();
}

ProxySpec CaseIstiod::Connecting(const ProxySpec& proxy) const {
  ProxySpec out = proxy;
  out.istio_version = settings_.profile.istio;
  const auto server = servers_.find(proxy.cluster);
  if (settings_.profile.Has(pilot::Change::kPodByNameAlone) && server != servers_.end()) {
    out.pod = server->second->PodAt(proxy.ns, proxy.ip);
  }
  return out;
}

std::vector<std::unique_ptr<Fetch>> CaseIstiod::FetchAll() {
  std::vector<std::unique_ptr<Fetch>> out;
  for (const ProxySpec& proxy : case_.proxies) out.push_back(std::make_unique<Fetch>(*istiod_, Connecting(proxy)));
  Settle();
  return out;
}

}  // namespace wavetank::golden
