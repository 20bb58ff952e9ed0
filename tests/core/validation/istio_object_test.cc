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

// What the webhook of Istio 1.30.3 refuses (istiod: pkg/config/validation at that tag).
std::string RefusedToday(const std::string& group, const std::string& kind, const std::string& spec) {
  const auto object = kube::ParseYaml(
      "apiVersion: " + group + ".istio.io/v1\nkind: " + kind + "\nmetadata: {name: a, namespace: x}\nspec: " + spec,
      "test");
  EXPECT_TRUE(object.ok()) << object.status();
  const auto profile = pilot::ParseProfile("istio-1.30");
  EXPECT_TRUE(profile.ok());
  return Judge(*object, *profile).denied;
}

TEST(ValidationOfToday, RetriesKnowMoreWords) {
  const std::string spec =
      "{hosts: [a], http: [{route: [{destination: {host: a}}], retries: {attempts: 1, retryOn: "
      "'reset-before-request,http3-post-connect-failure,503'}}]}";
  EXPECT_EQ(RefusedToday("networking", "VirtualService", spec), "");
  EXPECT_THAT(Errors("VirtualService", "a", spec),
              ElementsAre("\"reset-before-request\" is not a valid retryOn policy",
                          "\"http3-post-connect-failure\" is not a valid retryOn policy"))
      << "1.18.2 does not know them";
}

TEST(ValidationOfToday, WorkloadsOfANetworkNeedNoAddress) {
  EXPECT_EQ(RefusedToday("networking", "WorkloadEntry", "{network: net}"), "");
  EXPECT_EQ(RefusedToday("networking", "ServiceEntry",
                         "{hosts: [a.b], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], "
                         "endpoints: [{network: net}]}"),
            "");
  EXPECT_THAT(RefusedToday("networking", "WorkloadEntry", "{labels: {a: b}}"),
              ::testing::HasSubstr("address is required"));
  EXPECT_THAT(Errors("WorkloadEntry", "a", "{network: net}"), ElementsAre("address must be set"))
      << "1.18.2 wants one always";
}

TEST(ValidationOfToday, DynamicDnsIsForWildcardsOfHttpAndTls) {
  const auto entry = [](const std::string& hosts, const std::string& more) {
    return RefusedToday(
        "networking", "ServiceEntry",
        "{hosts: [" + hosts + "], resolution: DYNAMIC_DNS, ports: [{number: 80, name: p, protocol: " + more + "}");
  };
  EXPECT_EQ(entry("'*.a.b', '*-c.a.b'", "HTTP}]"), "");
  EXPECT_EQ(entry("'*.a.b'", "GRPC}]"), "");
  EXPECT_THAT(entry("c.a.b", "HTTP}]"),
              ::testing::HasSubstr("host must be wildcarded for resolution mode DYNAMIC_DNS"));
  EXPECT_THAT(entry("'*.a.b'", "TCP}]"),
              ::testing::HasSubstr("only HTTP, TLS, GRPC, and HTTP2 protocols are supported for resolution type "));
  EXPECT_THAT(entry("'*.a.b'", "HTTP}], addresses: [10.0.0.1]"),
              ::testing::HasSubstr("addresses cannot be set for resolution type DYNAMIC_DNS"));
  EXPECT_THAT(entry("'*.a.b'", "HTTP}], endpoints: [{address: 10.0.0.1}]"),
              ::testing::HasSubstr("endpoints cannot be set for resolution type DYNAMIC_DNS"));
  EXPECT_THAT(Errors("ServiceEntry", "a",
                     "{hosts: ['*.a.b'], resolution: DYNAMIC_DNS, ports: [{number: 80, name: p, protocol: HTTP}]}"),
              ::testing::Contains(::testing::HasSubstr("unsupported resolution type")))
      << "1.18.2 does not know the word";
}

TEST(ValidationOfToday, PolicyPartsThatCameLaterAreParts) {
  const auto rule = [](const std::string& policy) {
    return RefusedToday("networking", "DestinationRule", "{host: a, trafficPolicy: " + policy + "}");
  };
  EXPECT_EQ(rule("{retryBudget: {percent: 20}}"), "");
  EXPECT_EQ(rule("{proxyProtocol: {version: V2}}"), "");
  EXPECT_EQ(rule("{connectionPool: {tcp: {idleTimeout: 0s}}}"), "") << "switched off";
  EXPECT_THAT(rule("{connectionPool: {tcp: {idleTimeout: 1us}, http: {maxConcurrentStreams: -1}}}"),
              HasSubstr("max concurrent streams must be non-negative"));
  EXPECT_THAT(rule("{loadBalancer: {warmup: {aggression: 0.5, minimumPercent: 101}}}"),
              ::testing::AllOf(HasSubstr("duration is required"), HasSubstr("minimumPercent value should be less than"),
                               HasSubstr("aggression should be greater than or equal to 1")));
  EXPECT_THAT(rule("{proxyProtocol: {version: V1}, tunnel: {targetHost: a.b, targetPort: 1}}"),
              HasSubstr("tunnel and proxyProtocol must not be set together"));
  EXPECT_THAT(rule("{tls: {mode: SIMPLE, credentialName: a, caCrl: /crl}}"),
              HasSubstr("cannot specify client certificates or CA certificate or CA CRL If credentialName is set"));
  EXPECT_THAT(Errors("DestinationRule", "a", "{host: a, trafficPolicy: {retryBudget: {percent: 20}}}"),
              ElementsAre("traffic policy must have at least one field"))
      << "1.18.2 does not know it";
}

