#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/config/yaml_config.h"

namespace wavetank::config {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DestinationRule Rule(std::string_view spec) {
  return ParseAs<DestinationRule>(ConfigYaml("DestinationRule", "ns", "dr", spec))->spec;
}
VirtualService Virtual(std::string_view spec) {
  return ParseAs<VirtualService>(ConfigYaml("VirtualService", "ns", "vs", spec))->spec;
}

TEST(ParseDestinationRule, ReadsTrafficPolicySubsetsAndPorts) {
  const DestinationRule rule = Rule(R"(host: reviews
trafficPolicy:
  loadBalancer:
    simple: LEAST_REQUEST
    warmupDurationSecs: 1m30s
    localityLbSetting:
      failover: [{from: us-east, to: us-west}]
  connectionPool:
    tcp: {maxConnections: 7, connectTimeout: 250ms}
    http: {h2UpgradePolicy: UPGRADE}
  outlierDetection: {consecutive5xxErrors: 3, interval: 1s}
  portLevelSettings:
  - port: {number: 8443}
    tls: {mode: SIMPLE, sni: a.example}
subsets:
- name: v1
  labels: {version: v1}
exportTo: ["."]
)");
  EXPECT_EQ(rule.host, "reviews");
  ASSERT_TRUE(rule.traffic_policy);
  EXPECT_EQ(rule.traffic_policy->load_balancer->simple, LoadBalancerSettings::Simple::kLeastRequest);
  EXPECT_EQ(rule.traffic_policy->load_balancer->warmup_duration_secs, Duration(90s));
  EXPECT_EQ(rule.traffic_policy->load_balancer->locality_lb_setting->failover[0].to, "us-west");
  EXPECT_EQ(rule.traffic_policy->connection_pool->tcp->connect_timeout, Duration(250ms));
  EXPECT_EQ(rule.traffic_policy->connection_pool->http->h2_upgrade_policy,
            ConnectionPoolSettings::Http::H2UpgradePolicy::kUpgrade);
  EXPECT_EQ(rule.traffic_policy->outlier_detection->consecutive_5xx_errors, 3u);
  EXPECT_FALSE(rule.traffic_policy->outlier_detection->consecutive_gateway_errors);
  ASSERT_EQ(rule.traffic_policy->port_level_settings.size(), 1u);
  EXPECT_EQ(rule.traffic_policy->port_level_settings[0].port, 8443u);
  EXPECT_EQ(rule.traffic_policy->port_level_settings[0].tls->mode, ClientTlsSettings::Mode::kSimple);
  EXPECT_EQ(rule.subsets[0].labels.at("version"), "v1");
  EXPECT_THAT(rule.export_to, ElementsAre("."));
}

TEST(ParseDestinationRule, TellsAnEmptyLoadBalancerFromAChosenOne) {
  EXPECT_FALSE(Rule("host: a\ntrafficPolicy: {loadBalancer: {}}").traffic_policy->load_balancer->simple);
  EXPECT_EQ(Rule("host: a\ntrafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x, maglev: {}}}}")
                .traffic_policy->load_balancer->consistent_hash->algorithm,
            ConsistentHash::Algorithm::kMaglev);
}

TEST(ParseConfigTest, TakesSnakeCaseNumbersAsTextAndEnumsAsNumbers) {
  const DestinationRule rule = Rule(R"(host: a
traffic_policy:
  connection_pool:
    tcp: {max_connections: "12"}
  tls: {mode: 3}
)");
  EXPECT_EQ(rule.traffic_policy->connection_pool->tcp->max_connections, 12);
  EXPECT_EQ(rule.traffic_policy->tls->mode, ClientTlsSettings::Mode::kIstioMutual);
}

TEST(ParseConfigTest, IgnoresWhatItDoesNotKnowAndNulls) {
  EXPECT_EQ(Rule("host: a\nmadeUp: {x: 1}\nsubsets: null").host, "a");
}

TEST(ParseConfigTest, NamesThePathOfAFieldOfTheWrongType) {
  const auto config = TryParseYaml(ConfigYaml("DestinationRule", "ns", "dr", R"(host: a
subsets:
- name: v1
- name: [v2]
)"));
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("spec.subsets[1].name: expected text"));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("DestinationRule/ns/dr"));
}

