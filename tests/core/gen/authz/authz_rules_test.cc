#include "core/gen/authz/authz_rules.h"

#include "core/gen/authz/authz_trust_domains.h"
#include "envoy/config/rbac/v3/rbac.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/config/yaml_config.h"

namespace wavetank::pilot::authz {
namespace {

using ::testing::ElementsAre;

config::AuthorizationPolicy::Rule Rule(const std::string& yaml) {
  const auto policy = config::ParseAs<config::AuthorizationPolicy>(
      config::ConfigYaml("AuthorizationPolicy", "shop", "p", "rules: [" + yaml + "]"));
  return policy->spec.rules.at(0);
}

// As text on one line; "void" if the rule is.
std::string Encoded(const std::string& yaml, const RuleOptions& options = {}) {
  const std::optional<std::string> bytes = EncodeRule(Rule(yaml), options);
  if (!bytes) return "void";
  ::envoy::config::rbac::v3::Policy policy;
  EXPECT_TRUE(policy.ParseFromString(*bytes)) << yaml;
  return policy.ShortDebugString();
}

RuleOptions Tcp(bool allow) {
  RuleOptions out;
  out.tcp = true;
  out.allow = allow;
  return out;
}

constexpr char kAnyPrincipal[] = " principals { and_ids { ids { any: true } } }";
constexpr char kAnyPermission[] = "permissions { and_rules { rules { any: true } } }";

std::string OfToken(const std::string& yaml, bool tcp = false, bool allow = false) {
  RuleOptions options;
  options.jwt_payload = true;
  options.tcp = tcp;
  options.allow = allow;
  return Encoded(yaml, options);
}

TEST(AuthzRules, IssuerAndSubjectOfATokenAreMatchedEachWhereTheLastSlashPartsThem) {
  const auto matches = [](const char* claim, const char* how) {
    return std::string(
               "ids { metadata { filter: \"envoy.filters.http.jwt_authn\" path { key: \"payload\" } path { key: \"") +
           claim + "\" } value { string_match { " + how + " } } } }";
  };
  const auto both = [&](const char* issuer, const char* subject) {
    return std::string(kAnyPermission) + " principals { and_ids { ids { and_ids { " + matches("iss", issuer) + " " +
           matches("sub", subject) + " } } } }";
  };
  EXPECT_EQ(OfToken("{from: [{source: {requestPrincipals: [\"https://a.example/me\"]}}]}"),
            both("exact: \"https://a.example\"", "exact: \"me\""));
  EXPECT_EQ(OfToken("{from: [{source: {requestPrincipals: [\"https://a.example/*\"]}}]}"),
            both("exact: \"https://a.example\"", "safe_regex { regex: \".+\" }"));
  EXPECT_EQ(OfToken("{from: [{source: {requestPrincipals: [\"*/me\"]}}]}"),
            both("safe_regex { regex: \".+\" }", "exact: \"me\""));
  EXPECT_EQ(OfToken("{from: [{source: {requestPrincipals: [\"*me\"]}}]}"),
            both("safe_regex { regex: \".+\" }", "suffix: \"me\""));
}

TEST(AuthzRules, AClaimIsMatchedAsATextOrAsAListThatHasIt) {
  const std::string claims = OfToken("{when: [{key: \"request.auth.claims[a][b]\", values: [x, \"y*\"]}]}");
  EXPECT_THAT(claims, ::testing::HasSubstr("path { key: \"payload\" } path { key: \"a\" } path { key: \"b\" }"));
  EXPECT_THAT(claims, ::testing::HasSubstr("or_match { value_matchers { list_match { one_of { or_match {"));
  EXPECT_EQ(OfToken("{when: [{key: request.auth.audiences, values: [x]}]}", true, true), "void");
  EXPECT_EQ(OfToken("{when: [{key: request.auth.audiences, values: [x]}]}", true, false),
            std::string(kAnyPermission) + kAnyPrincipal);
}

TEST(AuthzRules, HeadersAreMatchedByTheFieldsThatTheReleaseKnows) {
  RuleOptions options;
  EXPECT_THAT(Encoded("{to: [{operation: {methods: [GET]}}]}", options), ::testing::HasSubstr("exact_match: \"GET\""));
  options.string_headers = true;
  EXPECT_THAT(Encoded("{to: [{operation: {methods: [GET]}}]}", options),
              ::testing::HasSubstr("string_match { exact: \"GET\" }"));
}

TEST(AuthzRules, AnEmptyRuleMatchesEverything) {
  EXPECT_EQ(Encoded("{}"), std::string(kAnyPermission) + kAnyPrincipal);
  EXPECT_EQ(Encoded("{from: [{source: {}}], to: [{operation: {}}]}"), std::string(kAnyPermission) + kAnyPrincipal);
}

TEST(AuthzRules, ValuesAreAlternativesAndPropertiesHoldTogether) {
  EXPECT_EQ(Encoded("{to: [{operation: {ports: ['80', '81'], notPorts: ['82'], methods: [GET]}}]}"),
            "permissions { and_rules { "
            "rules { or_rules { rules { header { name: \":method\" exact_match: \"GET\" } } } } "
            "rules { or_rules { rules { destination_port: 80 } rules { destination_port: 81 } } } "
            "rules { not_rule { or_rules { rules { destination_port: 82 } } } } } }" +
                std::string(kAnyPrincipal));
}

TEST(AuthzRules, ConditionsHoldForEverySourceAndOperation) {
  const std::string both = Encoded(
      "{from: [{source: {ipBlocks: ['1.1.1.1']}}, {source: {ipBlocks: ['2.2.2.0/24']}}],"
      " when: [{key: 'remote.ip', values: ['3.3.3.3']}]}");
  EXPECT_EQ(both, std::string(kAnyPermission) +
                      " principals { and_ids { ids { or_ids { ids { direct_remote_ip { address_prefix: \"1.1.1.1\" "
                      "prefix_len { value: 32 } } } } } ids { or_ids { ids { remote_ip { address_prefix: \"3.3.3.3\" "
                      "prefix_len { value: 32 } } } } } } }"
                      " principals { and_ids { ids { or_ids { ids { direct_remote_ip { address_prefix: \"2.2.2.0\" "
                      "prefix_len { value: 24 } } } } } ids { or_ids { ids { remote_ip { address_prefix: \"3.3.3.3\" "
                      "prefix_len { value: 32 } } } } } } }");
}

TEST(AuthzRules, AnAllowRuleWithAValueThatDoesNotApplyIsVoid) {
  EXPECT_EQ(Encoded("{to: [{operation: {methods: [GET]}}]}", Tcp(true)), "void");
  EXPECT_EQ(Encoded("{from: [{source: {ipBlocks: ['x']}}]}",
                    [] {
                      RuleOptions allow;
                      allow.allow = true;
                      return allow;
                    }()),
            "void");
}

TEST(AuthzRules, AnyOtherRuleGoesWithoutTheValueAndTakesMore) {
  EXPECT_EQ(Encoded("{to: [{operation: {methods: [GET]}}]}", Tcp(false)), std::string(kAnyPermission) + kAnyPrincipal);
  EXPECT_EQ(Encoded("{to: [{operation: {methods: [GET], ports: ['1', 'x']}}]}", Tcp(false)),
            "permissions { and_rules { rules { or_rules { rules { destination_port: 1 } } } } }" +
                std::string(kAnyPrincipal));
}

TEST(AuthzRules, PrincipalsAreTheCertificatesOrWhatTheAuthnFilterFound) {
  RuleOptions authenticated;
  authenticated.authenticated = true;
  const std::string rule = "{from: [{source: {principals: ['*', 'a*', '*b']}}]}";
  EXPECT_EQ(Encoded(rule, authenticated),
            std::string(kAnyPermission) +
                " principals { and_ids { ids { or_ids { "
                "ids { authenticated { principal_name { safe_regex { regex: \".+\" } } } } "
                "ids { authenticated { principal_name { prefix: \"spiffe://a\" } } } "
                "ids { authenticated { principal_name { safe_regex { regex: \"spiffe://.*b\" } } } } } } } }");
  EXPECT_THAT(Encoded(rule),
              ::testing::HasSubstr("filter_state { key: \"io.istio.peer_principal\" string_match { safe_regex"));
}

TEST(AuthzRules, OnlyConditionsOnKnownAttributesAreKnown) {
  EXPECT_TRUE(IsKnownRule(Rule("{when: [{key: 'request.headers[x]', values: [a]}]}"), {}));
  EXPECT_FALSE(IsKnownRule(Rule("{when: [{key: 'destination.labels[x]', values: [a]}]}"), {}));
}

RuleOptions Today() {
  RuleOptions out;
  out.authenticated = true;
  out.reads = ReadFields::Of(*ParseProfile("istio-1.30"));
  out.policy_namespace = "shop";
  return out;
}

TEST(AuthzRules, AServiceAccountIsOneOfTheRulesNamespaceUnlessItSaysAnother) {
  const std::string encoded =
      Encoded("{from: [{source: {serviceAccounts: [buyer, other/seller], notServiceAccounts: [thief]}}]}", Today());
  EXPECT_THAT(encoded, ::testing::HasSubstr(R"(regex: "spiffe://.+/ns/shop/(.+/|)sa/buyer(/.+)?")"));
  EXPECT_THAT(encoded, ::testing::HasSubstr(R"(regex: "spiffe://.+/ns/other/(.+/|)sa/seller(/.+)?")"));
  EXPECT_THAT(encoded, ::testing::HasSubstr("not_id { or_ids { ids { authenticated"));
  EXPECT_THAT(Encoded("{from: [{source: {serviceAccounts: [buyer]}}]}"), ::testing::HasSubstr(kAnyPrincipal))
      << "no field of older releases";
  EXPECT_TRUE(IsKnownRule(Rule("{when: [{key: source.serviceAccount, values: [a]}]}"), Today()));
  EXPECT_FALSE(IsKnownRule(Rule("{when: [{key: source.serviceAccount, values: [a]}]}"), {}));
}

TEST(AuthzRules, ATrustDomainIsThatOfTheIdentityAndItsAliases) {
  EXPECT_THAT(Encoded("{from: [{source: {trustDomains: [a.example]}}]}", Today()),
              ::testing::HasSubstr("prefix: \"spiffe://a.example/\""));
  EXPECT_THAT(Encoded("{from: [{source: {trustDomains: [\"*\"]}}]}", Today()),
              ::testing::HasSubstr("prefix: \"spiffe://\""));
  EXPECT_THAT(Encoded("{when: [{key: source.trustDomain, values: [\"a.*\"]}]}", Today()),
              ::testing::HasSubstr(R"(regex: "spiffe://a\\.[^/]*/.*")"));
  config::MeshConfig mesh;
  mesh.trust_domain = "new";
  mesh.trust_domain_aliases = {"old"};
  EXPECT_THAT(TrustDomains(mesh).ExpandDomains({"other", "old", "new"}), ElementsAre("other", "new", "old"));
}

TEST(AuthzRules, APathWithBracesIsATemplateSinceTheReleaseThatKnowsThem) {
  const std::string rule = "{to: [{operation: {paths: [\"/a/{*}/b/{**}\"]}}]}";
  EXPECT_THAT(Encoded(rule, Today()), ::testing::HasSubstr("uri_template { name: \"uri-template\""));
  EXPECT_THAT(Encoded(rule, Today()), ::testing::HasSubstr("/a/*/b/**"));
  EXPECT_THAT(Encoded(rule), ::testing::HasSubstr("url_path { path { exact: \"/a/{*}/b/{**}\""));
}

TEST(AuthzRules, ANamespaceIsTextSinceTheReleaseThatQuotesIt) {
  const std::string rule = "{from: [{source: {namespaces: [\"a.b*\"]}}]}";
  EXPECT_THAT(Encoded(rule, Today()), ::testing::HasSubstr(R"(regex: ".*/ns/a\\.b.*/.*")"));
  EXPECT_THAT(Encoded(rule), ::testing::HasSubstr(R"(regex: ".*/ns/a.b.*/.*")"));
}

TEST(AuthzRules, ValuesOfAFiltersMetadataAreOneMatcherSinceTheReleaseThatJoinsThem) {
  const std::string rule = "{when: [{key: 'experimental.envoy.filters.network.x[k]', values: ['[v]', w]}]}";
  const std::string today = Encoded(rule, Today()), before = Encoded(rule);
  EXPECT_THAT(today, ::testing::HasSubstr("value { or_match { value_matchers { list_match { one_of { string_match { "
                                          "exact: \"v\" } } } } value_matchers { string_match { exact: \"w\" } } } }"));
  EXPECT_THAT(before, ::testing::HasSubstr("or_rules { rules { metadata"));
}

std::vector<std::string> Expanded(std::vector<std::string> principals) {
  config::MeshConfig mesh;
  mesh.trust_domain = "new";
  mesh.trust_domain_aliases = {"old-1", "old-2"};
  return TrustDomains(mesh).Expand(principals);
}

TEST(AuthzTrustDomains, WhoIsNamedInOneIsMeantInAll) {
  EXPECT_THAT(Expanded({"old-1/ns/a/sa/b"}), ElementsAre("new/ns/a/sa/b", "old-1/ns/a/sa/b", "old-2/ns/a/sa/b"));
  EXPECT_THAT(Expanded({"cluster.local/ns/a/sa/b"}),
              ElementsAre("new/ns/a/sa/b", "old-1/ns/a/sa/b", "old-2/ns/a/sa/b"));
  EXPECT_THAT(Expanded({"other/ns/a/sa/b", "*", "*/ns/a/sa/b", "a/b"}),
              ElementsAre("other/ns/a/sa/b", "*", "*/ns/a/sa/b", "a/b"));
  EXPECT_THAT(Expanded({"old*/ns/a/sa/b"}), ElementsAre("new/ns/a/sa/b", "old-1/ns/a/sa/b", "old-2/ns/a/sa/b"));
  EXPECT_THAT(Expanded({"*-1/ns/a/sa/b"}), ElementsAre("new/ns/a/sa/b", "*-1/ns/a/sa/b", "old-2/ns/a/sa/b"));
}

TEST(AuthzTrustDomains, APrincipalInAConditionMultipliesWithTheSources) {
  config::MeshConfig mesh;
  mesh.trust_domain = "new";
  mesh.trust_domain_aliases = {"old"};
  const TrustDomains domains(mesh);
  RuleOptions options;
  options.trust_domains = &domains;
  const auto count = [&](const std::string& from) {
    const auto bytes =
        EncodeRule(Rule("{" + from + "when: [{key: source.principal, values: ['new/ns/a/sa/b']}]}"), options);
    ::envoy::config::rbac::v3::Policy policy;
    policy.ParseFromString(*bytes);
    const auto& ids = policy.principals(0).and_ids().ids();
    return ids.rbegin()->or_ids().ids_size();
  };
  EXPECT_EQ(count(""), 2);
  EXPECT_EQ(count("from: [{source: {namespaces: [x]}}], "), 2);
  EXPECT_EQ(count("from: [{source: {namespaces: [x]}}, {source: {namespaces: ['y']}}], "), 4);
}

}  // namespace
}  // namespace wavetank::pilot::authz
