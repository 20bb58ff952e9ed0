#include "core/push/push_context.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/config/store/store.h"
#include "core/model/gateway.h"
#include "core/model/selection.h"
#include "core/profile/changes.h"
#include "core/push/cluster_local.h"
#include "core/push/destination_rule_index.h"
#include "core/push/export_to_defaults.h"
#include "core/push/gateway_services.h"
#include "core/push/service_index.h"
#include "core/push/sidecar_scope_builder.h"
#include "core/push/virtual_service_index.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

// Scopes by the Sidecars they come from. Made when a proxy first needs one: they depend on nothing but the indexes that
// this one is shared along with.
struct SidecarIndex {
  struct Entry {
    config::SidecarRef sidecar;
    SidecarScopeRef scope;
  };
  std::map<std::string, std::vector<Entry>, std::less<>> by_namespace;  // those with a selector first
  config::SidecarRef mesh_root;                                         // of the root namespace, without selector
  std::map<std::string, SidecarScopeRef, std::less<>> defaults, router_defaults, mesh_root_scopes;
  RuledServices ruled;
};

std::string_view NamespaceOf(std::string_view identity) {
  const size_t at = identity.find("/ns/");
  if (!identity.starts_with("spiffe://") || at == std::string_view::npos) return {};
  const std::string_view rest = identity.substr(at + 4);
  return rest.substr(0, rest.find('/'));
}

class NoGateways final : public NetworkGateways {
 public:
  bool IsMultiNetworkEnabled() const override { return false; }
  uint32_t LbWeightScaleFactor() const override { return 1; }
  const std::vector<NetworkGateway>& All() const override { return none_; }
  const std::vector<NetworkGateway>& ForNetwork(const NetworkId&) const override { return none_; }
  const std::vector<NetworkGateway>& ForNetworkAndCluster(const NetworkId&, const ClusterId&) const override {
    return none_;
  }

 private:
  std::vector<NetworkGateway> none_;
};

// Where the mesh's providers are, as they name it. istiod: addHostsFromMeshConfig.
std::set<std::string> ProviderHosts(const config::MeshConfig& mesh) {
  std::set<std::string> out;
  for (const config::ExtensionProvider& provider : mesh.extension_providers) {
    using Provider = config::ExtensionProvider;
    if (provider.ext_authz_http) out.insert(provider.ext_authz_http->service);
    if (provider.ext_authz_grpc) out.insert(provider.ext_authz_grpc->service);
    if (const auto* tracer = std::get_if<Provider::Tracer>(&provider.telemetry)) out.insert(tracer->service);
    if (const auto* log = std::get_if<Provider::GrpcAccessLog>(&provider.telemetry)) out.insert(log->service);
    if (const auto* log = std::get_if<Provider::OtelAccessLog>(&provider.telemetry)) out.insert(log->service);
  }
  return out;
}

}  // namespace

struct PushContext::Impl {
  std::string version;
  Environment env;
  Profile profile;
  ExportToDefaults defaults;
  std::shared_ptr<const ClusterLocalHosts> cluster_local;
  std::shared_ptr<const ServiceIndex> services;
  std::shared_ptr<const VirtualServiceIndex> virtual_services;
  std::shared_ptr<const DestinationRuleIndex> destination_rules;
  std::shared_ptr<const AuthenticationPolicies> authn;
  std::shared_ptr<const AuthorizationPolicies> authz;
  std::shared_ptr<const EnvoyFilters> envoy_filters;
  std::shared_ptr<const Telemetries> telemetry;
  std::shared_ptr<const WasmPlugins> wasm_plugins;
  std::shared_ptr<const std::vector<config::GatewayRef>> gateways;
  std::shared_ptr<SidecarIndex> sidecars;

  // With Change::kProvidersOfEveryGateway: "HOST" or "NAMESPACE/HOST" of the mesh's providers.
  std::set<std::string, std::less<>> provider_services;

  // istiod: extraServicesForProxy.
  bool OfProvider(std::string_view hostname, std::string_view ns) const {
    return !provider_services.empty() &&
           (provider_services.contains(hostname) || provider_services.contains(fmt::format("{}/{}", ns, hostname)));
  }
  bool LeadsTo(const MergedGateway& gateway, std::string_view hostname) const {
    return std::any_of(gateway.storage.begin(), gateway.storage.end(), [&](const GatewayServer& server) {
      return virtual_services->LeadsTo(server.gateway_name, hostname);
    });
  }