TEST(ParseConfigTest, RefusesUnknownEnumNamesAndBadDurations) {
  EXPECT_FALSE(TryParseYaml(ConfigYaml("DestinationRule", "ns", "dr", "trafficPolicy: {tls: {mode: MAYBE}}")).ok());
  EXPECT_FALSE(TryParseYaml(ConfigYaml("DestinationRule", "ns", "dr",
                                       "trafficPolicy: {connectionPool: {tcp: {connectTimeout: soon}}}"))
                   .ok());
}

TEST(ParseConfigTest, RefusesOtherKinds) {
  const auto config = TryParseYaml("apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b}\n");
  EXPECT_FALSE(config.ok());
}

TEST(ParseVirtualService, ReadsRoutesMatchesAndFaults) {
  const VirtualService vs = Virtual(R"(hosts: [a, b]
gateways: [mesh, ns/gw]
http:
- name: first
  match:
  - uri: {prefix: /x}
    headers: {cookie: {regex: ".*"}, present: {}}
    sourceLabels: {app: c}
  route:
  - destination: {host: a, subset: v1, port: {number: 80}}
    weight: 30
    headers: {request: {set: {k: v}, remove: [r]}}
  - destination: {host: b}
    weight: 70
  timeout: 0s
  retries: {attempts: 2, perTryTimeout: 1s, retryRemoteLocalities: true}
  fault: {delay: {fixedDelay: 5s, percentage: {value: 0.1}}, abort: {httpStatus: 503}}
  mirrorPercentage: {value: 50}
- redirect: {uri: /y, derivePort: FROM_REQUEST_PORT}
- delegate: {name: d, namespace: other}
tls:
- match: [{port: 443, sniHosts: [s.example]}]
  route: [{destination: {host: a}}]
tcp:
- route: [{destination: {host: b, port: {number: 1}}}]
)");
  EXPECT_THAT(vs.hosts, ElementsAre("a", "b"));
  ASSERT_EQ(vs.http.size(), 3u);
  const HttpRoute& first = vs.http[0];
  EXPECT_EQ(first.match[0].uri->kind, StringMatch::Kind::kPrefix);
  EXPECT_EQ(first.match[0].headers.at("present").kind, StringMatch::Kind::kNone);
  EXPECT_EQ(first.route[0].destination, (Destination{"a", "v1", 80}));
  EXPECT_EQ(first.route[0].weight, 30);
  EXPECT_THAT(first.route[0].headers->request->remove, ElementsAre("r"));
  EXPECT_EQ(first.timeout, Duration(0));
  EXPECT_EQ(first.retries->retry_remote_localities, true);
  EXPECT_EQ(first.fault->delay->percentage, 0.1);
  EXPECT_EQ(first.fault->abort->http_status, 503);
  EXPECT_EQ(first.mirror_percentage, 50);
  EXPECT_FALSE(vs.http[1].redirect->port);
  EXPECT_EQ(vs.http[1].redirect->derive_port, HttpRedirect::DerivePort::kFromRequestPort);
  EXPECT_EQ(vs.http[2].delegate->ns, "other");
  EXPECT_THAT(vs.tls[0].match[0].sni_hosts, ElementsAre("s.example"));
  EXPECT_EQ(vs.tcp[0].route[0].destination.port, 1u);
}

