// istiod's validation webhook as a cluster of a world has it: who patches its configuration, and what comes of one that
// cannot be called.
#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "sim/mending/installation.h"
#include "sim/world_site.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// As istioctl's charts make it (istio-control/istio-discovery).
json Validator(const std::string& name = "istio-validator-istio-system") {
  return {
      {"apiVersion", "admissionregistration.k8s.io/v1"},
      {"kind", "ValidatingWebhookConfiguration"},
      {"metadata", {{"name", name}, {"labels", {{"app", "istiod"}, {"istio.io/rev", "default"}}}}},
      {"webhooks",
       {{{"name", "rev.validation.istio.io"},
         {"clientConfig", {{"service", {{"name", "istiod"}, {"namespace", "istio-system"}, {"path", "/validate"}}}}},
         {"rules",
          {{{"operations", {"CREATE", "UPDATE"}},
            {"apiGroups", {"security.istio.io", "networking.istio.io"}},
            {"apiVersions", {"*"}},
            {"resources", {"*"}}}}},
         {"failurePolicy", "Ignore"},
         {"sideEffects", "None"},
         {"admissionReviewVersions", {"v1beta1", "v1"}},
         {"objectSelector", json::object()}}}}};
}
json BadService() {
  return {{"apiVersion", "networking.istio.io/v1beta1"},
          {"kind", "VirtualService"},
          {"metadata", {{"name", "bad"}, {"namespace", "default"}}},
          {"spec", json::object()}};
}
json GoodService() {
  json out = BadService();
  out["metadata"]["name"] = "good";
  out["spec"] = {{"hosts", {"a.example"}}, {"http", {{{"route", {{{"destination", {{"host", "b"}}}}}}}}}};
  return out;
}

class ValidationWorld : public TwoClusterWorld {
 protected:
  void Begin(bool remote = false) {
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(TwoClusters(remote));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    world_->on_istiod_log = [this](const std::string&, Time, const LogLine& line) { log_ += line.text + "\n"; };
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
  }
  ~ValidationWorld() override {
    if (world_ != nullptr) world_->on_istiod_log = nullptr;
  }
  void Write(const std::string& cluster, const json& object) {
    Do("apply", {{"cluster", cluster}, {"object", object}});
  }
  json Webhook(const std::string& cluster = "cluster1") {
    const kube::ObjectRef found =
        world_->cluster(cluster).api().Get("ValidatingWebhookConfiguration", {"", "istio-validator-istio-system"});
    return found == nullptr ? json() : found->body["webhooks"][0];
  }
  // As a scenario's apply; "" if it is taken.
  std::string WhyRefused(const std::string& cluster, const json& object) {
    const absl::Status status = world_->Do(*Input::Parse("apply", {{"cluster", cluster}, {"object", object}}));
    return std::string(Message(status));
  }
  void Settle() { ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min)); }

  std::string log_;
};

TEST_F(ValidationWorld, ItsOwnClustersConfigurationsFailClosedOnceAnInvalidGatewayIsRefused) {
  Begin();
  Write("cluster1", Validator());
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  EXPECT_EQ(Webhook()["failurePolicy"], "Fail");
  std::string bundle;
  ASSERT_TRUE(absl::Base64Unescape(Text(Webhook()["clientConfig"], "caBundle"), &bundle));
  EXPECT_EQ(bundle, world_->IstiodOf("cluster1")->istiod().ca_bundle_pem());
  EXPECT_THAT(log_, AllOf(HasSubstr("Not ready to switch validation to fail-closed: dummy invalid config not rejected"),
                          HasSubstr("Endpoint successfully rejected invalid config. Switching to fail-close."),
                          HasSubstr("Successfully updated validatingwebhookconfiguration istio-validator-istio-system "
                                    "(failurePolicy=Fail,resourceVersion=")));
  EXPECT_THAT(WhyRefused("cluster1", BadService()),
              HasSubstr("admission webhook \"rev.validation.istio.io\" denied the request: "));
  EXPECT_EQ(WhyRefused("cluster1", GoodService()), "");
}

TEST_F(ValidationWorld, OneThatComesLaterOrIsPutBackIsPatchedAgain) {
  Begin();
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  Write("cluster1", Validator());
  Settle();
  EXPECT_EQ(Webhook()["failurePolicy"], "Fail");
  ASSERT_TRUE(world_->cluster("cluster1")
                  .api()
                  .Patch("ValidatingWebhookConfiguration", {"", "istio-validator-istio-system"},
                         {{"webhooks", Validator()["webhooks"]}})
                  .ok());
  Settle();
  EXPECT_EQ(Webhook()["failurePolicy"], "Fail");
  EXPECT_FALSE(Text(Webhook()["clientConfig"], "caBundle").empty());
}