  SidecarScopeBuilder Builder() const {
    return {*services, *virtual_services, *destination_rules, defaults, *env.mesh, sidecars->ruled, version, profile};
  }
};

PushContext::PushContext() : impl_(std::make_unique<Impl>()) {}
PushContext::~PushContext() = default;

std::shared_ptr<const PushContext> PushContext::Create(const Environment& env, const PushContext* old,
                                                       const PushRequest& request, std::string version) {
  std::shared_ptr<PushContext> out(new PushContext());
  Impl& now = *out->impl_;
  now.version = std::move(version);
  now.env = env;
  if (now.env.mesh == nullptr) now.env.mesh = config::DefaultMeshConfig();
  if (now.env.gateways == nullptr) now.env.gateways = std::make_shared<const NoGateways>();
  if (env.profile != nullptr) now.profile = *env.profile;
  const config::MeshConfig& mesh = *now.env.mesh;
  now.defaults = ExportToDefaults::Of(mesh);
  now.defaults.virtual_services_as_said = now.profile.Has(Change::kDefaultExportsNameNamespaces);
  static const config::ConfigStore* const no_configs = new config::ConfigStore();
  const config::ConfigStore& configs = env.configs == nullptr ? *no_configs : *env.configs;

  const Impl* before = old == nullptr || request.configs_updated.empty() ? nullptr : old->impl_.get();
  const auto changed = [&](ConfigKind kind) { return before == nullptr || request.HasConfigsOfKind(kind); };
  const bool services = changed(ConfigKind::kServiceEntry), virtual_services = changed(ConfigKind::kVirtualService),
             destination_rules = changed(ConfigKind::kDestinationRule), sidecars = changed(ConfigKind::kSidecar);

  now.services =
      services ? std::make_shared<const ServiceIndex>(env, now.defaults, mesh.trust_domain_aliases) : before->services;
  std::optional<std::set<std::string>> provider_hosts;
  if (env.features.filters_gateway_clusters) {
    if (now.profile.Has(Change::kProvidersOfEveryGateway)) {
      for (const std::string& service : ProviderHosts(mesh)) now.provider_services.insert(service);
      if (virtual_services) provider_hosts.emplace();
    } else if (virtual_services) {
      provider_hosts = ProviderHosts(mesh);
    }
  }
  now.virtual_services = virtual_services
                             ? std::make_shared<const VirtualServiceIndex>(
                                   configs.VirtualServices(), now.defaults, env.domain_suffix,
                                   VirtualServiceIndex::OwnFirst{now.profile.Has(Change::kGatewayApiMeshPorts),
                                                                 now.profile.Has(Change::kSidecarsOwnRoutesFirst)},
                                   provider_hosts ? &*provider_hosts : nullptr)
                             : before->virtual_services;
  now.destination_rules = destination_rules
                              ? std::make_shared<const DestinationRuleIndex>(
                                    configs.DestinationRules(), now.defaults, mesh.root_namespace, env.domain_suffix,
                                    DestinationRuleIndex::Ways{now.profile.Has(Change::kSelectorsFirst),
                                                               now.profile.Has(Change::kRulesMergedByExport)})
                              : before->destination_rules;
  const bool by_target = now.profile.Has(Change::kPolicyTargets);
  now.authn = changed(ConfigKind::kPeerAuthentication) || changed(ConfigKind::kRequestAuthentication)
                  ? std::make_shared<const AuthenticationPolicies>(
                        configs.PeerAuthentications(), configs.RequestAuthentications(), mesh.root_namespace, by_target)
                  : before->authn;
  now.authz = changed(ConfigKind::kAuthorizationPolicy)
                  ? std::make_shared<const AuthorizationPolicies>(configs.AuthorizationPolicies(), mesh.root_namespace,
                                                                  by_target)
                  : before->authz;
  now.envoy_filters =
      changed(ConfigKind::kEnvoyFilter)
          ? std::make_shared<const EnvoyFilters>(configs.EnvoyFilters(), mesh.root_namespace,
                                                 EnvoyFilters::Rules{now.profile.Has(Change::kEnvoyFilterTargets),
                                                                     now.profile.Has(Change::kEnvoyFiltersByPriority),
                                                                     now.profile.Has(Change::kPatchesByDomain)})
          : before->envoy_filters;
  now.telemetry = changed(ConfigKind::kTelemetry)
                      ? std::make_shared<const Telemetries>(configs.Telemetries(), now.env.mesh,
                                                            now.profile.Has(Change::kTelemetriesAddUp), by_target)
                      : before->telemetry;
  now.wasm_plugins = changed(ConfigKind::kWasmPlugin)
                         ? std::make_shared<const WasmPlugins>(configs.WasmPlugins(), mesh.root_namespace, by_target,
                                                               now.profile.Has(Change::kOwnWasmFirst))
                         : before->wasm_plugins;
  now.gateways = changed(ConfigKind::kGateway)
                     ? std::make_shared<const std::vector<config::GatewayRef>>(configs.Gateways())
                     : before->gateways;
  now.cluster_local = before != nullptr && before->env.mesh == now.env.mesh
                          ? before->cluster_local
                          : std::make_shared<const ClusterLocalHosts>(
                                mesh, env.domain_suffix, now.profile.Has(Change::kClusterLocalBySpecificity));

  const bool authn =
      now.profile.Has(Change::kPeerAuthenticationsInScopes) && before != nullptr && now.authn != before->authn;
  if (services || virtual_services || destination_rules || sidecars || authn) {
    now.sidecars = std::make_shared<SidecarIndex>();
    for (const bool with_selector : {true, false}) {
      for (const config::SidecarRef& sidecar : configs.Sidecars()) {
        if (sidecar->spec.workload_selector.has_value() != with_selector) continue;
        now.sidecars->by_namespace[sidecar->meta.ns].push_back({sidecar, nullptr});
        if (!with_selector && now.sidecars->mesh_root == nullptr && sidecar->meta.ns == mesh.root_namespace) {
          now.sidecars->mesh_root = sidecar;
        }
      }
    }
  } else {
    now.sidecars = before->sidecars;
  }
  return out;
}

