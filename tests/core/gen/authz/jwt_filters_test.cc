#include "core/gen/authz/jwt_filters.h"

#include "core/profile/changes.h"
#include "envoy/extensions/filters/http/jwt_authn/v3/config.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "istio/authn.pb.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using JwtPb = ::envoy::extensions::filters::http::jwt_authn::v3::JwtAuthentication;
using AuthnPb = ::istio::envoy::config::filter::http::authn::v2alpha1::FilterConfig;
using Rule = config::RequestAuthentication::JwtRule;

class JwtFiltersTest : public ::testing::Test {
 protected:
  static Rule Issued(const std::string& issuer, const std::string& jwks = "{}") {
    Rule rule;
    rule.issuer = issuer;
    rule.jwks = jwks;
    return rule;
  }
  void Add(std::vector<Rule> rules, const std::string& ns = "shop", const std::string& name = "tokens") {
    config::RequestAuthentication policy;
    policy.jwt_rules = std::move(rules);
    world_.AddRequestAuthentication(policy, ns, name);
  }
  Manager Filters(NodeType type = NodeType::kSidecarProxy) {
    Environment env = world_.Env();
    env.jwks = resolver_;
    push_ = PushContext::Create(env, nullptr, {}, "1");
    Manager out;
    EXPECT_TRUE(out.ParseFromString(MakeJwtFilters(world_.Connect(*push_, "c1", type), *push_)));
    return out;
  }
  JwtPb Jwt() {
    JwtPb out;
    const Manager filters = Filters();
    EXPECT_TRUE(filters.http_filters_size() > 0 && filters.http_filters(0).typed_config().UnpackTo(&out));
    return out;
  }

  GenWorld world_;
  JwksResolver* resolver_ = nullptr;
  PushContextRef push_;
};

TEST_F(JwtFiltersTest, WithoutRulesThereIsNoFilter) {
  EXPECT_EQ(Filters().http_filters_size(), 0);
  Add({});
  EXPECT_EQ(Filters().http_filters_size(), 0);
}

TEST_F(JwtFiltersTest, OneIssuersTokenOrNone) {
  Add({Issued("i")});
  const JwtPb jwt = Jwt();
  const auto& any = jwt.rules(0).requires_().requires_any();
  ASSERT_EQ(any.requirements_size(), 2);
  EXPECT_EQ(any.requirements(0).provider_name(), "origins-0");
  EXPECT_TRUE(any.requirements(1).has_allow_missing());
  EXPECT_EQ(jwt.providers().at("origins-0").payload_in_metadata(), "i");
  EXPECT_TRUE(jwt.bypass_cors_preflight());
}

TEST_F(JwtFiltersTest, SeveralIssuersGoByNameAndAnyOfThemWillDo) {
  Add({Issued("c"), Issued("a")}, "istio-system");
  Add({Issued("b")});
  const JwtPb jwt = Jwt();
  EXPECT_EQ(jwt.providers().at("origins-0").issuer(), "a");
  EXPECT_EQ(jwt.providers().at("origins-1").issuer(), "b");
  EXPECT_EQ(jwt.providers().at("origins-2").issuer(), "c");
  const auto& any = jwt.rules(0).requires_().requires_any();
  ASSERT_EQ(any.requirements_size(), 4);
  EXPECT_EQ(any.requirements(2).provider_name(), "origins-2");
  EXPECT_EQ(any.requirements(3).requires_all().requirements_size(), 3);
}

TEST_F(JwtFiltersTest, IstiosOwnFilterKnowsTheIssuersAndClearsRoutesAtGatewaysOnly) {
  Add({Issued("i")});
  for (const NodeType type : {NodeType::kSidecarProxy, NodeType::kRouter}) {
    const Manager filters = Filters(type);
    ASSERT_EQ(filters.http_filters_size(), 2);
    EXPECT_EQ(filters.http_filters(1).name(), "istio_authn");
    AuthnPb authn;
    ASSERT_TRUE(filters.http_filters(1).typed_config().UnpackTo(&authn));
    EXPECT_EQ(authn.policy().origins(0).jwt().issuer(), "i");
    EXPECT_EQ(authn.disable_clear_route_cache(), type == NodeType::kSidecarProxy);
  }
  world_.profile.Set(Change::kUpstreamEnvoy);
  EXPECT_EQ(Filters().http_filters_size(), 1) << "a stock Envoy does not know it";
}

