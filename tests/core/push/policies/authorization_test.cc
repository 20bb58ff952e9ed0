#include "core/push/policies/authorization.h"

#include "gmock/gmock.h"
#include "tests/core/push/mesh_fixture.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AuthorizationTest : public MeshTest {
 protected:
  void Policy(std::string_view ns, std::string_view name, std::string_view spec, int second = 0) {
    Put("AuthorizationPolicy", ns, name, spec, second);
  }
  std::vector<std::string> Names(const WorkloadAuthorization::Policies& policies) {
    std::vector<std::string> out;
    for (const auto* policy : policies) out.push_back(policy->meta.ns + "/" + policy->meta.name);
    return out;
  }
};

TEST_F(AuthorizationTest, PoliciesOfTheRootNamespaceComeFirstThenByCreation) {
  Policy("a", "late", "", 3);
  Policy("a", "early", "", 1);
  Policy("istio-system", "root", "", 5);
  Policy("b", "other", "");
  const PushContextRef push = Push();
  EXPECT_THAT(Names(push->authz().ForWorkload("a", {}).allow), ElementsAre("istio-system/root", "a/early", "a/late"));
  EXPECT_THAT(Names(push->authz().ForWorkload("istio-system", {}).allow), ElementsAre("istio-system/root"));
}

TEST_F(AuthorizationTest, ASelectorInTheRootNamespaceReachesIntoAllNamespaces) {
  Policy("istio-system", "root", "selector: {matchLabels: {app: x}}");
  const PushContextRef push = Push();
  EXPECT_THAT(Names(push->authz().ForWorkload("a", {{"app", "x"}, {"v", "1"}}).allow),
              ElementsAre("istio-system/root"));
  EXPECT_THAT(Names(push->authz().ForWorkload("a", {{"app", "y"}}).allow), IsEmpty());
}

TEST_F(AuthorizationTest, EachActionHasItsList) {
  Policy("a", "allow", "action: ALLOW");
  Policy("a", "deny", "action: DENY");
  Policy("a", "audit", "action: AUDIT");
  Policy("a", "custom", "action: CUSTOM\nprovider: {name: x}");
  const PushContextRef push = Push();
  const WorkloadAuthorization of = push->authz().ForWorkload("a", {});
  EXPECT_THAT(Names(of.allow), ElementsAre("a/allow"));
  EXPECT_THAT(Names(of.deny), ElementsAre("a/deny"));
  EXPECT_THAT(Names(of.audit), ElementsAre("a/audit"));
  ASSERT_THAT(Names(of.custom), ElementsAre("a/custom"));
  EXPECT_EQ(of.custom[0]->spec.provider, "x");
}

TEST_F(AuthorizationTest, OnlyAChangeOfAPolicyMakesANewIndex) {
  const PushContextRef before = Push();
  PushRequest request;
  request.configs_updated.insert({ConfigKind::kPeerAuthentication, "p", "a"});
  EXPECT_EQ(&PushContext::Create(env, before.get(), request, "2")->authz(), &before->authz());
  Policy("a", "p", "");
  request.configs_updated = {{ConfigKind::kAuthorizationPolicy, "p", "a"}};
  const PushContextRef after = PushContext::Create(env, before.get(), request, "3");
  EXPECT_THAT(Names(after->authz().ForWorkload("a", {}).allow), ElementsAre("a/p"));
}

}  // namespace
}  // namespace wavetank::pilot