void PushContext::AddConcrete(std::set<ConfigKey>& configs_updated) const {
  impl_->services->AddConcrete(configs_updated);
}
const std::string& PushContext::version() const { return impl_->version; }
const config::MeshConfig& PushContext::mesh() const { return *impl_->env.mesh; }
const Environment& PushContext::env() const { return impl_->env; }
const NetworkGateways& PushContext::networks() const { return *impl_->env.gateways; }
const Profile& PushContext::profile() const { return impl_->profile; }
const AuthenticationPolicies& PushContext::authn() const { return *impl_->authn; }
const AuthorizationPolicies& PushContext::authz() const { return *impl_->authz; }
const EnvoyFilters& PushContext::envoy_filters() const { return *impl_->envoy_filters; }
const Telemetries& PushContext::telemetry() const { return *impl_->telemetry; }
const WasmPlugins& PushContext::wasm_plugins() const { return *impl_->wasm_plugins; }

std::vector<ServiceRef> PushContext::GatewayServices(const Proxy& proxy) const {
  std::vector<ServiceRef> out;
  if (proxy.sidecar_scope == nullptr) return out;
  const MergedGateway* const gateway = proxy.merged_gateway.get();
  for (const ServiceRef& service : proxy.sidecar_scope->services()) {
    if ((gateway != nullptr && impl_->LeadsTo(*gateway, service->hostname)) ||
        impl_->OfProvider(service->hostname, service->attributes.ns)) {
      out.push_back(service);
    }
  }
  return out;
}

bool PushContext::ServiceAttachedToGateway(std::string_view hostname, std::string_view ns, const Proxy& proxy) const {
  const MergedGateway* const gateway = proxy.merged_gateway.get();
  if (gateway == nullptr) return false;
  return gateway->contains_auto_passthrough_gateways || impl_->LeadsTo(*gateway, hostname) ||
         impl_->OfProvider(hostname, ns);
}

std::vector<ServiceRef> PushContext::ServicesExportedTo(std::string_view ns) const {
  return impl_->services->ExportedTo(ns);
}

