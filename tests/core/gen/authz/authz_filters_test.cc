#include "core/gen/authz/authz_filters.h"

#include "core/profile/changes.h"
#include "envoy/config/listener/v3/listener_components.pb.h"
#include "envoy/extensions/filters/http/ext_authz/v3/ext_authz.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/gen/gen_world.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Action = config::AuthorizationPolicy::Action;
using HttpRbac = ::envoy::extensions::filters::http::rbac::v3::RBAC;
using TcpRbac = ::envoy::extensions::filters::network::rbac::v3::RBAC;
using Manager = ::envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using Chain = ::envoy::config::listener::v3::FilterChain;
using RbacPb = ::envoy::config::rbac::v3::RBAC;

class AuthzFiltersTest : public ::testing::Test {
 protected:
  void Policy(const std::string& name, Action action, const std::string& method = "GET", Labels annotations = {}) {
    config::AuthorizationPolicy policy;
    policy.action = action;
    if (action == Action::kCustom) policy.provider = provider_;
    policy.rules.emplace_back().to.emplace_back().methods.values = {method};
    world_.AddAuthorizationPolicy(policy, "shop", name, std::move(annotations));
  }

  void Generate() {
    push_ = world_.Push();
    proxy_ = world_.Connect(*push_, "c1");
    proxy_.metadata.istio_version = version_;
    AuthzFilters filters(proxy_, *push_);
    EXPECT_TRUE(http_.ParseFromString(filters.CustomHttp() + filters.Http()));
    EXPECT_TRUE(tcp_.ParseFromString(filters.CustomTcp() + filters.Tcp()));
  }

  // "ALLOW enforced:NAMES shadow:NAMES", whichever are there.
  template <typename Rbac>
  static std::string Describe(const google::protobuf::Any& config) {
    Rbac rbac;
    if (!config.UnpackTo(&rbac)) return config.type_url();
    std::string out;
    const auto add = [&](const char* what, const RbacPb& rules) {
      out += RbacPb::Action_Name(rules.action()) + " " + what + ":";
      std::set<std::string> names;
      for (const auto& [name, policy] : rules.policies()) names.insert(name);
      for (const std::string& name : names) out += name + " ";
    };
    if (rbac.has_rules()) add("enforced", rbac.rules());
    if (rbac.has_shadow_rules()) add("shadow", rbac.shadow_rules());
    return out + rbac.shadow_rules_stat_prefix();
  }
  std::vector<std::string> Http() const {
    std::vector<std::string> out;
    for (const auto& filter : http_.http_filters()) out.push_back(Describe<HttpRbac>(filter.typed_config()));
    return out;
  }
  std::vector<std::string> Tcp() const {
    std::vector<std::string> out;
    for (const auto& filter : tcp_.filters()) out.push_back(Describe<TcpRbac>(filter.typed_config()));
    return out;
  }

  GenWorld world_;
  PushContextRef push_;
  Proxy proxy_;
  std::string version_ = "1.18.2", provider_ = "oauth";
  Manager http_;
  Chain tcp_;
};

constexpr char kHttpExtAuthz[] = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz";
constexpr char kTcpExtAuthz[] = "type.googleapis.com/envoy.extensions.filters.network.ext_authz.v3.ExtAuthz";

TEST_F(AuthzFiltersTest, WithoutPoliciesThereIsNoFilter) {
  Generate();
  EXPECT_THAT(Http(), IsEmpty());
  EXPECT_THAT(Tcp(), IsEmpty());
}

TEST_F(AuthzFiltersTest, AuditComesBeforeDenyAndDenyBeforeAllow) {
  Policy("a", Action::kAllow);
  Policy("d", Action::kDeny);
  Policy("l", Action::kAudit);
  Generate();
  EXPECT_THAT(Http(), ElementsAre("LOG enforced:ns[shop]-policy[l]-rule[0] istio_dry_run_allow_",
                                  "DENY enforced:ns[shop]-policy[d]-rule[0] istio_dry_run_allow_",
                                  "ALLOW enforced:ns[shop]-policy[a]-rule[0] istio_dry_run_allow_"));
  EXPECT_THAT(Tcp(), ElementsAre("LOG enforced:ns[shop]-policy[l]-rule[0] istio_dry_run_allow_",
                                 "DENY enforced:ns[shop]-policy[d]-rule[0] istio_dry_run_allow_",
                                 "ALLOW enforced:istio_dry_run_allow_"))
      << "a rule of HTTP denies every connection, and allows none";
}

TEST_F(AuthzFiltersTest, ADryRunIsWhatGoReadsAsTrue) {
  Policy("a", Action::kDeny, "GET", {{"istio.io/dry-run", "T"}});
  Policy("b", Action::kDeny, "GET", {{"istio.io/dry-run", "yes"}});
  Generate();
  EXPECT_THAT(Http(), ElementsAre("DENY enforced:ns[shop]-policy[b]-rule[0] DENY shadow:ns[shop]-policy[a]-rule[0] "
                                  "istio_dry_run_deny_"));
}

TEST_F(AuthzFiltersTest, APolicyWithoutRulesNeverMatches) {
  world_.AddAuthorizationPolicy({}, "shop", "nothing");
  Generate();
  HttpRbac rbac;
  ASSERT_TRUE(http_.http_filters(0).typed_config().UnpackTo(&rbac));
  const auto& policy = rbac.rules().policies().at("ns[shop]-policy[nothing]-rule[0]");
  EXPECT_TRUE(policy.permissions(0).not_rule().any());
  EXPECT_TRUE(policy.principals(0).not_id().any());
}

