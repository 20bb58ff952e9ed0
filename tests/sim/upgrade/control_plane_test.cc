#include "sim/upgrade/control_plane.h"

#include "core/base/json_access.h"
#include "core/profile/profile.h"
#include "gtest/gtest.h"
#include "sim/kernel/kernel.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

class UpgradedControlPlane : public ::testing::Test {
 protected:
  void Put(const char* kind, const char* api_version, const char* name, json rest) {
    rest["kind"] = kind;
    rest["apiVersion"] = api_version;
    rest["metadata"] = {{"name", name}, {"namespace", "mesh-system"}};
    const auto put = api.Apply(rest);
    ASSERT_TRUE(put.ok()) << put.status();
  }
  void SetUp() override {
    Put("ConfigMap", "v1", "istio-sidecar-injector", {{"data", {{"config", "policy: enabled"}, {"values", "{}"}}}});
    Put("Service", "v1", "istiod", {{"spec", {{"ports", json::array({{{"name", "grpc-xds"}, {"port", 15012}}})}}}});
    Put("Deployment", "apps/v1", "istiod",
        {{"spec",
          {{"selector", {{"matchLabels", {{"app", "istiod"}}}}},
           {"template",
            {{"metadata", {{"labels", {{"app", "istiod"}}}}},
             {"spec",
              {{"containers", json::array({{{"name", "discovery"}, {"image", "example/pilot:1.18.2"}}})}}}}}}}});
  }

  Kernel kernel{1};
  Host& host = kernel.NewHost("kube", 0, nullptr);
  fakekube::ApiServer api{host, {.name = "c1", .create_namespaces = true}};
};

TEST_F(UpgradedControlPlane, ARevisionIsInstalledBesideTheOneThatIsThereWhereverThatIs) {
  const absl::Status installed = InstallRevision(api, *pilot::ParseProfile("istio-1.30"), "canary", "");
  ASSERT_TRUE(installed.ok()) << installed;
  EXPECT_NE(api.Get("Deployment", {"mesh-system", "istiod-canary"}), nullptr);
  const kube::ObjectRef mesh = api.Get("ConfigMap", {"mesh-system", "istio-canary"});
  ASSERT_NE(mesh, nullptr);
  EXPECT_NE(Text(At(mesh->body, "data"), "mesh").find("istiod-canary.mesh-system.svc:15012"), std::string::npos);
  ASSERT_TRUE(RemoveOtherRevisions(api, "canary").ok());
  EXPECT_EQ(api.Get("Deployment", {"mesh-system", "istiod"}), nullptr);
  EXPECT_EQ(api.Get("Service", {"mesh-system", "istiod"}), nullptr);
}

TEST_F(UpgradedControlPlane, InPlaceItIsChangedWhereverItIs) {
  ASSERT_TRUE(UpgradeInPlace(api, *pilot::ParseProfile("istio-1.30")).ok());
  const json& pods = At(api.Get("Deployment", {"mesh-system", "istiod"})->body, {"spec", "template", "spec"});
  EXPECT_NE(Text(Items(At(pods, "containers")).front(), "image").find(":1.30"), std::string::npos);
}

}  // namespace
}  // namespace wavetank::sim