const std::vector<ServiceRef>& PushContext::GetAllServices() const { return impl_->services->All(); }

ServiceRef PushContext::ServiceForHostname(const Proxy& proxy, std::string_view hostname) const {
  if (proxy.sidecar_scope != nullptr) return proxy.sidecar_scope->GetService(hostname);
  const auto* by_namespace = impl_->services->ByNamespace(hostname);
  return by_namespace == nullptr ? nullptr : by_namespace->begin()->second;
}

ServiceRef PushContext::ServiceInNamespace(std::string_view hostname, std::string_view ns) const {
  const auto* by_namespace = impl_->services->ByNamespace(hostname);
  if (by_namespace == nullptr) return nullptr;
  const auto it = by_namespace->find(ns);
  return it == by_namespace->end() ? nullptr : it->second;
}

ServiceRef PushContext::OnlyServiceNamed(std::string_view hostname) const {
  const auto* by_namespace = impl_->services->ByNamespace(hostname);
  return by_namespace == nullptr || by_namespace->size() != 1 ? nullptr : by_namespace->begin()->second;
}

const std::vector<ConfigKey>& PushContext::DelegatesOf(const config::ConfigMeta& root) const {
  return impl_->virtual_services->DelegatesOf(root);
}

bool PushContext::IsServiceVisible(const Service& service, std::string_view ns) const {
  return pilot::IsServiceVisible(service, ns, impl_->defaults);
}

bool PushContext::IsClusterLocal(const Service& service) const {
  return impl_->cluster_local->Contains(service.hostname);
}

std::vector<ServiceInstance> PushContext::ServiceInstancesByPort(const Service& service, int port,
                                                                 const Labels& labels) const {
  const std::vector<ServiceInstance>& all = impl_->services->Instances(service, port);
  if (labels.empty()) return all;
  std::vector<ServiceInstance> out;
  for (const ServiceInstance& instance : all) {
    const Labels& own = instance.endpoint.p().labels;
    if (Selects(labels, own)) out.push_back(instance);
  }
  return out;
}

const std::vector<std::string>& PushContext::ServiceAccounts(std::string_view hostname, std::string_view ns,
                                                             int port) const {
  return impl_->services->ServiceAccounts(hostname, ns, port);
}

std::vector<config::VirtualServiceRef> PushContext::VirtualServicesForGateway(std::string_view proxy_namespace,
                                                                              std::string_view gateway) const {
  return impl_->virtual_services->ForGateway(proxy_namespace, gateway);
}

std::vector<ConsolidatedDestRuleRef> PushContext::DestinationRules(std::string_view proxy_namespace,
                                                                   const Service& service) const {
  const DestinationRuleIndex::Rules* rules =
      impl_->destination_rules->Find(proxy_namespace, service.hostname, service.attributes.ns);
  return rules == nullptr ? std::vector<ConsolidatedDestRuleRef>() : *rules;
}

SidecarScopeRef PushContext::GetSidecarScope(const Proxy& proxy, const Labels& workload_labels) const {
  SidecarIndex& index = *impl_->sidecars;
  const std::string& ns = proxy.config_namespace;
  if (!proxy.IsRouter()) {
    if (const auto it = index.by_namespace.find(ns); it != index.by_namespace.end()) {
      for (SidecarIndex::Entry& entry : it->second) {
        const auto& selector = entry.sidecar->spec.workload_selector;
        if (selector && !Selects(*selector, workload_labels)) continue;
        if (entry.scope == nullptr) entry.scope = impl_->Builder().Convert(entry.sidecar, ns);
        return entry.scope;
      }
    }
    if (index.mesh_root != nullptr) {
      SidecarScopeRef& scope = index.mesh_root_scopes[ns];
      if (scope == nullptr) scope = impl_->Builder().Convert(index.mesh_root, ns);
      return scope;
    }
  }
  // Routers have no use for Sidecars.
  bool router = proxy.IsRouter() && impl_->profile.Has(Change::kOneScope);
  // What sidecars of the namespace share counts for them too, once one has asked (istiod: doGetSidecarScope).
  if (router && index.defaults.contains(ns)) router = false;
  SidecarScopeRef& scope = (router ? index.router_defaults : index.defaults)[ns];
  if (scope == nullptr) scope = impl_->Builder().Default(ns, router);
  return scope;
}

