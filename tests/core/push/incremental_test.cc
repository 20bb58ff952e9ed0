// A push context that shares what its predecessor had must be the one that would have been made from nothing.
#include <rapidcheck.h>

#include "tests/core/push/mesh_fixture.h"
#include "tests/meshes.h"

namespace wavetank::pilot {
namespace {

using config::Kind;

// Any number of [low, high) from the first test on: sizes that grow would leave the early tests trivial.
int Pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high)); }

constexpr std::string_view kNamespaces[] = {"a", "b", "istio-system"};

// What can be asked of a push context, as text.
std::string Dump(const PushContext& push, const std::vector<ServiceRef>& services) {
  std::string out;
  const auto configs = [&](const auto& list) {
    for (const auto& c : list) out += " " + c->meta.ns + "/" + c->meta.name;
    out += "\n";
  };
  for (const std::string_view ns : kNamespaces) {
    out += "namespace " + std::string(ns) + "\nexported";
    for (const ServiceRef& s : push.ServicesExportedTo(ns)) out += " " + s->hostname + "." + s->attributes.ns;
    out += "\nmesh";
    configs(push.VirtualServicesForGateway(ns, "mesh"));
    out += "gateway";
    configs(push.VirtualServicesForGateway(ns, "a/gw"));
    for (const ServiceRef& s : services) {
      for (const ConsolidatedDestRuleRef& rule : push.DestinationRules(ns, *s)) {
        out += s->hostname + " rule " + rule->rule->meta.name;
        for (const config::Subset& subset : rule->rule->spec.subsets) out += " " + subset.name;
        out += "\n";
      }
      out += s->hostname + std::to_string(push.IsServiceVisible(*s, ns)) + "\n";
    }
    out += "mtls " + std::to_string(static_cast<int>(push.authn().GetNamespaceMutualTlsMode(ns))) +
           push.authn().version() + "\n";
    for (const NodeType type : {NodeType::kSidecarProxy, NodeType::kRouter}) {
      Proxy proxy;
      proxy.type = type;
      proxy.config_namespace = std::string(ns);
      proxy.labels = {{"app", "x"}};
      SetSidecarScope(proxy, push);
      SetGatewaysForProxy(proxy, push);
      const SidecarScope& scope = *proxy.sidecar_scope;
      out += "scope " + scope.name + ":";
      for (const ServiceRef& s : scope.services()) out += " " + s->hostname + std::to_string(s->ports.size());
      out += "\n";
      for (const EgressListener& listener : scope.egress_listeners) configs(listener.virtual_services);
      for (const ServiceRef& s : services) {
        const auto rule = scope.DestinationRule(TrafficDirection::kOutbound, proxy, s->hostname);
        out += rule == nullptr ? "-" : rule->rule->meta.name;
        out += std::to_string(scope.DependsOnConfig({ConfigKind::kServiceEntry, s->hostname, s->attributes.ns}));
      }
      for (const char* name : {"n0", "n1"}) {
        for (const ConfigKind kind :
             {ConfigKind::kDestinationRule, ConfigKind::kVirtualService, ConfigKind::kSidecar}) {
          out += std::to_string(scope.DependsOnConfig({kind, name, std::string(ns)}));
        }
      }
      out += "\n";
      if (proxy.merged_gateway == nullptr) continue;
      for (const auto& [port, servers] : proxy.merged_gateway->merged_servers) {
        out += std::to_string(port.number) + " " + std::string(servers.route_name) + " " +
               std::to_string(servers.servers.size());
      }
    }
  }
  return out;
}

std::string_view SpecOf(Kind kind, int variant) {
  static constexpr std::string_view kRules[] = {"host: s0\nsubsets: [{name: v1}]",
                                                "host: \"*.a.svc.cluster.local\"\nexportTo: [\".\"]",
                                                "host: s1.b.svc.cluster.local\nsubsets: [{name: v2}]\nexportTo: [a]",
                                                "host: s0\nworkloadSelector: {matchLabels: {app: x}}"};
  static constexpr std::string_view kVirtual[] = {
      "hosts: [s0]\nhttp: [{route: [{destination: {host: s1.b.svc.cluster.local}}]}]",
      "hosts: [s1.a.svc.cluster.local]\nexportTo: [\".\"]\nhttp: [{delegate: {name: n1}}]",
      "http: [{route: [{destination: {host: s0}}]}]", "hosts: [\"*\"]\ngateways: [a/gw, mesh]\nexportTo: [b]"};
  static constexpr std::string_view kSidecars[] = {
      "egress: [{hosts: [\"./*\"]}]",
      "workloadSelector: {labels: {app: x}}\negress: [{hosts: [\"*/s0.a.svc.cluster.local\"]}]", "",
      "egress: [{port: {number: 80, protocol: HTTP}, hosts: [\"*/*\"]}]"};
  static constexpr std::string_view kGateways[] = {
      "selector: {app: x}\nservers: [{port: {number: 80, name: h, protocol: HTTP}, hosts: [a]}]",
      "selector: {app: 'y'}\nservers: [{port: {number: 81, name: h, protocol: HTTP}, hosts: [a]}]",
      "servers: [{port: {number: 80, name: h2, protocol: HTTP2}, hosts: [b]}]", ""};
  static constexpr std::string_view kPeers[] = {"mtls: {mode: STRICT}", "mtls: {mode: DISABLE}", "",
                                                "selector: {matchLabels: {app: x}}\nmtls: {mode: STRICT}"};
  switch (kind) {
    case Kind::kDestinationRule:
      return kRules[variant];
    case Kind::kVirtualService:
      return kVirtual[variant];
    case Kind::kSidecar:
      return kSidecars[variant];
    case Kind::kGateway:
      return kGateways[variant];
    default:
      return kPeers[variant];
  }
}

