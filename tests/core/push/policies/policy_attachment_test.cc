#include "core/push/policies/policy_attachment.h"

#include <gtest/gtest.h>

#include "core/config/kinds/authorization_policy.h"

namespace wavetank::pilot {
namespace {

const kube::Labels kSidecar = {{"app", "web"}};
const kube::Labels kGateway = {{"gateway.networking.k8s.io/gateway-name", "edge"}};

config::AuthorizationPolicy For(config::PolicyTarget target) {
  config::AuthorizationPolicy out;
  out.targets = {std::move(target)};
  return out;
}

TEST(PolicyAttachmentTest, ATargetIsForItsGatewayAlone) {
  const config::AuthorizationPolicy policy = For({"gateway.networking.k8s.io", "Gateway", "edge", ""});
  EXPECT_TRUE(Attaches(policy, "shop", "shop", kGateway, true));
  EXPECT_FALSE(Attaches(policy, "shop", "shop", kSidecar, true));
  EXPECT_FALSE(Attaches(policy, "other", "shop", kGateway, true));
  EXPECT_FALSE(Attaches(For({"gateway.networking.k8s.io", "Gateway", "inner", ""}), "shop", "shop", kGateway, true));
  EXPECT_FALSE(Attaches(For({"", "Service", "edge", ""}), "shop", "shop", kGateway, true));
  EXPECT_FALSE(Attaches(For({"gateway.networking.k8s.io", "Gateway", "edge", "far"}), "shop", "shop", kGateway, true));
}

TEST(PolicyAttachmentTest, ReleasesThatKnowNoTargetsSelectByLabels) {
  const config::AuthorizationPolicy policy = For({"gateway.networking.k8s.io", "Gateway", "edge", ""});
  EXPECT_TRUE(Attaches(policy, "shop", "shop", kSidecar, false));
}

TEST(PolicyAttachmentTest, WithoutTargetsASelectorDecides) {
  config::AuthorizationPolicy policy;
  EXPECT_TRUE(Attaches(policy, "shop", "shop", kSidecar, true));
  policy.selector = config::Labels{{"app", "api"}};
  EXPECT_FALSE(Attaches(policy, "shop", "shop", kSidecar, true));
}

}  // namespace
}  // namespace wavetank::pilot