std::shared_ptr<const MergedGateway> PushContext::MergeGateways(const Proxy& proxy) const {
  std::vector<config::GatewayRef> selected;
  const bool optional_mutual = impl_->profile.Has(Change::kOptionalMutual);
  for (const config::GatewayRef& gateway : *impl_->gateways) {
    // istiod: pilot/pkg/model/push_context.go, initGateways and mergeGateways.
    if (impl_->env.features.gateways_by_namespace && gateway->meta.ns != proxy.config_namespace) continue;
    // To older releases the mode is no word of the API, and the whole object cannot be read.
    if (!optional_mutual && HasOptionalMutual(gateway->spec)) continue;
    const auto of_services = InstancesOfGateway(*gateway, proxy.service_instances);
    if (of_services ? !of_services->empty() : Selects(gateway->spec.selector, proxy.labels)) {
      selected.push_back(gateway);
    }
  }
  if (selected.empty()) return nullptr;
  return pilot::MergeGateways(std::move(selected), proxy.service_instances, NamespaceOf(proxy.verified_identity),
                              impl_->profile);
}

MutualTlsMode PushContext::InferServiceMtlsMode(const config::TrafficPolicy* policy, const Service& service,
                                                const Port& port) const {
  if (service.mesh_external) return MutualTlsMode::kUnknown;
  const bool passthrough = policy != nullptr && policy->load_balancer &&
                           policy->load_balancer->simple == config::LoadBalancerSettings::Simple::kPassthrough;
  // Traffic to the original destination: mTLS only if every instance can.
  if (service.Passthrough() || passthrough) {
    const std::vector<ServiceInstance>& instances = impl_->services->Instances(service, port.port);
    if (instances.empty() || std::any_of(instances.begin(), instances.end(), [](const ServiceInstance& i) {
          return i.endpoint.p().tls_mode == kDisabledTlsMode;
        })) {
      return MutualTlsMode::kDisable;
    }
  }
  const MutualTlsMode mode = authn().GetNamespaceMutualTlsMode(service.attributes.ns);
  return mode == MutualTlsMode::kUnknown ? MutualTlsMode::kPermissive : mode;
}

void SetSidecarScope(Proxy& proxy, const PushContext& push) {
  SidecarScopeRef scope = push.GetSidecarScope(proxy, proxy.IsRouter() ? Labels{} : proxy.labels);
  proxy.prev_sidecar_scope = std::exchange(proxy.sidecar_scope, std::move(scope));
}

void SetGatewaysForProxy(Proxy& proxy, const PushContext& push) {
  if (!proxy.IsRouter()) return;
  proxy.merged_gateway = push.MergeGateways(proxy);
}

void SetServiceInstances(Proxy& proxy, const ServiceDiscovery& discovery) {
  std::vector<ServiceInstance> instances = discovery.GetProxyServiceInstances(proxy);
  std::stable_sort(instances.begin(), instances.end(), [](const ServiceInstance& a, const ServiceInstance& b) {
    if (a.service->creation_unix_seconds != b.service->creation_unix_seconds) {
      return a.service->creation_unix_seconds < b.service->creation_unix_seconds;
    }
    return a.service->hostname < b.service->hostname;
  });
  proxy.service_instances = std::move(instances);
}

void SetWorkloadLabels(Proxy& proxy, const ServiceDiscovery& discovery) {
  proxy.labels = proxy.metadata.labels;
  // istiod's own tests let pods play virtual machines.
  if (proxy.metadata.labels.contains("istio.io/test-vm")) return;
  std::optional<Labels> known = discovery.GetProxyWorkloadLabels(proxy);
  if (!known) return;
  proxy.labels = *std::move(known);
  // Labels that the user gave the proxy itself (ISTIO_METAJSON_LABELS) stand beside the workload's.
  if (!proxy.metadata.raw->is_object()) return;
  const auto fixed = proxy.metadata.raw->find("STATIC_LABELS");
  if (fixed == proxy.metadata.raw->end() || !fixed->is_object()) return;
  for (const auto& [name, value] : fixed->items()) {
    if (value.is_string()) proxy.labels.try_emplace(name, value.get<std::string>());
  }
}

}  // namespace wavetank::pilot