TEST_F(JwtFiltersTest, LaterWhatATokenSaysStaysWithEnvoysOwnFilterInOnePiece) {
  world_.profile.Set(Change::kJwtPayload);
  Add({Issued("i")});
  for (const NodeType type : {NodeType::kSidecarProxy, NodeType::kRouter}) {
    const Manager filters = Filters(type);
    ASSERT_EQ(filters.http_filters_size(), 1) << "istio_authn is gone";
    JwtPb jwt;
    ASSERT_TRUE(filters.http_filters(0).typed_config().UnpackTo(&jwt));
    const auto& provider = jwt.providers().at("origins-0");
    EXPECT_EQ(provider.payload_in_metadata(), "payload");
    EXPECT_THAT(provider.normalize_payload_in_metadata().space_delimited_claims(), ElementsAre("permission", "scope"));
    EXPECT_EQ(provider.clear_route_cache(), type == NodeType::kRouter) << "gateways alone choose routes by claims";
  }
}

TEST_F(JwtFiltersTest, KeysThatAreNotToBeHadAreReplacedByOneThatVerifiesNothing) {
  Rule rule = Issued("i", "");
  rule.jwks_uri = "https://keys.example/jwks";
  Add({rule});
  EXPECT_EQ(Jwt().providers().at("origins-0").local_jwks().inline_string(),
            R"({"keys":[ {"e":"AQAB","kid":"abc","kty":"RSA","n":)"
            R"("RXJyb3ItSXN0aW9kRmFpbGVkVG9GZXRjaEp3a3NVcmktaHR0cHM6Ly9rZXlzLmV4YW1wbGUvandrcw"}]})");
}

TEST_F(JwtFiltersTest, KeysAreAskedForWhereARuleBringsNone) {
  struct Resolver : JwksResolver {
    std::vector<std::string> asked;
    std::optional<std::string> KeySet(const std::string& issuer, const std::string& uri) override {
      asked.push_back(issuer + " " + uri);
      return uri == "u" ? std::optional<std::string>("{\"keys\":[1]}") : std::nullopt;
    }
  } resolver;
  resolver_ = &resolver;
  Rule fetched = Issued("i", ""), brought = Issued("j");
  fetched.jwks_uri = brought.jwks_uri = "u";
  Add({fetched, brought});
  EXPECT_EQ(Jwt().providers().at("origins-0").local_jwks().inline_string(), "{\"keys\":[1]}");
  EXPECT_THAT(resolver.asked, ElementsAre("i u"));
}

TEST_F(JwtFiltersTest, TokensStandInCookiesAndClaimsAreSplitAtSpacesSinceTheReleasesThatReadIt) {
  Rule rule = Issued("i");
  rule.from_cookies = {"session"};
  rule.space_delimited_claims = {"zone", "scope", "group"};
  Add({rule});
  world_.profile.Set(Change::kJwtPayload);
  const auto provider = [&] { return Jwt().providers().at("origins-0"); };
  EXPECT_EQ(provider().from_cookies_size(), 0);
  EXPECT_THAT(provider().normalize_payload_in_metadata().space_delimited_claims(), ElementsAre("permission", "scope"));
  for (const Change change : {Change::kTokensInCookies, Change::kSpaceDelimitedClaims}) world_.profile.Set(change);
  EXPECT_THAT(provider().from_cookies(), ElementsAre("session"));
  EXPECT_THAT(provider().normalize_payload_in_metadata().space_delimited_claims(),
              ElementsAre("group", "permission", "scope", "zone"));
}

}  // namespace
}  // namespace wavetank::pilot
