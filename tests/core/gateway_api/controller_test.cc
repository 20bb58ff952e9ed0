// The controller on a cluster: what it deploys, writes and leaves alone.
#include "core/gateway_api/control/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_access.h"
#include "core/kube/definitions.h"
#include "core/profile/releases.h"
#include "fakes/kube/client/client.h"
#include "tests/fakes/kube/cluster_fixture.h"

namespace wavetank::gatewayapi {
namespace {

using nlohmann::json;
using ::testing::IsNull;
using ::testing::NotNull;
using ::testing::StartsWith;

constexpr const char* kGateways = "Gateway.gateway.networking.k8s.io";

json EastWest() {
  return {{"apiVersion", "gateway.networking.k8s.io/v1"},
          {"kind", "Gateway"},
          {"metadata",
           {{"name", "eastwest"}, {"namespace", "default"}, {"labels", {{"topology.istio.io/network", "network1"}}}}},
          {"spec",
           {{"gatewayClassName", "istio"},
            {"listeners", json::array({{{"name", "cross-network"},
                                        {"hostname", "*.local"},
                                        {"port", 15443},
                                        {"protocol", "TLS"},
                                        {"tls", {{"mode", "Passthrough"}}}}})}}}};
}

class GatewayApiControllerTest : public fakekube::ClusterTest {
 protected:
  void SetUp() override {
    client_ = fakekube::MakeClient(api(), host_, "istiod", 1, {});
    Controller::Surroundings around;
    around.mesh = [this] { return mesh_; };
    around.injection = [this]() -> const pilot::InjectionConfig& { return injection_; };
    around.proxy_configs = [] { return std::vector<kube::ObjectRef>(); };
    Controller::Options options;
    options.profile = *pilot::ParseProfile("istio-1.30");
    options.cluster_id = "c1";
    controller_ = std::make_unique<Controller>(*client_, host_, store_, std::move(around), std::move(options));
  }
  void Start() {
    controller_->Start();
    Run();
  }
  void Run() { kernel_.RunUntil(kernel_.Now() + 5s); }
  void Apply(json object) {
    const auto applied = api().Apply(std::move(object));
    ASSERT_TRUE(applied.ok()) << applied.status();
    Run();
  }
  kube::ObjectRef Get(const char* kind, const char* name = "eastwest-istio") {
    return api().Get(kind, {"default", name});
  }

