#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

class AuthenticationTest : public MeshTest {
 protected:
  void Policy(std::string_view ns, std::string_view name, std::string_view spec, int second = 0) {
    Put("PeerAuthentication", ns, name, spec, second);
  }
  MutualTlsMode Namespace(std::string_view ns) { return Push()->authn().GetNamespaceMutualTlsMode(ns); }
  MergedPeerAuthentication Workload(std::string_view ns, const Labels& labels = {}) {
    return Push()->authn().ComposeForWorkload(ns, labels);
  }
};

TEST_F(AuthenticationTest, WithoutPoliciesServersArePermissiveAndClientsDoNotKnow) {
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kUnknown);
  EXPECT_EQ(Workload("a"), MergedPeerAuthentication());
}

TEST_F(AuthenticationTest, WorkloadBeatsNamespaceBeatsMesh) {
  Policy("istio-system", "mesh", "mtls: {mode: STRICT}");
  EXPECT_EQ(Workload("a").mode, MutualTlsMode::kStrict);
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kStrict);
  Policy("a", "ns", "mtls: {mode: DISABLE}");
  EXPECT_EQ(Workload("a").mode, MutualTlsMode::kDisable);
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kDisable);
  Policy("a", "w", "selector: {matchLabels: {app: x}}\nmtls: {mode: PERMISSIVE}");
  EXPECT_EQ(Workload("a", {{"app", "x"}}).mode, MutualTlsMode::kPermissive);
  EXPECT_EQ(Workload("a", {{"app", "y"}}).mode, MutualTlsMode::kDisable);
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kDisable) << "clients look at the namespace only";
}

TEST_F(AuthenticationTest, UnsetInherits) {
  Policy("istio-system", "mesh", "mtls: {mode: STRICT}");
  Policy("a", "ns", "mtls: {mode: UNSET}");
  Policy("a", "w", "selector: {matchLabels: {app: x}}\nportLevelMtls: {80: {mode: UNSET}, 81: {mode: DISABLE}}");
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kStrict);
  const MergedPeerAuthentication merged = Workload("a", {{"app", "x"}});
  EXPECT_EQ(merged.mode, MutualTlsMode::kStrict);
  EXPECT_EQ(merged.ForPort(80), MutualTlsMode::kStrict);
  EXPECT_EQ(merged.ForPort(81), MutualTlsMode::kDisable);
  EXPECT_EQ(merged.ForPort(82), MutualTlsMode::kStrict);
}

TEST_F(AuthenticationTest, AnUnsetMeshPolicyIsPermissiveForClients) {
  Policy("istio-system", "mesh", "");
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kPermissive);
}

TEST_F(AuthenticationTest, TheOldestOfSeveralNamespacePoliciesHolds) {
  Policy("a", "young", "mtls: {mode: STRICT}", 5);
  Policy("a", "old", "mtls: {mode: DISABLE}", 1);
  EXPECT_EQ(Namespace("a"), MutualTlsMode::kDisable);
  EXPECT_EQ(Workload("a").mode, MutualTlsMode::kDisable);
}

TEST_F(AuthenticationTest, ASelectorInTheRootNamespaceMeansNothingElsewhere) {
  Policy("istio-system", "w", "selector: {matchLabels: {app: x}}\nmtls: {mode: STRICT}");
  EXPECT_EQ(Workload("a", {{"app", "x"}}).mode, MutualTlsMode::kPermissive);
}

TEST_F(AuthenticationTest, PortLevelOfANamespacePolicyIsIgnored) {
  Policy("a", "ns", "mtls: {mode: STRICT}\nportLevelMtls: {80: {mode: DISABLE}}");
  EXPECT_EQ(Workload("a").ForPort(80), MutualTlsMode::kStrict);
}

TEST_F(AuthenticationTest, VersionFollowsEveryPolicy) {
  const std::string none = Push()->authn().version();
  Policy("a", "ns", "mtls: {mode: STRICT}");
  const std::string one = Push()->authn().version();
  EXPECT_NE(one, none);
  EXPECT_EQ(one, Push()->authn().version());
}

TEST_F(AuthenticationTest, ClientsOfPassthroughServicesUseMtlsOnlyIfAllInstancesDo) {
  const auto service = AddService("h", "ns");
  service->resolution = Resolution::kPassthrough;
  const auto infer = [&] { return Push()->InferServiceMtlsMode(nullptr, *service, service->ports[0]); };
  EXPECT_EQ(infer(), MutualTlsMode::kDisable) << "nobody is there";
  auto add = [&](std::string_view mode) {
    auto profile = std::make_shared<EndpointProfile>();
    profile->tls_mode = std::string(mode);
    ServiceInstance instance{service, service->ports[0], {}};
    instance.endpoint.profile = profile;
    discovery.instances.push_back(instance);
  };
  add(kMutualTlsMode);
  EXPECT_EQ(infer(), MutualTlsMode::kPermissive);
  add(kDisabledTlsMode);
  EXPECT_EQ(infer(), MutualTlsMode::kDisable);
  service->resolution = Resolution::kClientSideLb;
  EXPECT_EQ(infer(), MutualTlsMode::kPermissive);
  service->mesh_external = true;
  EXPECT_EQ(infer(), MutualTlsMode::kUnknown);
}

}  // namespace
}  // namespace wavetank::pilot
