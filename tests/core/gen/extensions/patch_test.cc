// EnvoyFilters' patches on what the generators make of a small mesh.
#include <string>
#include <vector>

#include "core/gen/cds/cds.h"
#include "core/gen/extensions/ecds.h"
#include "core/gen/lds/lds.h"
#include "core/gen/rds/rds.h"
#include "core/profile/changes.h"
#include "core/xds/cache.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/core/v3/extension.pb.h"
#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/config/route/v3/route.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/config/yaml_config.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ClusterPb = ::envoy::config::cluster::v3::Cluster;
using ListenerPb = ::envoy::config::listener::v3::Listener;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using RoutesPb = ::envoy::config::route::v3::RouteConfiguration;
using HostPb = ::envoy::config::route::v3::VirtualHost;

constexpr char kWeb[] = "outbound|80||web.shop.svc.cluster.local";
constexpr char kDb[] = "outbound|5432||db.shop.svc.cluster.local";

class EnvoyPatchTest : public ::testing::Test {
 protected:
  EnvoyPatchTest() {
    world_.AddService("web");
    auto db = world_.AddService("db", "shop", {"tcp", 5432, Protocol::kTcp});
    db->default_address = "240.0.0.3";
  }
  // `patches` in YAML's flow style: "{applyTo: ...}, {...}".
  void Filter(const std::string& patches, const std::string& name = "filter", const std::string& ns = "shop") {
    world_.configs.Put(
        config::ParseYaml(config::ConfigYaml("EnvoyFilter", ns, name, "configPatches: [" + patches + "]")));
  }
  static std::string Patch(const std::string& kind, const std::string& operation, const std::string& value = "",
                           const std::string& match = "") {
    return "{applyTo: " + kind + (match.empty() ? "" : ", match: {" + match + "}") +
           ", patch: {operation: " + operation + (value.empty() ? "" : ", value: {" + value + "}") + "}}";
  }

  template <typename T>
  static std::vector<T> Decode(const GeneratedResources& generated) {
    std::vector<T> out;
    for (const Resource& r : generated.resources)
      EXPECT_TRUE(out.emplace_back().ParseFromString(std::string(*r.bytes)));
    return out;
  }
  Proxy Connect() {
    push_ = world_.Push();
    Proxy proxy = world_.Connect(*push_, "c1");
    proxy.metadata.istio_version = "1.18.2";
    return proxy;
  }
  std::vector<ClusterPb> Clusters(XdsCache* cache = nullptr) {
    const Proxy proxy = Connect();
    return Decode<ClusterPb>(MakeCdsGenerator({cache})->Generate(proxy, {}, world_.Request(push_)));
  }
  std::vector<ListenerPb> Listeners() {
    const Proxy proxy = Connect();
    return Decode<ListenerPb>(MakeLdsGenerator()->Generate(proxy, {}, world_.Request(push_)));
  }
  RoutesPb Routes(const std::string& name, XdsCache* cache = nullptr) {
    const Proxy proxy = Connect();
    const WatchedResource watched{.type = XdsType::kRds, .resource_names = std::vector<std::string>{name}};
    return Decode<RoutesPb>(MakeRdsGenerator({cache})->Generate(proxy, watched, world_.Request(push_))).at(0);
  }
  template <typename List>
  static std::vector<std::string> Names(const List& list) {
    std::vector<std::string> out;
    for (const auto& item : list) out.push_back(item.name());
    return out;
  }
  template <typename List>
  static auto Named(const List& list, const std::string& name) {
    for (const auto& item : list) {
      if (item.name() == name) return item;
    }
    ADD_FAILURE() << "no " << name;
    return std::decay_t<decltype(*list.begin())>();
  }
  static Manager ManagerOf(const ::envoy::config::listener::v3::FilterChain& chain) {
    Manager manager;
    EXPECT_TRUE(chain.filters(chain.filters_size() - 1).typed_config().UnpackTo(&manager));
    return manager;
  }
  std::vector<std::string> HttpFilters() {
    return Names(ManagerOf(Named(Listeners(), "0.0.0.0_80").filter_chains(0)).http_filters());
  }

  GenWorld world_;
  PushContextRef push_;
};

