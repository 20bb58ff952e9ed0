// Pods that come together with the control plane that is to inject them: who is there, with a sidecar or without, and
// what is said of the others.
#include <gmock/gmock.h>

#include "sim/mending/installation.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Admission : public TwoClusterWorld {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(TwoClusters(false));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
  }
  void Write(const json& object) { Do("apply", {{"cluster", "cluster1"}, {"object", object}}); }
  void Bare(json labels = {{"app", "bare"}}) {
    Write({{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata", {{"name", "bare"}, {"namespace", "sample"}, {"labels", std::move(labels)}}},
           {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "example/app"}}})}}}});
  }
  void Settle() { world_->RunUntilSettled(world_->Now() + 2min); }
  fakekube::ApiServer& Api() { return world_->cluster("cluster1").api(); }
  bool IsInjected(const std::string& app) {
    for (const PodProcess* pod : world_->Pods()) {
      if (pod->app() == app) return pod->bootstrap().has_value();
    }
    ADD_FAILURE() << "no pod of " << app;
    return false;
  }
  void Policy(const std::string& policy) {
    for (const kube::ObjectRef& found : Api().List("MutatingWebhookConfiguration")) {
      json webhooks = found->body["webhooks"];
      for (json& webhook : webhooks) webhook["failurePolicy"] = policy;
      ASSERT_TRUE(Api().Patch("MutatingWebhookConfiguration", {"", found->meta.name}, {{"webhooks", webhooks}}).ok());
    }
  }
};

TEST_F(Admission, ABarePodIsInjectedOnceIstiodAnswers) {
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  Apply("cluster1", "sample");
  Bare();
  Settle();
  EXPECT_TRUE(IsInjected("bare"));
  EXPECT_THAT(world_->Unready(), IsEmpty());
  EXPECT_THAT(world_->LeftOut(), IsEmpty());
}

TEST_F(Admission, ABarePodBeforeIstiodAnswersIsNotThereAndThatIsSaidUntilItIsAppliedAgain) {
  Do("install", {{"cluster", "cluster1"}});
  Apply("cluster1", "sample");
  Bare();
  Settle();
  EXPECT_EQ(Api().Get("Pod", {"sample", "bare"}), nullptr);
  EXPECT_THAT(world_->Unready(),
              ElementsAre(AllOf(HasSubstr("pod bare was not admitted: failed calling webhook"),
                                HasSubstr("nothing makes this pod again: apply it once the webhook answers"))));
  Bare();
  Settle();
  EXPECT_TRUE(IsInjected("bare"));
  EXPECT_THAT(world_->Unready(), IsEmpty());
}

TEST_F(Admission, AnIstiodThatHasGoneIsMissedInTheApiServersWords) {
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  Apply("cluster1", "sample");
  ASSERT_TRUE(Api().Patch("Deployment", {kSystemNamespace, "istiod"}, {{"spec", {{"replicas", 0}}}}).ok());
  Settle();
  Bare();
  Settle();
  EXPECT_THAT(world_->Unready(),
              Contains(HasSubstr("Post \"https://istiod.istio-system.svc:443/inject?timeout=10s\": no endpoints "
                                 "available for service \"istiod\"; ")));
}

TEST_F(Admission, PodsOfADeploymentBeforeIstiodAnswersComeByThemselves) {
  Do("install", {{"cluster", "cluster1"}});
  for (const char* file : {"sample", "sleep"}) Apply("cluster1", file);
  Settle();
  EXPECT_TRUE(IsInjected("sleep"));
  EXPECT_THAT(world_->Unready(), IsEmpty());
}

TEST_F(Admission, WhereTheFailurePolicyIsIgnoreAPodRunsWithoutASidecarAndThatIsSaid) {
  Do("install", {{"cluster", "cluster1"}});
  Policy("Ignore");
  for (const char* file : {"sample", "sleep"}) Apply("cluster1", file);
  Bare();
  Settle();
  EXPECT_FALSE(IsInjected("bare"));
  EXPECT_FALSE(IsInjected("sleep"));
  EXPECT_THAT(world_->LeftOut(),
              ElementsAre(AllOf(HasSubstr("sample/bare"), HasSubstr("whose failurePolicy is Ignore"),
                                HasSubstr("delete it and apply it again")),
                          AllOf(HasSubstr("sample/sleep-"), HasSubstr("whose failurePolicy is Ignore"),
                                HasSubstr("kubectl rollout restart deployment/sleep -n sample"))));
}