TEST(ParseGateway, KnowsWhatEachServerIs) {
  const auto gateway = ParseAs<Gateway>(ConfigYaml("Gateway", "ns", "gw", R"(selector: {istio: eastwestgateway}
servers:
- port: {number: 15443, name: tls, protocol: TLS}
  tls: {mode: AUTO_PASSTHROUGH}
  hosts: ["*.local"]
- port: {number: 443, name: https, protocol: HTTPS}
  tls: {mode: SIMPLE, credentialName: c}
  hosts: [h]
- port: {number: 80, name: http, protocol: HTTP}
  hosts: [h]
- hosts: [h]
)"));
  const std::vector<Server>& servers = gateway->spec.servers;
  ASSERT_EQ(servers.size(), 4u);
  EXPECT_EQ(servers[0].tls->mode, ServerTlsSettings::Mode::kAutoPassthrough);
  EXPECT_TRUE(IsPassThroughServer(servers[0]));
  EXPECT_TRUE(IsTlsServer(servers[0]));
  EXPECT_FALSE(IsHttpServer(servers[0]));
  EXPECT_TRUE(IsHttpsServerWithTlsTermination(servers[1]));
  EXPECT_TRUE(IsHttpServer(servers[1]));
  EXPECT_TRUE(IsHttpServer(servers[2]));
  EXPECT_FALSE(IsTlsServer(servers[2]));
  EXPECT_FALSE(servers[3].has_port);
}

TEST(ParsePeerAuthentication, TellsAMissingModeFromAnUnsetOne) {
  const auto parse = [](std::string_view spec) {
    return ParseAs<PeerAuthentication>(ConfigYaml("PeerAuthentication", "ns", "pa", spec))->spec;
  };
  EXPECT_FALSE(parse("").mtls);
  EXPECT_EQ(parse("mtls: {}").mtls, PeerAuthentication::Mode::kUnset);
  const PeerAuthentication policy =
      parse("selector: {matchLabels: {app: a}}\nmtls: {mode: STRICT}\nportLevelMtls: {8080: {mode: DISABLE}}");
  EXPECT_EQ(policy.mtls, PeerAuthentication::Mode::kStrict);
  EXPECT_EQ(policy.port_level_mtls.at(8080), PeerAuthentication::Mode::kDisable);
  EXPECT_FALSE(
      TryParseYaml(ConfigYaml("PeerAuthentication", "ns", "pa", "portLevelMtls: {http: {mode: DISABLE}}")).ok());
}

TEST(ParseServiceEntry, ReadsEndpointsAndResolution) {
  const auto entry = ParseAs<ServiceEntry>(ConfigYaml("ServiceEntry", "ns", "se", R"(hosts: [db.example]
addresses: [10.9.0.0/16]
ports: [{number: 3306, name: mysql, protocol: MySQL, targetPort: 13306}]
location: MESH_INTERNAL
resolution: STATIC
endpoints:
- {address: 1.2.3.4, ports: {mysql: 33}, network: n2, locality: r/z, weight: 5, serviceAccount: sa, labels: {a: b}}
)"));
  EXPECT_EQ(entry->spec.resolution, ServiceEntry::Resolution::kStatic);
  EXPECT_EQ(entry->spec.ports[0].target_port, 13306u);
  EXPECT_EQ(entry->spec.endpoints[0].ports.at("mysql"), 33u);
  EXPECT_EQ(entry->spec.endpoints[0].network, "n2");
}

TEST(ParseSidecar, ReadsListenersAndOutboundPolicy) {
  const auto sidecar = ParseAs<Sidecar>(ConfigYaml("Sidecar", "ns", "sc", R"(workloadSelector: {labels: {app: a}}
ingress: [{port: {number: 9080, protocol: HTTP, name: x}, defaultEndpoint: "127.0.0.1:8080"}]
egress: [{port: {number: 3306, protocol: TCP}, captureMode: NONE, bind: 1.1.1.1, hosts: ["./*"]}, {hosts: ["*/*"]}]
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
)"));
  EXPECT_EQ(sidecar->spec.workload_selector->at("app"), "a");
  EXPECT_EQ(sidecar->spec.egress[0].capture_mode, CaptureMode::kNone);
  EXPECT_FALSE(sidecar->spec.egress[1].port);
  EXPECT_EQ(sidecar->spec.outbound_traffic_policy->mode, OutboundTrafficPolicy::Mode::kRegistryOnly);
}

TEST(ParseConfigTest, KeepsMetadata) {
  const auto config = ParseYaml(ConfigYaml("Sidecar", "ns", "sc", "", 7));
  EXPECT_EQ(MetaOf(config).creation_unix_seconds, kWorldEpochUnixSeconds + 7);
  EXPECT_EQ(MetaOf(config).kind, Kind::kSidecar);
}

}  // namespace
}  // namespace wavetank::config