TEST_F(EnvoyPatchTest, ClustersAreMergedAddedAndRemoved) {
  Filter(Patch("CLUSTER", "MERGE", "connect_timeout: 3s", "cluster: {service: web.shop.svc.cluster.local}") + ", " +
         Patch("CLUSTER", "REMOVE", "", "context: SIDECAR_OUTBOUND, cluster: {portNumber: 5432}") + ", " +
         Patch("CLUSTER", "ADD", "name: mine, type: STATIC"));
  const auto clusters = Clusters();
  EXPECT_EQ(Named(clusters, kWeb).connect_timeout().seconds(), 3);
  EXPECT_NE(Named(clusters, "BlackHoleCluster").connect_timeout().seconds(), 3);
  EXPECT_THAT(Names(clusters), Not(Contains(kDb)));
  EXPECT_THAT(Names(clusters), Contains("mine").Times(1)) << "for any context means once";
}

TEST_F(EnvoyPatchTest, ContextsTellInboundFromOutbound) {
  Filter(Patch("CLUSTER", "MERGE", "alt_stat_name: inbound", "context: SIDECAR_INBOUND") + ", " +
         Patch("CLUSTER", "MERGE", "alt_stat_name: gateway", "context: GATEWAY") + ", " +
         Patch("CLUSTER", "ADD", "name: mine", "context: SIDECAR_INBOUND"));
  const auto clusters = Clusters();
  EXPECT_EQ(Named(clusters, kWeb).alt_stat_name(), "");
  EXPECT_EQ(Named(clusters, "InboundPassthroughClusterIpv4").alt_stat_name(), "inbound");
  EXPECT_EQ(Names(clusters).back(), "mine");
}

TEST_F(EnvoyPatchTest, ATransportSocketGoesIntoTheOneOfItsNameAndNothingElseIsMerged) {
  const std::string tls =
      "typed_config: {'@type': type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: "
      "x}";
  Filter(Patch("CLUSTER", "MERGE", "connect_timeout: 3s, transport_socket: {name: mine, " + tls + "}",
               "cluster: {name: BlackHoleCluster}"));
  const ClusterPb cluster = Named(Clusters(), "BlackHoleCluster");
  EXPECT_EQ(cluster.transport_socket().name(), "mine");
  EXPECT_NE(cluster.connect_timeout().seconds(), 3);
}

TEST_F(EnvoyPatchTest, CachedClustersDependOnTheEnvoyFiltersThatPatchThem) {
  XdsCache cache;
  EXPECT_EQ(Named(Clusters(&cache), kWeb).alt_stat_name(), "");
  Filter(Patch("CLUSTER", "MERGE", "alt_stat_name: a"));
  EXPECT_EQ(Named(Clusters(&cache), kWeb).alt_stat_name(), "a") << "another key";
  Filter(Patch("CLUSTER", "MERGE", "alt_stat_name: b"));
  EXPECT_EQ(Named(Clusters(&cache), kWeb).alt_stat_name(), "a") << "the same key, until the push clears it";
  cache.Clear({{ConfigKind::kEnvoyFilter, "filter", "shop"}}, Time(1s));
  EXPECT_EQ(Named(Clusters(&cache), kWeb).alt_stat_name(), "b");
}

TEST_F(EnvoyPatchTest, ListenersAreMergedAddedAndRemoved) {
  Filter(Patch("LISTENER", "MERGE", "stat_prefix: web", "listener: {portNumber: 80}") + ", " +
         Patch("LISTENER", "REMOVE", "", "listener: {name: virtualOutbound}") + ", " +
         Patch("LISTENER", "ADD", "name: mine"));
  const auto listeners = Listeners();
  EXPECT_EQ(Named(listeners, "0.0.0.0_80").stat_prefix(), "web");
  EXPECT_THAT(Names(listeners), ElementsAre("240.0.0.3_5432", "0.0.0.0_80", "mine", "virtualInbound"));
}

TEST_F(EnvoyPatchTest, FilterChainsAreFoundByWhatTheyMatch) {
  Filter(Patch("FILTER_CHAIN", "REMOVE", "",
               "context: SIDECAR_INBOUND, listener: {filterChain: {transportProtocol: tls}}") +
         ", " + Patch("FILTER_CHAIN", "ADD", "name: mine", "listener: {name: virtualInbound}"));
  const ListenerPb inbound = Named(Listeners(), "virtualInbound");
  EXPECT_THAT(inbound.filter_chains(), Not(IsEmpty()));
  for (const auto& chain : inbound.filter_chains()) {
    EXPECT_NE(chain.filter_chain_match().transport_protocol(), "tls");
    EXPECT_NE(chain.name(), "mine") << "a chain without filters goes along with one that is removed";
  }
}

