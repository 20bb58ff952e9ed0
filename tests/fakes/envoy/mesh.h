// Two networks as in docs/real-envoy.md 1: sleep and helloworld-v1 in one, helloworld-v2 in the other behind a
// gateway that passes TLS through by SNI. Real X.509, Istio's own form of clusters, listeners and filter chains.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/envoy/lab.h"

namespace wavetank::envoysim::lab {

inline constexpr std::string_view kHelloCluster = "outbound|5000||helloworld.sample.svc.cluster.local";
inline constexpr std::string_view kHelloSni = "outbound_.5000_._.helloworld.sample.svc.cluster.local";
inline constexpr std::string_view kHelloId = "spiffe://cluster.local/ns/sample/sa/helloworld";
inline constexpr std::string_view kSleepId = "spiffe://cluster.local/ns/sample/sa/sleep";
inline constexpr std::string_view kVip = "10.96.0.10:5000";
inline constexpr std::string_view kGatewayAddress = "172.30.0.2:15443";

// Within 4.5 standard deviations: a false alarm once in 10^5 seeds, never for a fixed one.
inline void ExpectBinomial(int count, int n, double p) {
  EXPECT_NEAR(count, n * p, 4.5 * std::sqrt(n * p * (1 - p))) << "n " << n << " p " << p;
}

class Mesh {
 public:
  struct Options {
    uint64_t seed = 1;
    bool retry = true;
    std::string cluster_extra;  // JSON after the client's cluster, e.g. outlier_detection
    std::string expected_san = std::string(kHelloId);
    std::string sni = std::string(kHelloSni);
    int v2_pods = 1;
    bool with_v1 = true;
    bool strict = true;
    DataPlane::Options plane = Instant();
  };

  Mesh() : Mesh(Options()) {}
  explicit Mesh(Options o) : options(std::move(o)), lab(options.seed, options.plane), ca("mesh"), foreign("other") {
    spec.authority = "helloworld.sample:5000";
    spec.path = "/hello";
    sleep = &lab.AddProxy("sleep", "10.1.0.5");
    Identify(*sleep, kSleepId);
    gateway = &lab.AddProxy("gw2", "10.2.0.2", /*sidecar=*/false);
    lab.network.nat[*SocketAddress::Parse(std::string(kGatewayAddress))] = *SocketAddress::Parse("10.2.0.2:15443");
    if (options.with_v1) v1 = &AddServer("v1", "10.1.0.11");
    for (int i = 0; i < options.v2_pods; ++i) {
      Lab::Proxy& p = AddServer(i == 0 ? "v2" : "v2-" + std::to_string(i), "10.2.0." + std::to_string(11 + i));
      if (i == 0) v2 = &p;
      pods.push_back({p.ip + ":5000", 1, "", true});
    }
    ConfigureClient();
    gateway->ads->world[XdsType::kCds][std::string(kHelloSni)] = EdsCluster(kHelloSni);
    gateway->ads->world[XdsType::kEds][std::string(kHelloSni)] = Assignment(kHelloSni, pods);
    gateway->ads->world[XdsType::kLds]["0.0.0.0_15443"] = PassthroughGateway({"*.local"});
  }

  void Start() {
    for (auto& [name, proxy] : lab.proxies) {
      proxy->ads->automatic = true;
      proxy->envoy->Start();
    }
    lab.RunFor(500ms);
    for (auto& [name, proxy] : lab.proxies) EXPECT_TRUE(proxy->envoy->live()) << name;
  }

  void Identify(Lab::Proxy& p, std::string_view id, const LabCa* from = nullptr) {
    p.secrets->Set("default", (from == nullptr ? ca : *from).Identity(id));
    p.secrets->Set("ROOTCA", ca.Root());
  }

  Lab::Proxy& AddServer(const std::string& name, const std::string& ip) {
    Lab::Proxy& p = lab.AddProxy(name, ip);
    Identify(p, kHelloId);
    p.ads->world[XdsType::kCds]["inbound|5000||"] = OriginalDstCluster("inbound|5000||", "127.0.0.6");
    p.ads->world[XdsType::kLds]["virtualInbound"] = VirtualInbound(5000, "inbound|5000||", options.strict);
    apps[name] = &lab.AddApp(name, ip, 5000);
    return p;
  }

  void ConfigureClient() {
    std::string extra = SocketMatches(options.sni, options.expected_san);
    if (!options.cluster_extra.empty()) extra += ", " + options.cluster_extra;
    extra += R"(, "lb_policy": "LEAST_REQUEST", "common_lb_config": {"healthy_panic_threshold": {}})";
    auto& world = sleep->ads->world;
    world[XdsType::kCds][std::string(kHelloCluster)] = EdsCluster(kHelloCluster, extra);
    world[XdsType::kCds]["PassthroughCluster"] = OriginalDstCluster("PassthroughCluster");
    world[XdsType::kLds]["0.0.0.0_5000"] = HttpListenerTo("0.0.0.0_5000", "0.0.0.0:5000", kHelloCluster, options.retry);
    world[XdsType::kLds]["virtualOutbound"] = VirtualOutbound();
    std::vector<EndpointSpec> endpoints;
    if (options.with_v1) endpoints.push_back({"10.1.0.11:5000", 1, "", true});
    endpoints.push_back({std::string(kGatewayAddress), 1, "", true});
    world[XdsType::kEds][std::string(kHelloCluster)] = Assignment(kHelloCluster, endpoints);
  }

  // The client's endpoints change.
  void Push(const std::vector<EndpointSpec>& endpoints) {
    sleep->ads->world[XdsType::kEds][std::string(kHelloCluster)] = Assignment(kHelloCluster, endpoints);
    sleep->ads->Push(XdsType::kEds);
    lab.RunFor(1ms);
  }
  static EndpointSpec Local() { return {"10.1.0.11:5000", 1, "", true}; }
  static EndpointSpec Remote() { return {std::string(kGatewayAddress), 1, "", true}; }

  Lab::Result Ask(bool keep_alive = true, Duration limit = 60s) {
    return lab.Ask(*sleep, kVip, spec, keep_alive, limit);
  }
  std::shared_ptr<Lab::Result> Begin() { return lab.Begin(*sleep, kVip, spec); }

  uint64_t ClientCounter(std::string_view name) {
    return sleep->envoy->counter("cluster." + std::string(kHelloCluster) + "." + std::string(name));
  }

  Options options;
  Lab lab;
  LabCa ca, foreign;
  RequestSpec spec;
  Lab::Proxy* sleep = nullptr;
  Lab::Proxy* gateway = nullptr;
  Lab::Proxy* v1 = nullptr;
  Lab::Proxy* v2 = nullptr;
  std::map<std::string, EchoApp*> apps;
  std::vector<EndpointSpec> pods;  // behind the gateway
};

}  // namespace wavetank::envoysim::lab
