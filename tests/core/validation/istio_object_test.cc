// What istiod's webhook refuses: objects and the words of a real `istioctl validate` 1.18.2 for them.
#include "core/validation/istio_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kube/yaml.h"

namespace wavetank::validation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The errors of an object, one each.
std::vector<std::string> Errors(const std::string& kind, const std::string& name, const std::string& spec) {
  const auto object = kube::ParseYaml("apiVersion: networking.istio.io/v1beta1\nkind: " + kind +
                                          "\nmetadata: {name: " + name + ", namespace: x}\nspec: " + spec,
                                      "test");
  EXPECT_TRUE(object.ok()) << object.status();
  const std::string why = WhyInvalid(*object);
  std::vector<std::string> out;
  for (size_t at = why.find("\t* "); at != std::string::npos; at = why.find("\t* ", at + 1)) {
    out.push_back(why.substr(at + 3, why.find('\n', at) - at - 3));
  }
  constexpr std::string_view kBegin = "configuration is invalid: ";
  if (out.empty() && !why.empty()) out.push_back(why.substr(kBegin.size()));
  return out;
}

TEST(Validation, WeightsOfAVirtualServiceAreNotNegative) {
  EXPECT_THAT(
      Errors("VirtualService", "a",
             "{hosts: [tea], http: [{route: [{destination: {host: tea}, weight: -15}, {destination: {host: milk}, "
             "weight: 15}]}]}"),
      ElementsAre("weight -15 < 0", "total destination weight = 0"));
}

TEST(Validation, ADelegateHasNoGatewaysAndARouteLeadsSomewhere) {
  EXPECT_THAT(Errors("VirtualService", "a", R"({gateways: [g], http: [{match: [{uri: {regex: "a("}}]}]})"),
              ElementsAre("delegate virtual service must have no gateways specified",
                          "HTTP route, redirect or direct_response is required"));
}

TEST(Validation, AWildcardHostNeedsAGatewayAndPartsOfARouteMustFit) {
  EXPECT_THAT(
      Errors("VirtualService", "a",
             R"({hosts: ["*"], http: [{route: [{destination: {host: tea, subset: "V_1", port: {number: 99999}}}],
                 redirect: {}, timeout: 0.5ms}]})"),
      ElementsAre("wildcard host * is not allowed for virtual services bound to the mesh gateway",
                  "HTTP route cannot contain both route and redirect",
                  "redirect must specify URI, authority, scheme, or port", "subset name is invalid: V_1",
                  "port number 99999 must be in the range 1..65535", "duration must be greater than 1ms"));
}

TEST(Validation, HostsAreToldOnceAndSniLiesWithinThem) {
  EXPECT_THAT(
      Errors("VirtualService", "a",
             R"({hosts: ["*.a.b", "c.a.b"], tls: [{match: [{sniHosts: [d.e]}], route: [{destination: {host: t}}]}]})"),
      ElementsAre("duplicate hosts in virtual service: *.a.b & c.a.b",
                  "SNI host \"d.e\" is not a compatible subset of any of the virtual service hosts: [*.a.b, c.a.b]"));
}

TEST(Validation, FaultsRetriesAndExportsHaveTheirRanges) {
  EXPECT_THAT(Errors("VirtualService", "a",
                     R"({hosts: [tea], exportTo: ["*", "."], http: [{fault: {abort: {percentage: {value: 101},
                         httpStatus: 700}}, retries: {attempts: -1}, route: [{destination: {host: tea}}]}]})"),
              ElementsAre("percentage 101 is neither 0.0, nor in range [0.0001, 100.0]",
                          "HTTP status 700 is not in range 200-599", "attempts cannot be negative",
                          "cannot have both public (*) and non-public exportTo values for a resource"));
}

TEST(Validation, GatewaysHaveNamesHostsAndPortsThatFit) {
  EXPECT_THAT(
      Errors("Gateway", "b.1", "{servers: [{hosts: [], port: {number: 99999, protocol: FOO, name: p}}]}"),
      ElementsAre("invalid gateway name: \"b.1\"", "server config must contain at least one host",
                  "invalid protocol \"FOO\", supported protocols are HTTP, HTTP2, GRPC, GRPC-WEB, MONGO, REDIS, "
                  "MYSQL, TCP",
                  "port number 99999 must be in the range 1..65535"));
  EXPECT_THAT(
      Errors("Gateway", "b2",
             R"({servers: [{hosts: [short, "ns_/a.b"], port: {number: 443, protocol: HTTPS, name: p}},
                           {hosts: [a.b], port: {number: 80, protocol: HTTP, name: p}, tls: {mode: SIMPLE}}]})"),
      ElementsAre("short names (non FQDN) are not allowed", "invalid namespace value \"ns_\" in gateway",
                  "server must have TLS settings for HTTPS/TLS protocols", "SIMPLE TLS requires a server certificate",
                  "SIMPLE TLS requires a private key", "server cannot have TLS settings for plain text HTTP ports",
                  "port names in servers must be unique: duplicate name p"));
  EXPECT_THAT(Errors("Gateway", "b", "{}"), ElementsAre("gateway must have at least one server"));
}