TEST(ValidationOfToday, RoutesAreRewrittenCopiedAndRetriedInOneWay) {
  const auto route = [](const std::string& more) {
    return RefusedToday("networking", "VirtualService",
                        "{hosts: [a], http: [{route: [{destination: {host: a}}], " + more + "}]}");
  };
  EXPECT_EQ(route("rewrite: {uriRegexRewrite: {match: \"^/a\", rewrite: /b}}"), "");
  EXPECT_THAT(route("rewrite: {uri: /a, uriRegexRewrite: {match: a, rewrite: b}}"),
              HasSubstr("rewrite may only contain one of URI or UriRegexRewrite"));
  EXPECT_THAT(route("rewrite: {uriRegexRewrite: {match: a}}"),
              HasSubstr("UriRegexRewrite requires both Rewrite and Match fields to be specified"));
  EXPECT_EQ(route("mirrors: [{destination: {host: b}}]"), "");
  EXPECT_THAT(route("mirror: {host: b}, mirrors: [{percentage: {value: 101}}]"),
              ::testing::AllOf(HasSubstr("HTTP route cannot contain both mirror and mirrors"),
                               HasSubstr("destination is required for mirrors")));
  EXPECT_THAT(route("retries: {attempts: 1, backoff: 1us}"), HasSubstr("duration must be greater than 1ms"));
}

TEST(ValidationOfToday, AServersCertificatesHaveOneSource) {
  const auto server = [](const std::string& tls) {
    return RefusedToday("networking", "Gateway",
                        "{servers: [{port: {number: 443, name: s, protocol: HTTPS}, hosts: [a.b], tls: " + tls + "}]}");
  };
  EXPECT_EQ(server("{mode: OPTIONAL_MUTUAL, credentialName: a}"), "");
  EXPECT_EQ(server("{mode: SIMPLE, credentialNames: [a, b]}"), "");
  EXPECT_EQ(server("{mode: SIMPLE, tlsCertificates: [{serverCertificate: /a, privateKey: /b}]}"), "");
  EXPECT_THAT(server("{mode: SIMPLE, credentialName: a, credentialNames: [b]}"),
              HasSubstr("only one of credential_name, credential_names, server_certificate/private_key"));
  EXPECT_THAT(server("{mode: OPTIONAL_MUTUAL, serverCertificate: /a, privateKey: /b}"),
              HasSubstr("MUTUAL TLS requires a client CA bundle"));
  EXPECT_THAT(server("{mode: SIMPLE, serverCertificate: /a, privateKey: /b, caCrl: /c}"),
              HasSubstr("CRL is not supported with SIMPLE TLS"));
}

TEST(ValidationOfToday, SourcesPathsAndTargetsOfPoliciesHaveTheirForm) {
  const auto policy = [](const std::string& spec) { return RefusedToday("security", "AuthorizationPolicy", spec); };
  EXPECT_EQ(policy("{rules: [{from: [{source: {serviceAccounts: [a, b/c], trustDomains: [\"*.x\"]}}]}]}"), "");
  EXPECT_THAT(policy("{rules: [{from: [{source: {serviceAccounts: [\"a*\"]}}]}]}"),
              HasSubstr("wildcard not allowed, found in ServiceAccounts"));
  EXPECT_THAT(policy("{rules: [{from: [{source: {serviceAccounts: [a], namespaces: [b]}}]}]}"),
              HasSubstr("cannot set serviceAccounts with namespaces or principals, found at rule 0"));
  EXPECT_THAT(policy("{rules: [{from: [{source: {trustDomains: [a/b]}}]}]}"),
              HasSubstr("trust domain must not contain '/', found in TrustDomains: \"a/b\""));
  EXPECT_EQ(policy("{rules: [{to: [{operation: {paths: [\"/a/{*}/b/{**}\"]}}]}]}"), "");
  EXPECT_THAT(policy("{rules: [{to: [{operation: {paths: [\"/{**}/{*}\"]}}]}]}"),
              HasSubstr("{**} is not the last operator"));
  EXPECT_THAT(policy("{rules: [{to: [{operation: {paths: [\"/a{b}\"]}}]}]}"),
              HasSubstr("Contains '{' or '}' beyond a supported path template"));
  EXPECT_EQ(policy("{targetRefs: [{kind: Service, name: a}], rules: [{}]}"), "");
  EXPECT_THAT(policy("{selector: {matchLabels: {a: b}}, targetRefs: [{kind: Pod}], rules: [{}]}"),
              ::testing::AllOf(HasSubstr("only one of targetRefs or workloadSelector can be set"),
                               HasSubstr("targetRef name must be set"), HasSubstr("but was /Pod")));
}

TEST(ValidationOfToday, ASidecarMayLimitConnectionsAlone) {
  EXPECT_EQ(RefusedToday("networking", "Sidecar", "{inboundConnectionPool: {tcp: {maxConnections: 1}}}"), "");
  EXPECT_THAT(RefusedToday("networking", "Sidecar", "{inboundConnectionPool: {}}"),
              HasSubstr("connection pool must have at least one field"));
}

}  // namespace
}  // namespace wavetank::validation
