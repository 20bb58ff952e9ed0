#include "core/config/mesh_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::config {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MeshConfigTest, EmptyDocumentIsTheDefault) {
  const auto mesh = ApplyMeshConfigDefaults("");
  ASSERT_TRUE(mesh.ok());
  EXPECT_EQ(**mesh, *DefaultMeshConfig());
  EXPECT_EQ((*mesh)->locality_lb_setting->enabled, true);
}

TEST(MeshConfigTest, FieldsOverrideAndMessagesReplaceButDefaultConfigMerges) {
  const auto mesh = ApplyMeshConfigDefaults(R"(
trustDomain: td
trustDomainAliases: [b, a, b]
connectTimeout: 3s
localityLbSetting:
  failover: [{from: a, to: b}]
defaultConfig:
  discoveryAddress: istiod.other.svc:15012
outboundTrafficPolicy: {mode: REGISTRY_ONLY}
serviceSettings:
- settings: {clusterLocal: true}
  hosts: ["*.ns.svc.cluster.local"]
)");
  ASSERT_TRUE(mesh.ok()) << mesh.status();
  EXPECT_THAT((*mesh)->trust_domain_aliases, ElementsAre("a", "b"));
  EXPECT_EQ((*mesh)->connect_timeout, Duration(3s));
  EXPECT_FALSE((*mesh)->locality_lb_setting->enabled) << "a message is replaced as a whole";
  EXPECT_EQ((*mesh)->discovery_address, "istiod.other.svc:15012");
  EXPECT_EQ((*mesh)->tracing_zipkin_address, "zipkin.istio-system:9411") << "defaultConfig merges";
  EXPECT_EQ((*mesh)->outbound_traffic_policy, OutboundTrafficPolicy::Mode::kRegistryOnly);
  EXPECT_TRUE((*mesh)->service_settings[0].cluster_local);
}

TEST(MeshConfigTest, AFieldThatNothingReadsStillMakesADifference) {
  EXPECT_NE(**ApplyMeshConfigDefaults("somethingNew: 1"), *DefaultMeshConfig());
}

TEST(MeshConfigTest, SaysWhatIsWrong) {
  const auto wrong = [](std::string_view yaml) {
    return std::string(ApplyMeshConfigDefaults(yaml).status().message());
  };
  EXPECT_THAT(wrong("connectTimeout: soon"), HasSubstr("mesh.connectTimeout: expected a duration"));
  EXPECT_THAT(wrong("connectTimeout: 1us"), HasSubstr("at least 1ms"));
  EXPECT_THAT(wrong("proxyListenPort: 70000"), HasSubstr("mesh.proxyListenPort: expected a port"));
  EXPECT_THAT(wrong("- a"), HasSubstr("expected a mapping"));
  EXPECT_THAT(wrong("a: [b"), HasSubstr("not valid YAML"));
}

}  // namespace
}  // namespace wavetank::config
