// RBAC where a stock Envoy cannot show it: identities that the istio_authn filter wrote down, over real mutual TLS.
#include <gtest/gtest.h>

#include "envoy/config/listener/v3/listener.pb.h"
#include "envoy/extensions/filters/http/rbac/v3/rbac.pb.h"
#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb.h"
#include "envoy/extensions/filters/network/rbac/v3/rbac.pb.h"
#include "fakes/envoy/filters/rbac_config.h"
#include "fakes/envoy/tcp/http.h"
#include "tests/fakes/envoy/mesh.h"
#include "udpa/type/v1/typed_struct.pb.h"

namespace wavetank::envoysim::lab {
namespace {

using envoy::config::rbac::v3::RBAC;
using HttpRbac = envoy::extensions::filters::http::rbac::v3::RBAC;
using TcpRbac = envoy::extensions::filters::network::rbac::v3::RBAC;
using Manager = envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager;
using FilterChain = envoy::config::listener::v3::FilterChain;

// ALLOW for peers whose name matches `regex`, as istiod writes it for a namespace.
RBAC AllowPeers(const std::string& regex) {
  RBAC out;
  auto& policy = (*out.mutable_policies())["ns[sample]-policy[p]-rule[0]"];
  policy.add_permissions()->set_any(true);
  auto* state = policy.add_principals()->mutable_filter_state();
  state->set_key("io.istio.peer_principal");
  state->mutable_string_match()->mutable_safe_regex()->set_regex(regex);
  return out;
}

enum class Level { kHttp, kTcp };

class RbacMesh : public Mesh {
 public:
  RbacMesh(const RBAC& rules, bool authn, Level level) : Mesh(OneServer()) {
    envoy::config::listener::v3::Listener listener;
    auto& bytes = v1->ads->world[XdsType::kLds]["virtualInbound"];
    EXPECT_TRUE(listener.ParseFromString(bytes));
    for (FilterChain& chain : *listener.mutable_filter_chains()) {
      if (chain.name() != "0.0.0.0_5000") continue;
      const auto last = chain.filters(0);
      chain.clear_filters();
      if (authn) {
        auto* filter = chain.add_filters();
        filter->set_name("istio_authn");
        udpa::type::v1::TypedStruct config;
        config.set_type_url("type.googleapis.com/io.istio.network.authn.Config");
        filter->mutable_typed_config()->PackFrom(config);
      }
      if (level == Level::kTcp) {
        TcpRbac rbac;
        rbac.set_stat_prefix("tcp.");
        *rbac.mutable_rules() = rules;
        auto* filter = chain.add_filters();
        filter->set_name("envoy.filters.network.rbac");
        filter->mutable_typed_config()->PackFrom(rbac);
      }
      *chain.add_filters() = last;
      if (level == Level::kTcp) continue;
      Manager manager;
      EXPECT_TRUE(last.typed_config().UnpackTo(&manager));
      const auto router = manager.http_filters(manager.http_filters_size() - 1);
      HttpRbac rbac;
      *rbac.mutable_rules() = rules;
      auto* filter = manager.mutable_http_filters(manager.http_filters_size() - 1);
      filter->set_name("envoy.filters.http.rbac");
      filter->mutable_typed_config()->PackFrom(rbac);
      *manager.add_http_filters() = router;
      chain.mutable_filters(chain.filters_size() - 1)->mutable_typed_config()->PackFrom(manager);
    }
    bytes = listener.SerializeAsString();
    Start();
    Push({Local()});
  }

 private:
  static Options OneServer() {
    Options out;
    out.retry = false;
    return out;
  }
};

TEST(RbacTest, APeerIsKnownByTheNameThatIstioAuthnWroteDown) {
  RbacMesh allowed(AllowPeers(".*/ns/sample/.*"), true, Level::kHttp);
  EXPECT_EQ(allowed.Ask().record.code, 200);
  EXPECT_EQ(allowed.v1->envoy->counter("http.inbound.rbac.allowed"), 1u);

  RbacMesh denied(AllowPeers(".*/ns/other/.*"), true, Level::kHttp);
  const Lab::Result r = denied.Ask();
  EXPECT_EQ(r.record.code, 403);
  EXPECT_EQ(r.details, "via_upstream") << "the client's sidecar only hands the answer on";
  EXPECT_EQ(denied.v1->envoy->counter("http.inbound.rbac.denied"), 1u);
  EXPECT_EQ(denied.apps["v1"]->served, 0);
}

TEST(RbacTest, WithoutIstioAuthnNoPeerHasAName) {
  RbacMesh mesh(AllowPeers(".+"), false, Level::kHttp);
  EXPECT_EQ(mesh.Ask().record.code, 403);
}

TEST(RbacTest, ARefusedConnectionIsClosed) {
  RbacMesh allowed(AllowPeers(".*/ns/sample/.*"), true, Level::kTcp);
  EXPECT_EQ(allowed.Ask().record.code, 200);

  RbacMesh denied(AllowPeers(".*/ns/other/.*"), true, Level::kTcp);
  const Lab::Result r = denied.Ask();
  EXPECT_EQ(r.record.code, 503);
  EXPECT_GE(denied.v1->envoy->counter("tcp.rbac.denied"), 1u);
  EXPECT_EQ(denied.apps["v1"]->served, 0);
}

TEST(RbacTest, APathTemplateTakesOneSegmentForAStarAndAnythingForTwo) {
  const std::string pattern = "/a/*/b/**";
  envoy::config::rbac::v3::Permission permission;
  auto& config = *permission.mutable_uri_template()->mutable_typed_config();
  config.set_type_url("type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig");
  config.set_value(std::string("\x0a") + static_cast<char>(pattern.size()) + pattern);
  const auto condition = RbacCondition::Make(permission);
  ASSERT_TRUE(condition.ok()) << condition.status();
  const auto matches = [&](const char* path) {
    RequestSpec request;
    request.path = path;
    RbacSubject subject{ConnectionFacts{}};
    subject.request = &request;
    return condition->Matches(subject);
  };
  EXPECT_TRUE(matches("/a/x-1/b/c/d"));
  EXPECT_TRUE(matches("/a/x/b/?q=1"));
  EXPECT_FALSE(matches("/a/x/y/b/c"));
  EXPECT_FALSE(matches("/a//b/c"));
  EXPECT_FALSE(matches("/a/x/b"));
}

}  // namespace
}  // namespace wavetank::envoysim::lab
