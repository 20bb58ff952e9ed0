#include "fakes/kube/store/rbac.h"

#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

class RbacTest : public ::testing::Test {
 protected:
  void Apply(const char* kind, const char* ns, const char* name, json rest) {
    rest["apiVersion"] = "rbac.authorization.k8s.io/v1";
    rest["kind"] = kind;
    rest["metadata"] = {{"name", name}};
    if (*ns != '\0') rest["metadata"]["namespace"] = ns;
    const auto applied = server.Apply(rest);
    ASSERT_TRUE(applied.ok()) << applied.status();
  }
  bool Allowed(const char* ns, const char* account, const char* verb = "list", const char* in = "gw") {
    return RbacAuthorizer(server).Allowed({kube::ServiceAccountUser(ns, account), verb, "", "secrets", in});
  }
  static json Role(json resources = {"secrets"}, json verbs = {"get", "watch", "list"}) {
    return {{"rules", json::array({{{"apiGroups", {""}}, {"resources", resources}, {"verbs", verbs}}})}};
  }
  static json Binding(const char* role_kind, const char* role, json subject) {
    return {{"roleRef", {{"kind", role_kind}, {"name", role}}}, {"subjects", json::array({subject})}};
  }

  sim::Kernel kernel{1};
  Host& host = kernel.NewHost("kube", 0, nullptr);
  ApiServer server{host, {.name = "c1", .create_namespaces = true}};
};

TEST_F(RbacTest, ARoleAllowsWhoIsBoundInItsNamespaceOnly) {
  EXPECT_FALSE(Allowed("gw", "edge"));
  Apply("Role", "gw", "reader", Role());
  Apply("RoleBinding", "gw", "b", Binding("Role", "reader", {{"kind", "ServiceAccount"}, {"name", "edge"}}));
  EXPECT_TRUE(Allowed("gw", "edge"));
  EXPECT_FALSE(Allowed("gw", "edge", "delete"));
  EXPECT_FALSE(Allowed("gw", "edge", "list", "other"));
  EXPECT_FALSE(Allowed("gw", "stranger"));
  EXPECT_FALSE(Allowed("other", "edge")) << "a subject without a namespace is of the binding's";
}

TEST_F(RbacTest, AClusterRoleReachesAsFarAsItsBinding) {
  Apply("ClusterRole", "", "reader", Role({"*"}, {"*"}));
  Apply("RoleBinding", "gw", "b",
        Binding("ClusterRole", "reader", {{"kind", "Group"}, {"name", "system:serviceaccounts:gw"}}));
  EXPECT_TRUE(Allowed("gw", "anybody"));
  EXPECT_FALSE(Allowed("gw", "anybody", "list", "other"));
  Apply("ClusterRoleBinding", "", "all",
        Binding("ClusterRole", "reader", {{"kind", "User"}, {"name", "system:serviceaccount:x:y"}}));
  EXPECT_TRUE(Allowed("x", "y", "list", "other"));
}

TEST_F(RbacTest, ARuleForNamedObjectsAllowsNoList) {
  json role = Role();
  role["rules"][0]["resourceNames"] = {"one"};
  Apply("Role", "gw", "reader", role);
  Apply("RoleBinding", "gw", "b", Binding("Role", "reader", {{"kind", "ServiceAccount"}, {"name", "edge"}}));
  EXPECT_FALSE(Allowed("gw", "edge"));
}

// kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go.
TEST_F(RbacTest, ARuleMayNameObjectsAndASubresourceOfWhateverResource) {
  json role = Role({"secrets", "*/scale"});
  role["rules"][0]["resourceNames"] = {"one"};
  Apply("Role", "gw", "reader", role);
  Apply("RoleBinding", "gw", "b", Binding("Role", "reader", {{"kind", "ServiceAccount"}, {"name", "edge"}}));
  const auto allowed = [&](const char* resource, const char* name) {
    return RbacAuthorizer(server).Allowed({kube::ServiceAccountUser("gw", "edge"), "get", "", resource, "gw", name});
  };
  EXPECT_TRUE(allowed("secrets", "one"));
  EXPECT_FALSE(allowed("secrets", "two"));
  EXPECT_TRUE(allowed("replicationcontrollers/scale", "one"));
  EXPECT_FALSE(allowed("replicationcontrollers/status", "one"));
}

TEST_F(RbacTest, WhoeverIsAnonymousIsNotAuthenticated) {
  Apply("ClusterRole", "", "reader", Role());
  Apply("ClusterRoleBinding", "", "all",
        Binding("ClusterRole", "reader", {{"kind", "Group"}, {"name", "system:authenticated"}}));
  EXPECT_TRUE(RbacAuthorizer(server).Allowed({"dave", "list", "", "secrets", "gw", ""}));
  EXPECT_FALSE(RbacAuthorizer(server).Allowed({"system:anonymous", "list", "", "secrets", "gw", ""}));
}

}  // namespace
}  // namespace wavetank::fakekube