TEST_F(ValidationWorld, OfAnotherRevisionItStaysAsItWasMade) {
  Begin();
  json canary = Validator();
  canary["metadata"]["labels"]["istio.io/rev"] = "canary";
  Write("cluster1", canary);
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  EXPECT_EQ(Webhook()["failurePolicy"], "Ignore");
  EXPECT_FALSE(Webhook()["clientConfig"].contains("caBundle"));
  // Nobody believes it without a bundle, and it may fail.
  EXPECT_EQ(WhyRefused("cluster1", BadService()), "");
}

TEST_F(ValidationWorld, WithoutAnIstiodWhatFailsClosedTakesNothing) {
  Begin();
  Write("cluster1", Validator());
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  fakekube::ApiServer& api = world_->cluster("cluster1").api();
  ASSERT_TRUE(api.Patch("Deployment", {kSystemNamespace, "istiod"}, {{"spec", {{"replicas", 0}}}}).ok());
  Settle();
  EXPECT_EQ(WhyRefused("cluster1", GoodService()),
            "Internal error occurred: failed calling webhook \"rev.validation.istio.io\": failed to call webhook: Post "
            "\"https://istiod.istio-system.svc:443/validate?timeout=10s\": no endpoints available for service "
            "\"istiod\"");
}

TEST_F(ValidationWorld, ABundleOfAnotherRootIsNotBelieved) {
  Begin();
  json foreign = Validator();
  foreign["metadata"]["labels"]["istio.io/rev"] = "other";  // nobody mends it
  foreign["webhooks"][0]["failurePolicy"] = "Fail";
  foreign["webhooks"][0]["clientConfig"]["caBundle"] =
      absl::Base64Escape(x509::MakeRootCa(7, "foreign", Time{}, 24h * 365).root->ToPem());
  Write("cluster1", foreign);
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  EXPECT_THAT(WhyRefused("cluster1", GoodService()),
              HasSubstr("tls: failed to verify certificate: x509: certificate signed by unknown authority"));
}

// A dump of a mesh holds what its istiod has written there, and objects that were taken long ago.
TEST_F(ValidationWorld, WhatAWorldBeginsWithIsNotAskedAbout) {
  Begin();
  json closed = Validator();
  closed["webhooks"][0]["failurePolicy"] = "Fail";
  Write("cluster1", closed);
  EXPECT_EQ(WhyRefused("cluster1", BadService()), "");
  world_->RunUntil(world_->Now() + 1s);
  EXPECT_THAT(WhyRefused("cluster1", GoodService()), HasSubstr("service \"istiod\" not found"));
}

// global.configCluster of a remote cluster: the charts make the webhook there, whose Service leads to the primary; no
// istiod patches it, since the one that would has another cluster for its own.
TEST_F(ValidationWorld, ARemoteClustersConfigurationStaysOpen) {
  Begin(/*remote=*/true);
  Write("cluster2", Validator());
  for (const char* cluster : {"cluster1", "cluster2"}) Do("install", {{"cluster", cluster}});
  Settle();
  Do("remoteSecret", {{"of", "cluster2"}, {"in", "cluster1"}, {"state", "present"}});
  Settle();
  EXPECT_EQ(Webhook("cluster2")["failurePolicy"], "Ignore");
  EXPECT_FALSE(Webhook("cluster2")["clientConfig"].contains("caBundle"));
  EXPECT_EQ(WhyRefused("cluster2", BadService()), "");
}

TEST_F(ValidationWorld, IstiodThatIsToldOfNoConfigurationPatchesNone) {
  Begin();
  Write("cluster1", Validator());
  Do("install", {{"cluster", "cluster1"}});
  json deployment = world_->cluster("cluster1").api().Get("Deployment", {kSystemNamespace, "istiod"})->body;
  deployment["spec"]["template"]["spec"]["containers"][0]["env"] = {
      {{"name", "VALIDATION_WEBHOOK_CONFIG_NAME"}, {"value", ""}}};
  Write("cluster1", deployment);
  Settle();
  EXPECT_EQ(Webhook()["failurePolicy"], "Ignore");
}

}  // namespace
}  // namespace wavetank::sim