TEST_F(EnvoyPatchTest, HttpFiltersFindTheirPlaceByName) {
  const auto place = [&](const char* operation, const char* filter, const char* sub_filter) {
    return Patch("HTTP_FILTER", operation, std::string("name: ") + filter,
                 std::string("listener: {portNumber: 80, filterChain: {filter: {name: "
                             "envoy.filters.network.http_connection_manager, subFilter: {name: ") +
                     sub_filter + "}}}}");
  };
  const std::vector<std::string> plain = HttpFilters();
  ASSERT_EQ(plain.back(), "envoy.filters.http.router");
  Filter(place("INSERT_BEFORE", "before-router", "envoy.filters.http.router") + ", " +
         place("INSERT_AFTER", "after-cors", "envoy.cors") + ", " + place("INSERT_BEFORE", "lost", "nobody") + ", " +
         place("REPLACE", "no-fault", "envoy.filters.http.fault") + ", " +
         Patch("HTTP_FILTER", "INSERT_FIRST", "name: first", "listener: {portNumber: 80}"));
  std::vector<std::string> wanted = {"first"};
  for (const std::string& name : plain) {
    if (name == plain.back()) wanted.push_back("before-router");
    wanted.push_back(name == "envoy.filters.http.fault" ? "no-fault" : name);
    if (name == "envoy.filters.http.cors") wanted.push_back("after-cors");
  }
  EXPECT_EQ(HttpFilters(), wanted);
  Filter(Patch("HTTP_FILTER", "REMOVE", "",
               "listener: {filterChain: {filter: {name: "
               "envoy.filters.network.http_connection_manager, subFilter: {name: envoy.router}}}}"));
  wanted = plain;
  wanted.pop_back();
  EXPECT_EQ(HttpFilters(), wanted);
}

TEST_F(EnvoyPatchTest, AFiltersConfigurationIsMergedWhateverTypeThePatchNames) {
  const std::string type = "'@type': type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";
  Filter(Patch("NETWORK_FILTER", "MERGE", "typed_config: {" + type + ", max_connect_attempts: 3}",
               "listener: {portNumber: 5432}"));
  ::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy tcp;
  const ListenerPb db = Named(Listeners(), "240.0.0.3_5432");
  ASSERT_TRUE(db.filter_chains(0).filters(db.filter_chains(0).filters_size() - 1).typed_config().UnpackTo(&tcp));
  EXPECT_EQ(tcp.max_connect_attempts().value(), 3u);
  EXPECT_EQ(tcp.cluster(), kDb) << "what was there stays";
}

TEST_F(EnvoyPatchTest, ListenerFiltersArePlacedReplacedAndRemoved) {
  const auto filters = [&] { return Names(Named(Listeners(), "0.0.0.0_80").listener_filters()); };
  Filter(Patch("LISTENER_FILTER", "INSERT_BEFORE", "name: mine",
               "listener: {portNumber: 80, listenerFilter: envoy.listener.http_inspector}") +
         ", " +
         Patch("LISTENER_FILTER", "REMOVE", "",
               "listener: {portNumber: 80, listenerFilter: envoy.filters.listener.tls_inspector}"));
  EXPECT_THAT(filters(), ElementsAre("mine", "envoy.filters.listener.http_inspector"));
}

TEST_F(EnvoyPatchTest, VirtualHostsAndRoutesArePatched) {
  Filter(
      Patch("ROUTE_CONFIGURATION", "MERGE", "response_headers_to_remove: [x]", "routeConfiguration: {portNumber: 80}") +
      ", " +
      Patch("VIRTUAL_HOST", "MERGE", "domains: [more.test]",
            "routeConfiguration: {vhost: {name: 'web.shop.svc.cluster.local:80'}}") +
      ", " + Patch("VIRTUAL_HOST", "REMOVE", "", "routeConfiguration: {vhost: {name: allow_any}}") + ", " +
      Patch("VIRTUAL_HOST", "ADD", "name: mine", "context: SIDECAR_OUTBOUND") + ", " +
      Patch("HTTP_ROUTE", "MERGE", "route: {timeout: 5s}",
            "routeConfiguration: {vhost: {route: {name: default, action: ROUTE}}}") +
      ", " + Patch("HTTP_ROUTE", "INSERT_FIRST", "name: first, match: {path: /a}", "routeConfiguration: {name: '80'}") +
      ", " + Patch("HTTP_ROUTE", "INSERT_FIRST", "name: lost", "routeConfiguration: {vhost: {route: {name: nobody}}}"));
  const RoutesPb routes = Routes("80");
  EXPECT_THAT(routes.response_headers_to_remove(), ElementsAre("x"));
  EXPECT_THAT(Names(routes.virtual_hosts()), ElementsAre("web.shop.svc.cluster.local:80", "mine"));
  const HostPb& web = routes.virtual_hosts(0);
  EXPECT_THAT(web.domains(), Contains("more.test"));
  EXPECT_THAT(Names(web.routes()), ElementsAre("first", "default"));
  EXPECT_EQ(web.routes(1).route().timeout().seconds(), 5);
}