TEST_F(Admission, PodsOlderThanTheWebhookThatSelectsThemAreNamedWithTheRemedy) {
  for (const char* file : {"sample", "sleep"}) Apply("cluster1", file);
  Settle();
  EXPECT_THAT(world_->LeftOut(), ElementsAre(HasSubstr("no MutatingWebhookConfiguration selects it")));
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  EXPECT_THAT(world_->LeftOut(),
              ElementsAre(AllOf(HasSubstr("cluster1: without a sidecar: sample/sleep-"),
                                HasSubstr("created before MutatingWebhookConfiguration/istio-sidecar-injector"),
                                HasSubstr("kubectl rollout restart deployment/sleep -n sample"))));
  Do("restart", {{"cluster", "cluster1"}, {"kind", "Deployment"}, {"namespace", "sample"}, {"name", "sleep"}});
  Settle();
  EXPECT_THAT(world_->LeftOut(), IsEmpty());
}

TEST_F(Admission, WhoOptsOutIsNotMissed) {
  Do("install", {{"cluster", "cluster1"}});
  Settle();
  Apply("cluster1", "sample");
  Bare({{"app", "bare"}, {"sidecar.istio.io/inject", "false"}});
  Settle();
  EXPECT_FALSE(IsInjected("bare"));
  EXPECT_THAT(world_->LeftOut(), IsEmpty());
}

// apiserver: every webhook that selects a pod is asked, configurations in the order of their names.
class OtherWebhooks : public Admission {
 protected:
  void SetUp() override {
    Admission::SetUp();
    Do("install", {{"cluster", "cluster1"}});
    Settle();
    Apply("cluster1", "sample");
  }
  void Webhook(const char* name, const char* service, const char* policy) {
    Write(
        {{"apiVersion", "admissionregistration.k8s.io/v1"},
         {"kind", "MutatingWebhookConfiguration"},
         {"metadata", {{"name", name}}},
         {"webhooks",
          json::array({{{"name", "pods.example.com"},
                        {"clientConfig", {{"service", {{"name", service}, {"namespace", "guard"}, {"path", "/pods"}}}}},
                        {"rules", json::array({{{"operations", {"CREATE"}},
                                                {"apiGroups", {""}},
                                                {"apiVersions", {"v1"}},
                                                {"resources", {"pods"}}}})},
                        {"failurePolicy", policy},
                        {"sideEffects", "None"},
                        {"admissionReviewVersions", {"v1"}}}})}});
  }
  void Guard() {
    Write({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "guard"}}}});
    const json labels = {{"app", "guard"}};
    Write({{"apiVersion", "v1"},
           {"kind", "Service"},
           {"metadata", {{"name", "guard"}, {"namespace", "guard"}}},
           {"spec", {{"selector", labels}, {"ports", json::array({{{"port", 443}, {"targetPort", 9443}}})}}}});
    Write({{"apiVersion", "apps/v1"},
           {"kind", "Deployment"},
           {"metadata", {{"name", "guard"}, {"namespace", "guard"}}},
           {"spec",
            {{"selector", {{"matchLabels", labels}}},
             {"template",
              {{"metadata", {{"labels", labels}}},
               {"spec", {{"containers", json::array({{{"name", "c"}, {"image", "example/guard"}}})}}}}}}}});
  }
};

TEST_F(OtherWebhooks, BeforeIstiodsTakeNobodysSidecarAway) {
  Guard();
  Webhook("a-guard", "guard", "Fail");
  Settle();
  Bare();
  Settle();
  EXPECT_TRUE(IsInjected("bare"));
  EXPECT_FALSE(IsInjected("guard")) << "its own pods pass it while nobody has answered yet";
  EXPECT_THAT(world_->Unready(), IsEmpty());
}

TEST_F(OtherWebhooks, WhoseServiceIsNotThereLetPodsPassOrRefuseThemAsTheirPolicySays) {
  Webhook("a-guard", "nobody", "Ignore");
  Bare();
  Settle();
  EXPECT_TRUE(IsInjected("bare"));
  EXPECT_THAT(world_->LeftOut(), IsEmpty());
  Webhook("z-guard", "nobody", "Fail");
  ASSERT_TRUE(Api().Delete("Pod", {"sample", "bare"}).ok());
  Settle();
  Bare();
  Settle();
  EXPECT_EQ(Api().Get("Pod", {"sample", "bare"}), nullptr);
  EXPECT_THAT(world_->Unready(),
              ElementsAre(AllOf(HasSubstr("pod bare was not admitted: failed calling webhook \"pods.example.com\""),
                                HasSubstr("service \"nobody\" not found"))));
}

TEST_F(OtherWebhooks, RefusePodsOnceTheirServersAreGone) {
  Guard();
  Webhook("z-guard", "guard", "Fail");
  Settle();
  ASSERT_TRUE(Api().Patch("Deployment", {"guard", "guard"}, {{"spec", {{"replicas", 0}}}}).ok());
  Settle();
  Bare();
  Settle();
  EXPECT_THAT(world_->Unready(), ElementsAre(HasSubstr("no endpoints available for service \"guard\"")));
}

}  // namespace
}  // namespace wavetank::sim