class IncrementalTest : public MeshTest {
 protected:
  // One random change; its key as the push request names it.
  ConfigKey Change(int& time) {
    static constexpr std::pair<Kind, ConfigKind> kKinds[] = {
        {Kind::kDestinationRule, ConfigKind::kDestinationRule},
        {Kind::kVirtualService, ConfigKind::kVirtualService},
        {Kind::kSidecar, ConfigKind::kSidecar},
        {Kind::kGateway, ConfigKind::kGateway},
        {Kind::kPeerAuthentication, ConfigKind::kPeerAuthentication}};
    const std::string name = "n" + std::to_string(Pick(0, 2));
    const std::string ns(kNamespaces[Pick(0, 3)]);
    const int what = Pick(0, 7), variant = Pick(0, 5);
    if (what >= 5) {
      std::erase_if(discovery.services, [&](const ServiceRef& s) {
        return s->attributes.name == "s" + name.substr(1) && s->attributes.ns == ns;
      });
      static const ExportTo kExports[] = {{}, Private(), To("b"), Nowhere()};
      if (variant < 4) {
        AddService("s" + name.substr(1), ns, variant == 1 ? std::vector{80, 81} : std::vector{80}, kExports[variant],
                   time++ % 9);
      }
      return {ConfigKind::kServiceEntry, "s" + name.substr(1) + "." + ns + ".svc.cluster.local", ns};
    }
    const auto [kind, key] = kKinds[what];
    if (variant == 4) {
      configs.Delete(kind, name, ns);
    } else {
      Put(config::KindName(kind), ns, name, SpecOf(kind, variant), time++ % 9);
    }
    return {key, name, ns};
  }
};

TEST_F(IncrementalTest, EqualsFromScratchAfterAnyChanges) {
  EXPECT_TRUE(rc::check([this] {
    discovery.services.clear();
    for (const Kind kind :
         {Kind::kDestinationRule, Kind::kVirtualService, Kind::kSidecar, Kind::kGateway, Kind::kPeerAuthentication}) {
      for (const std::string_view ns : kNamespaces) {
        for (const char* name : {"n0", "n1"}) configs.Delete(kind, name, ns);
      }
    }
    int time = 0;
    for (int i = 0; i < 20; ++i) Change(time);
    PushContextRef push = Push();
    const int steps = Pick(1, 20);
    for (int step = 0; step < steps; ++step) {
      PushRequest request;
      const int changes = Pick(1, 4);
      for (int i = 0; i < changes; ++i) request.configs_updated.insert(Change(time));
      push = PushContext::Create(env, push.get(), request, "incremental");
      RC_ASSERT(Dump(*push, discovery.services) == Dump(*Push(), discovery.services));
    }
  }));
}

TEST_F(IncrementalTest, WhatAChangeDoesNotTouchIsShared) {
  AddService("a", "a");
  const PushContextRef before = Push();
  PushRequest request;
  request.configs_updated.insert({ConfigKind::kTelemetry, "t", "a"});
  const PushContextRef after = PushContext::Create(env, before.get(), request, "2");
  EXPECT_EQ(&before->GetAllServices(), &after->GetAllServices());
  EXPECT_EQ(before->GetSidecarScope(Sidecar("a"), {}), after->GetSidecarScope(Sidecar("a"), {}));
  request.configs_updated.clear();
  EXPECT_NE(&before->GetAllServices(), &PushContext::Create(env, before.get(), request, "3")->GetAllServices())
      << "a request without keys concerns everything";
}

}  // namespace
}  // namespace wavetank::pilot