// istiod: rc_patch.go, virtualHostMatch.
TEST_F(EnvoyPatchTest, VirtualHostsAreChosenByOneOfTheirDomainsSince126) {
  Filter(Patch("VIRTUAL_HOST", "MERGE", "request_headers_to_remove: [x]",
               "routeConfiguration: {vhost: {domainName: web.shop.svc.cluster.local}}"));
  const auto patched = [&] {
    std::vector<std::string> out;
    const RoutesPb routes = Routes("80");
    for (const HostPb& host : routes.virtual_hosts()) {
      if (host.request_headers_to_remove_size() > 0) out.push_back(host.name());
    }
    return out;
  };
  EXPECT_THAT(patched(), ElementsAre("web.shop.svc.cluster.local:80", "allow_any")) << "the field is none of the API's";
  world_.profile.Set(Change::kPatchesByDomain);
  EXPECT_THAT(patched(), ElementsAre("web.shop.svc.cluster.local:80"));
}

TEST_F(EnvoyPatchTest, CachedRoutesDependOnTheEnvoyFiltersThatPatchThem) {
  XdsCache cache;
  const auto host = [&] { return Routes("80", &cache).virtual_hosts(0).include_attempt_count_in_response(); };
  EXPECT_FALSE(host());
  Filter(Patch("VIRTUAL_HOST", "MERGE", "include_attempt_count_in_response: true"));
  EXPECT_TRUE(host());
  Filter(Patch("CLUSTER", "MERGE", "alt_stat_name: a"));
  EXPECT_FALSE(host()) << "an EnvoyFilter that patches no route has no part in the key";
}

TEST_F(EnvoyPatchTest, APatchThatPanicsLeavesWhatWasDoneAndDoesNothingMore) {
  Filter(Patch("LISTENER", "MERGE", "stat_prefix: done") + ", " +
         Patch("NETWORK_FILTER", "ADD", "name: 1", "listener: {name: 0.0.0.0_80}") + ", " +
         Patch("LISTENER", "ADD", "name: mine"));
  const auto listeners = Listeners();
  EXPECT_EQ(Named(listeners, "240.0.0.3_5432").stat_prefix(), "done");
  EXPECT_EQ(Named(listeners, "0.0.0.0_80").stat_prefix(), "done");
  EXPECT_EQ(Named(listeners, "virtualOutbound").stat_prefix(), "done") << "patched by itself";
  EXPECT_THAT(Names(listeners), Not(Contains("mine")));
}

TEST_F(EnvoyPatchTest, ExtensionConfigurationsAreServedByName) {
  const std::string lua = "typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua}";
  Filter(Patch("EXTENSION_CONFIG", "ADD", "name: a, " + lua) + ", " +
         Patch("EXTENSION_CONFIG", "ADD", "name: b, " + lua));
  const Proxy proxy = Connect();
  const WatchedResource watched{.type = XdsType::kEcds, .resource_names = std::vector<std::string>{"b", "c"}};
  PushRequest request = world_.Request(push_);
  const auto names = [&] {
    return Names(Decode<::envoy::config::core::v3::TypedExtensionConfig>(
        MakeEcdsGenerator()->Generate(proxy, watched, request)));
  };
  EXPECT_THAT(names(), ElementsAre("b"));
  request.configs_updated.insert({ConfigKind::kEnvoyFilter, "filter", "shop"});
  EXPECT_THAT(names(), ElementsAre("b"));
  request.configs_updated = {{ConfigKind::kServiceEntry, "x", "shop"}};
  EXPECT_FALSE(MakeEcdsGenerator()->Generate(proxy, watched, request).send);
}

}  // namespace
}  // namespace wavetank::pilot
