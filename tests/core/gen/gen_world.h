// A small mesh for generators' tests: services, endpoints, configuration and gateways as the test says, and a real push
// context over them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/config/mesh/mesh_config.h"
#include "core/config/mesh/mesh_networks.h"
#include "core/config/store/store.h"
#include "core/model/endpoint_index.h"
#include "core/profile/profile.h"
#include "core/push/push_context.h"
#include "core/registry/network_manager.h"
#include "tests/core/push/fake_discovery.h"

namespace wavetank::pilot {

struct GenWorld {
  config::ConfigStore configs;
  EndpointIndex endpoints;
  FakeDiscovery discovery;
  config::MeshConfig mesh = *config::DefaultMeshConfig();
  Profile profile;
  std::vector<NetworkGateway> gateways;
  std::shared_ptr<const config::MeshNetworks> networks;

  static std::string Host(const std::string& name, const std::string& ns = "shop") {
    return name + "." + ns + ".svc.cluster.local";
  }

  std::shared_ptr<Service> AddService(const std::string& name, const std::string& ns = "shop",
                                      Port port = {"http", 80, Protocol::kHttp}) {
    auto service = std::make_shared<Service>();
    service->hostname = Host(name, ns);
    service->ports = {std::move(port)};
    service->default_address = "240.0.0.1";
    service->attributes.name = name;
    service->attributes.ns = ns;
    discovery.services.push_back(service);
    return service;
  }

  // A workload in `cluster`, on "network-<cluster>".
  static EndpointProfile Workload(const std::string& cluster, const std::string& locality = "") {
    EndpointProfile p;
    p.labels = {{"app", "web"}};
    p.service_port_name = "http";
    p.service_account = "spiffe://cluster.local/ns/shop/sa/web";
    p.network = NetworkId("network-" + cluster);
    p.locality = {locality, ClusterId(cluster)};
    p.tls_mode = kMutualTlsMode;
    p.ns = "shop";
    p.workload_name = "web";
    return p;
  }

  static IstioEndpoint Endpoint(const std::string& address, EndpointProfile profile, uint32_t weight = 0) {
    return {address, 8080, weight, HealthStatus::kHealthy, std::make_shared<const EndpointProfile>(std::move(profile))};
  }

  void SetEndpoints(const std::string& cluster, const std::string& name, EndpointList list,
                    const std::string& ns = "shop") {
    endpoints.UpdateServiceEndpoints({ClusterId(cluster), Provider::kKubernetes}, Host(name, ns), ns, std::move(list));
  }

  void AddGateway(const std::string& cluster, const std::string& address, uint32_t port = 15443) {
    gateways.push_back({NetworkId("network-" + cluster), ClusterId(cluster), address, port});
  }

  void AddRule(const std::string& name, config::DestinationRule spec, const std::string& ns = "shop") {
    auto rule = std::make_shared<config::TypedConfig<config::DestinationRule>>();
    rule->meta.kind = config::Kind::kDestinationRule;
    rule->meta.name = name;
    rule->meta.ns = ns;
    rule->spec = std::move(spec);
    configs.Put(config::DestinationRuleRef(std::move(rule)));
  }

  void AddPeerAuthentication(config::PeerAuthentication spec, const std::string& ns = "shop",
                             const std::string& name = "default") {
    auto policy = std::make_shared<config::TypedConfig<config::PeerAuthentication>>();
    policy->meta.kind = config::Kind::kPeerAuthentication;
    policy->meta.name = name;
    policy->meta.ns = ns;
    policy->spec = std::move(spec);
    configs.Put(config::PeerAuthenticationRef(std::move(policy)));
  }

  void AddAuthorizationPolicy(config::AuthorizationPolicy spec, const std::string& ns = "shop",
                              const std::string& name = "policy", Labels annotations = {}) {
    auto policy = std::make_shared<config::TypedConfig<config::AuthorizationPolicy>>();
    policy->meta.kind = config::Kind::kAuthorizationPolicy;
    policy->meta.name = name;
    policy->meta.ns = ns;
    policy->meta.annotations = std::move(annotations);
    policy->spec = std::move(spec);
    configs.Put(config::AuthorizationPolicyRef(std::move(policy)));
  }

  void AddTelemetry(config::Telemetry spec, const std::string& ns = "shop", const std::string& name = "telemetry") {
    auto telemetry = std::make_shared<config::TypedConfig<config::Telemetry>>();
    telemetry->meta.kind = config::Kind::kTelemetry;
    telemetry->meta.name = name;
    telemetry->meta.ns = ns;
    telemetry->spec = std::move(spec);
    configs.Put(config::TelemetryRef(std::move(telemetry)));
  }

  void AddRequestAuthentication(config::RequestAuthentication spec, const std::string& ns = "shop",
                                const std::string& name = "tokens") {
    auto policy = std::make_shared<config::TypedConfig<config::RequestAuthentication>>();
    policy->meta.kind = config::Kind::kRequestAuthentication;
    policy->meta.name = name;
    policy->meta.ns = ns;
    policy->spec = std::move(spec);
    configs.Put(config::RequestAuthenticationRef(std::move(policy)));
  }

  void AddWasmPlugin(config::WasmPlugin spec, const std::string& name = "plugin", const std::string& ns = "shop") {
    auto plugin = std::make_shared<config::TypedConfig<config::WasmPlugin>>();
    plugin->meta.kind = config::Kind::kWasmPlugin;
    plugin->meta.name = name;
    plugin->meta.ns = ns;
    plugin->meta.resource_version = 7;
    plugin->spec = std::move(spec);
    configs.Put(config::WasmPluginRef(std::move(plugin)));
  }

  Environment Env() {
    Environment env;
    env.discovery = &discovery;
    env.configs = &configs;
    env.endpoints = &endpoints;
    env.mesh = std::make_shared<const config::MeshConfig>(mesh);
    env.networks = networks;
    env.gateways = MakeNetworkGateways(gateways, !gateways.empty());
    env.profile = &profile;
    env.cluster_id = ClusterId("c1");
    return env;
  }
  PushContextRef Push() {
    PushRequest request;
    request.full = true;
    return PushContext::Create(Env(), nullptr, request, "1");
  }

  // On "network-<cluster>", with its scope and gateways of `push`.
  static Proxy Connect(const PushContext& push, const std::string& cluster, NodeType type = NodeType::kSidecarProxy,
                       Labels labels = {}) {
    Proxy proxy;
    proxy.type = type;
    proxy.id = "client.shop";
    proxy.ip_addresses = {"10.0.0.9"};
    proxy.config_namespace = "shop";
    proxy.metadata.ns = "shop";
    proxy.metadata.cluster_id = ClusterId(cluster);
    proxy.metadata.network = NetworkId("network-" + cluster);
    proxy.labels = std::move(labels);
    SetSidecarScope(proxy, push);
    SetGatewaysForProxy(proxy, push);
    return proxy;
  }

  static PushRequest Request(PushContextRef push) {
    PushRequest request;
    request.full = true;
    request.push = std::move(push);
    request.start = Time(1s);
    return request;
  }
};

}  // namespace wavetank::pilot