TEST_F(AuthzFiltersTest, ACustomPolicyAsksItsAuthorizerWhereARuleMatched) {
  world_.AddService("authz", "infra", {"grpc", 9000, Protocol::kGrpc});
  config::ExtensionProvider oauth{.name = "oauth"};
  oauth.ext_authz_grpc = config::ExtensionProvider::ExtAuthz();
  oauth.ext_authz_grpc->service = GenWorld::Host("authz", "infra");
  oauth.ext_authz_grpc->port = 9000;
  world_.mesh.extension_providers = {oauth};
  Policy("c", Action::kCustom);
  Policy("d", Action::kDeny);
  Generate();
  const std::string shadow = "DENY shadow:istio-ext-authz-ns[shop]-policy[c]-rule[0] istio_ext_authz_";
  EXPECT_THAT(Http(),
              ElementsAre(shadow, kHttpExtAuthz, "DENY enforced:ns[shop]-policy[d]-rule[0] istio_dry_run_allow_"));
  EXPECT_THAT(Tcp(),
              ElementsAre(shadow, kTcpExtAuthz, "DENY enforced:ns[shop]-policy[d]-rule[0] istio_dry_run_allow_"));
  ::envoy::extensions::filters::http::ext_authz::v3::ExtAuthz authz;
  ASSERT_TRUE(http_.http_filters(1).typed_config().UnpackTo(&authz));
  EXPECT_EQ(authz.grpc_service().envoy_grpc().authority(), "outbound_.9000_._.authz.infra.svc.cluster.local");
}

TEST_F(AuthzFiltersTest, ACustomPolicyWithoutAProviderThatIsThereDeniesAll) {
  Policy("c", Action::kCustom);
  Generate();
  EXPECT_THAT(Http(), ElementsAre("DENY enforced:default-deny-all-due-to-bad-CUSTOM-action "));
  EXPECT_THAT(Tcp(), ElementsAre("DENY enforced:default-deny-all-due-to-bad-CUSTOM-action "));
}

TEST_F(AuthzFiltersTest, SeveralProvidersOfAWorkloadDenyEachForItselfSince130) {
  world_.profile.Set(Change::kBadAuthorizersDenyByRule);
  Policy("c", Action::kCustom);
  provider_ = "another";
  Policy("d", Action::kCustom);
  Generate();
  EXPECT_THAT(Http(),
              ElementsAre("DENY enforced:istio-ext-authz-ns[shop]-policy[c]-rule[0]-deny-due-to-bad-CUSTOM-action "
                          "istio-ext-authz-ns[shop]-policy[d]-rule[0]-deny-due-to-bad-CUSTOM-action "));
  world_.profile.Set(Change::kAuthorizersByName);
  http_.Clear();
  tcp_.Clear();
  Generate();
  const auto each =
      ElementsAre("DENY enforced:istio-ext-authz-another-ns[shop]-policy[d]-rule[0]-deny-due-to-bad-CUSTOM-action ",
                  "DENY enforced:istio-ext-authz-oauth-ns[shop]-policy[c]-rule[0]-deny-due-to-bad-CUSTOM-action ");
  EXPECT_THAT(Http(), each);
  EXPECT_THAT(Tcp(), each);
}

TEST_F(AuthzFiltersTest, ADryRunOfAnAuthorizerIsEnforcedSince130) {
  world_.AddService("authz", "infra", {"grpc", 9000, Protocol::kGrpc});
  config::ExtensionProvider oauth{.name = "oauth"};
  oauth.ext_authz_grpc = config::ExtensionProvider::ExtAuthz();
  oauth.ext_authz_grpc->service = GenWorld::Host("authz", "infra");
  oauth.ext_authz_grpc->port = 9000;
  world_.mesh.extension_providers = {oauth};
  world_.profile.Set(Change::kBadAuthorizersDenyByRule);
  world_.profile.Set(Change::kAuthorizersByName);
  Policy("c", Action::kCustom, "GET", {{"istio.io/dry-run", "true"}});
  Generate();
  EXPECT_THAT(Http(), ElementsAre("DENY enforced:istio-ext-authz-oauth-ns[shop]-policy[c]-rule[0] DENY shadow:"
                                  "istio_ext_authz_",
                                  kHttpExtAuthz));
}

TEST_F(AuthzFiltersTest, AnAuthorizerOfHttpIsNotAskedForConnections) {
  world_.AddService("authz", "infra");
  config::ExtensionProvider oauth{.name = "oauth"};
  oauth.ext_authz_http = config::ExtensionProvider::ExtAuthz();
  oauth.ext_authz_http->service = "infra/" + GenWorld::Host("authz", "infra");
  oauth.ext_authz_http->port = 80;
  world_.mesh.extension_providers = {oauth};
  Policy("c", Action::kCustom);
  Generate();
  EXPECT_EQ(Http().size(), 2u);
  EXPECT_THAT(Tcp(), IsEmpty());
}

TEST_F(AuthzFiltersTest, AStockEnvoyAndAnOldProxyReadIdentitiesFromTheCertificate) {
  config::AuthorizationPolicy policy;
  policy.rules.emplace_back().from.emplace_back().namespaces.values = {"a"};
  world_.AddAuthorizationPolicy(policy);
  const auto authenticated = [&] {
    Generate();
    HttpRbac rbac;
    EXPECT_TRUE(http_.http_filters(0).typed_config().UnpackTo(&rbac));
    const auto& made = rbac.rules().policies().begin()->second;
    return made.principals(0).and_ids().ids(0).or_ids().ids(0).has_authenticated();
  };
  EXPECT_FALSE(authenticated());
  version_ = "1.16.5";
  EXPECT_TRUE(authenticated());
  version_ = "1.18.2";
  world_.profile.Set(Change::kUpstreamEnvoy);
  EXPECT_TRUE(authenticated());
}

}  // namespace
}  // namespace wavetank::pilot
