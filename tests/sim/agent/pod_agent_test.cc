#include "sim/agent/pod_agent.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sim/two_cluster_world.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A client whose agent answers names, beside `sleep`, whose agent does not, and a Service that cluster2 alone has.
class CapturedNames : public TwoClusterWorld {
 protected:
  void SetUp() override {
    Build(false);
    Put("cluster1",
        {{"apiVersion", "apps/v1"},
         {"kind", "Deployment"},
         {"metadata", {{"name", "asker"}, {"namespace", "sample"}}},
         {"spec",
          {{"replicas", 1},
           {"selector", {{"matchLabels", {{"app", "asker"}}}}},
           {"template",
            {{"metadata",
              {{"labels", {{"app", "asker"}}},
               {"annotations", {{"proxy.istio.io/config", "proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}"}}}}},
             {"spec", {{"containers", json::array({{{"name", "asker"}, {"image", "example"}}})}}}}}}}});
    Put("cluster2",
        {{"apiVersion", "v1"},
         {"kind", "Service"},
         {"metadata", {{"name", "elsewhere"}, {"namespace", "sample"}}},
         {"spec",
          {{"selector", {{"app", "helloworld"}}}, {"ports", json::array({{{"name", "http"}, {"port", 5000}}})}}}});
    ASSERT_TRUE(world_->RunUntilSettled(world_->Now() + 2min));
  }
  void Put(const std::string& cluster, json object) {
    Do("apply", {{"cluster", cluster}, {"object", std::move(object)}});
  }
  const PodProcess* Pod(const std::string& app) {
    const auto pods = world_->Pods("cluster1", "sample", app);
    return pods.empty() ? nullptr : pods.front();
  }
};

TEST_F(CapturedNames, AServiceOfAnotherClusterAloneIsFound) {
  const PodProcess* const asker = Pod("asker");
  ASSERT_NE(asker, nullptr);
  ASSERT_NE(asker->pod_agent()->dns(), nullptr);
  ASSERT_TRUE(asker->pod_agent()->ready());
  for (const char* name : {"elsewhere", "elsewhere.sample", "elsewhere.sample.svc.cluster.local"}) {
    const auto found = asker->ResolveName(name);
    ASSERT_TRUE(found.ok()) << name << ": " << found.status();
    EXPECT_EQ(found->size(), 1u);
  }
}

TEST_F(CapturedNames, WithoutCaptureItIsNobodys) {
  const PodProcess* const sleep = Pod("sleep");
  ASSERT_NE(sleep, nullptr);
  EXPECT_EQ(sleep->pod_agent()->dns(), nullptr);
  EXPECT_TRUE(absl::IsNotFound(sleep->ResolveName("elsewhere").status()));
}

TEST_F(CapturedNames, WhatTheMeshDoesNotKnowGoesToTheClustersDns) {
  EXPECT_TRUE(absl::IsNotFound(Pod("asker")->ResolveName("nowhere.example.com").status()));
  EXPECT_EQ(Pod("asker")->ResolveName("10.1.2.3").value().front().ToString(), "10.1.2.3");
}

TEST_F(CapturedNames, TheAgentSaysThatItHasItsCertificate) {
  const auto& log = Pod("asker")->pod_agent()->log();
  ASSERT_FALSE(log.empty());
  EXPECT_THAT(log.front().second, HasSubstr("\tinfo\tcache\tgenerated new workload certificate"));
}

}  // namespace
}  // namespace wavetank::sim