  pilot::InjectionConfig injection_ =
      pilot::InjectionConfig::Default("c1", "network1", "mesh1", *pilot::ParseProfile("istio-1.30"));
  config::MeshConfigRef mesh_ = config::DefaultMeshConfig();
  config::ConfigStore store_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(GatewayApiControllerTest, GatewayIsDeployedAndOwnsWhatIsMadeForIt) {
  Start();
  Apply(EastWest());
  const kube::ObjectRef service = Get("Service"), deployment = Get("Deployment");
  ASSERT_THAT(service, NotNull());
  ASSERT_THAT(deployment, NotNull());
  EXPECT_THAT(Get("ServiceAccount"), NotNull());
  EXPECT_EQ(service->meta.labels.at("topology.istio.io/network"), "network1");
  EXPECT_EQ(At(service->body, {"spec", "type"}), "LoadBalancer");
  EXPECT_EQ(deployment->meta.owner_references.at(0).uid, Get(kGateways, "eastwest")->meta.uid);
}

TEST_F(GatewayApiControllerTest, ItsServerIsInTheStore) {
  Start();
  Apply(EastWest());
  ASSERT_EQ(store_.Gateways().size(), 1U);
  EXPECT_EQ(store_.Gateways()[0]->spec.servers.at(0).tls->mode, config::ServerTlsSettings::Mode::kAutoPassthrough);
  ASSERT_TRUE(api().Delete(kGateways, {"default", "eastwest"}).ok());
  Run();
  EXPECT_TRUE(store_.Gateways().empty());
}

TEST_F(GatewayApiControllerTest, WhatWasDeployedGoesWithItsGatewayAndStaysAway) {
  Start();
  Apply(EastWest());
  ASSERT_TRUE(api().Delete(kGateways, {"default", "eastwest"}).ok());
  Run();
  EXPECT_THAT(Get("Service"), IsNull());
  EXPECT_THAT(Get("Deployment"), IsNull());
}

TEST_F(GatewayApiControllerTest, WhatSomebodyDeletesIsMadeAgain) {
  Start();
  Apply(EastWest());
  ASSERT_TRUE(api().Delete("Service", {"default", "eastwest-istio"}).ok());
  EXPECT_THAT(Get("Service"), IsNull());
  Run();
  EXPECT_THAT(Get("Service"), NotNull());
}

TEST_F(GatewayApiControllerTest, ServiceOfThatNameThatIsSomebodyElsesIsLeftAlone) {
  Apply({{"apiVersion", "v1"},
         {"kind", "Service"},
         {"metadata", {{"name", "eastwest-istio"}, {"namespace", "default"}}},
         {"spec", {{"ports", json::array({{{"port", 80}}})}}}});
  Start();
  Apply(EastWest());
  EXPECT_EQ(Get("Service")->body["spec"]["ports"].size(), 1U);
}

TEST_F(GatewayApiControllerTest, ReplicasThatSomebodyScaledToStay) {
  Start();
  Apply(EastWest());
  ASSERT_TRUE(api().Patch("Deployment", {"default", "eastwest-istio"}, {{"spec", {{"replicas", 3}}}}).ok());
  json more = EastWest();
  more["metadata"]["annotations"] = {{"note", "x"}};
  Apply(more);
  EXPECT_EQ(At(Get("Deployment")->body, {"spec", "replicas"}), 3);
}

TEST_F(GatewayApiControllerTest, StatusSaysThatItIsAccepted) {
  Start();
  Apply(EastWest());
  const json status = At(Get(kGateways, "eastwest")->body, "status");
  EXPECT_EQ(status["conditions"][0]["type"], "Accepted");
  EXPECT_EQ(status["conditions"][0]["status"], "True");
}

TEST_F(GatewayApiControllerTest, AtRestNothingIsWritten) {
  Start();
  Apply(EastWest());
  const int64_t before = api().resource_version();
  controller_->Reconsider();
  Run();
  EXPECT_EQ(api().resource_version(), before);
}

TEST_F(GatewayApiControllerTest, WhatIsDeployedIsMadeAnewWhenTheInjectorsValuesChangeAndNotAtEveryPush) {
  Start();
  Apply(EastWest());
  const uint64_t before = controller_->renderings();
  controller_->Reconsider();
  Run();
  EXPECT_EQ(controller_->renderings(), before);
  injection_.values["global"]["hub"] = "registry.example";
  controller_->Reconsider();
  Run();
  EXPECT_GT(controller_->renderings(), before);
  EXPECT_THAT(Text(At(Get("Deployment")->body, {"spec", "template", "spec", "containers"})[0], "image"),
              StartsWith("registry.example/"));
}

TEST_F(GatewayApiControllerTest, GatewayOfAnotherRevisionIsNotDeployed) {
  Start();
  json other = EastWest();
  other["metadata"]["labels"]["istio.io/rev"] = "canary";
  Apply(other);
  EXPECT_THAT(Get("Deployment"), IsNull());
}

TEST_F(GatewayApiControllerTest, StatusOfAnotherRevisionsGatewayIsLeftToIt) {
  Start();
  json other = EastWest();
  other["metadata"]["labels"]["istio.io/rev"] = "canary";
  other["status"] = {{"conditions", json::array({{{"type", "Accepted"}, {"status", "Unknown"}}})}};
  Apply(other);
  EXPECT_EQ(At(Get(kGateways, "eastwest")->body, "status"), other["status"]);
}

TEST_F(GatewayApiControllerTest, ClassesAreMadeOnce) {
  Start();
  ASSERT_THAT(api().Get("GatewayClass.gateway.networking.k8s.io", {"", "istio"}), NotNull());
  ASSERT_TRUE(api().Delete("GatewayClass.gateway.networking.k8s.io", {"", "istio-remote"}).ok());
  Run();
  EXPECT_THAT(api().Get("GatewayClass.gateway.networking.k8s.io", {"", "istio-remote"}), IsNull());
}

TEST_F(GatewayApiControllerTest, GroupIsServedFromItsFirstObjectOn) {
  auto* definitions = dynamic_cast<kube::DefinitionWatcher*>(client_.get());
  ASSERT_THAT(definitions, NotNull());
  int served = 0;
  definitions->WhenServed(std::string(kGroup), KindNames(), [&] { ++served; });
  Run();
  EXPECT_EQ(served, 0);
  Apply(EastWest());
  Apply({{"apiVersion", "gateway.networking.k8s.io/v1"},
         {"kind", "GatewayClass"},
         {"metadata", {{"name", "mine"}}},
         {"spec", {{"controllerName", "x/y"}}}});
  EXPECT_EQ(served, 1);
}

}  // namespace
}  // namespace wavetank::gatewayapi