TEST(Validation, DestinationRulesNameAHostAndSayOfPoliciesWhatIsInThem) {
  EXPECT_THAT(Errors("DestinationRule", "c",
                     R"({host: "", trafficPolicy: {}, subsets: [{name: "a b"}, {name: v1, trafficPolicy:
                         {connectionPool: {}}}]})"),
              ElementsAre("empty domain name not allowed", "traffic policy must have at least one field",
                          "subset name is invalid: a b", "connection pool must have at least one field"));
  EXPECT_THAT(Errors("DestinationRule", "c",
                     R"({host: tea, trafficPolicy: {tls: {mode: MUTUAL}, outlierDetection: {maxEjectionPercent: 300,
                         interval: 0s}, portLevelSettings: [{}]}})"),
              ::testing::UnorderedElementsAre(
                  "duration must be greater than 1ms", "percentage 300 is not in range 0..100",
                  "client certificate required for mutual tls", "private key required for mutual tls",
                  "portTrafficPolicy must have valid port", "port traffic policy must have at least one field"));
}

TEST(Validation, WhatIsRightPassesAndOtherKindsAreNotLookedAt) {
  EXPECT_TRUE(
      Errors("VirtualService", "ok",
             "{hosts: [tea], http: [{match: [{headers: {a: {exact: b}}}], route: [{destination: {host: tea}}]}]}")
          .empty());
  EXPECT_TRUE(
      Errors("Gateway", "ok", R"({servers: [{hosts: ["*.local"], port: {number: 15443, name: tls, protocol: TLS},
                                         tls: {mode: AUTO_PASSTHROUGH}}]})")
          .empty());
  EXPECT_TRUE(
      Errors("DestinationRule", "ok", "{host: tea.x.svc.cluster.local, subsets: [{name: v1, labels: {version: v1}}]}")
          .empty());
  EXPECT_EQ(WhyInvalid({{"apiVersion", "v1"}, {"kind", "Gateway"}}), "");
  EXPECT_EQ(WhyInvalid(nlohmann::json::array()), "");
}

TEST(Validation, WhatIsOnlyWarnedOfIsStored) {
  const auto object = kube::ParseYaml(R"(
apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata: {name: a, namespace: x}
spec:
  hosts: [tea]
  http:
  - {name: all, route: [{destination: {host: tea}}]}
  - {route: [{destination: {host: milk}}]}
)",
                                      "test");
  ASSERT_TRUE(object.ok()) << object.status();
  const Verdict verdict = Judge(*object);
  EXPECT_EQ(verdict.denied, "");
  EXPECT_THAT(verdict.warnings,
              ElementsAre("virtualService rule #1 not used (only the last rule can have no matches)"));
}

TEST(Validation, AnAuthorizationPolicyIsToldByItsName) {
  const auto object = kube::ParseYaml(
      "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: a, namespace: x}\n"
      "spec: {action: DENY, rules: [{when: [{key: source.ip, values: [1.2.3]}]}]}",
      "test");
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_THAT(Judge(*object).denied,
              StartsWith("configuration is invalid: invalid policy a.x: invalid `value` for `key` source.ip: 1 error "
                         "occurred:\n\t* bad IP address (1.2.3)"));
}

TEST(Validation, ShapesThatNoSchemaWouldLetInDoNoHarm) {
  for (const char* spec :
       {"5", "[]", "{hosts: 5, http: {}}", "{http: [5, null, [], {route: 7, match: [null, 3]}]}",
        "{servers: [1, null, {port: 5, hosts: {}, tls: []}]}", "{host: [], subsets: [1], trafficPolicy: 3}"}) {
    for (const char* kind : {"VirtualService", "Gateway", "DestinationRule", "ServiceEntry", "Sidecar", "WorkloadEntry",
                             "WorkloadGroup", "EnvoyFilter", "ProxyConfig"}) {
      Errors(kind, "x", spec);
    }
  }
  EXPECT_THAT(WhyInvalid({{"apiVersion", "networking.istio.io/v1beta1"}, {"kind", "VirtualService"}}),
              StartsWith("configuration is invalid: "));
}

}  // namespace
}  // namespace wavetank::validation
