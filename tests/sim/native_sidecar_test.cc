// Proxies that are init containers which go on, from Istio 1.28 on with Kubernetes 1.33: where they stand, what of a
// pod is counted, and that a Job completes beside one.
#include <gmock/gmock.h>

#include "core/base/json_access.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class NativeSidecarWorld : public TwoClusterWorld {
 protected:
  // cluster1 with its istiod and namespace `sample`; `variable`: ENABLE_NATIVE_SIDECARS, "" to leave it out.
  void Start(const std::string& profile, const std::string& variable = "") {
    WorldOptions options = TwoClusters(false);
    options.profile = profile;
    absl::StatusOr<std::unique_ptr<World>> world = World::Create(std::move(options));
    ASSERT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    Do("cacerts", {{"cluster", "cluster1"}, {"root", "root"}});
    Do("install", {{"cluster", "cluster1"}});
    if (!variable.empty()) {
      const json env = json::array({{{"name", "ENABLE_NATIVE_SIDECARS"}, {"value", variable}}});
      const json container = {{"name", "discovery"}, {"image", "example/pilot:1.30.3"}, {"env", env}};
      Do("patch", {{"cluster", "cluster1"},
                   {"kind", "Deployment"},
                   {"namespace", "istio-system"},
                   {"name", "istiod"},
                   {"patch", {{"spec", {{"template", {{"spec", {{"containers", json::array({container})}}}}}}}}}});
    }
    Settle();
    Apply("cluster1", "sample");
    Apply("cluster1", "sleep");
    Do("apply",
       {{"cluster", "cluster1"},
        {"object",
         {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"name", "once"}, {"namespace", "sample"}}},
          {"spec",
           {{"template",
             {{"metadata", {{"labels", {{"app", "once"}}}}},
              {"spec",
               {{"restartPolicy", "Never"},
                {"containers",
                 json::array(
                     {{{"name", "work"}, {"image", "example/work"}, {"command", {"sh", "-c", "sleep 5"}}}})}}}}}}}}}});
    Settle();
    world_->RunUntil(world_->Now() + 1min);
  }
  void Settle() { world_->RunUntilSettled(world_->Now() + 2min); }
  kube::ObjectRef PodOf(const std::string& app) {
    for (const kube::ObjectRef& pod : world_->cluster("cluster1").api().List("Pod", "sample")) {
      if (const auto it = pod->meta.labels.find("app"); it != pod->meta.labels.end() && it->second == app) return pod;
    }
    return nullptr;
  }
  std::vector<std::string> Containers(const std::string& app, const char* list) {
    std::vector<std::string> out;
    const kube::ObjectRef pod = PodOf(app);
    if (pod == nullptr) return {"no pod"};
    for (const json& container : Items(At(pod->body, {"spec", list}))) out.push_back(Text(container, "name"));
    return out;
  }
  std::string PhaseOf(const std::string& app) {
    const kube::ObjectRef pod = PodOf(app);
    return pod == nullptr ? "none" : Text(At(pod->body, "status"), "phase");
  }
};

TEST_F(NativeSidecarWorld, AreWhatProfile130InjectsAndAJobCompletesBesideOne) {
  Start("istio-1.30");
  EXPECT_THAT(Containers("sleep", "containers"), ElementsAre("sleep"));
  EXPECT_THAT(Containers("sleep", "initContainers"), ElementsAre("istio-init", "istio-proxy"));
  const json& status = At(PodOf("sleep")->body, {"status", "initContainerStatuses"});
  ASSERT_EQ(status.size(), 1u) << "of the sidecar alone";
  EXPECT_EQ(status[0]["name"], "istio-proxy");
  EXPECT_EQ(status[0]["ready"], true);
  EXPECT_THAT(world_->Unready(), testing::IsEmpty());
  EXPECT_EQ(PhaseOf("once"), "Succeeded");
}

TEST_F(NativeSidecarWorld, AreNotThereInProfile118AndAJobRunsForEver) {
  Start("istio-1.18");
  EXPECT_THAT(Containers("sleep", "containers"), ElementsAre("sleep", "istio-proxy"));
  EXPECT_EQ(PhaseOf("once"), "Running");
}

TEST_F(NativeSidecarWorld, AreOffWhereIstiodsVariableSaysSo) {
  Start("istio-1.30", "false");
  EXPECT_THAT(Containers("sleep", "containers"), ElementsAre("sleep", "istio-proxy"));
}

}  // namespace
}  // namespace wavetank::sim
