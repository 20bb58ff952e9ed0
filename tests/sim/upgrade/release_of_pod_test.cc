#include "sim/upgrade/release_of_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"
#include "core/profile/changes.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

kube::ObjectRef IstiodPod(const json& annotations) {
  return *kube::Object::FromJson(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", {{"name", "istiod-1"}, {"namespace", "istio-system"}, {"annotations", annotations}}},
       {"spec", {{"containers", {{{"name", "discovery"}, {"image", "example/pilot:1.18.2"}}}}}}});
}

TEST(ReleaseOfPod, AnImagesTagBecomesTheReleaseAndKeepsItsVariant) {
  EXPECT_EQ(ImageOfRelease("docker.io/istio/proxyv2:1.18.2", "1.30.3"), "docker.io/istio/proxyv2:1.30.3");
  EXPECT_EQ(ImageOfRelease("istio/proxyv2:1.18.2-distroless", "1.30.3"), "istio/proxyv2:1.30.3-distroless");
  EXPECT_EQ(ImageOfRelease("hub:5000/istio/proxyv2:1.18-alpha.2", "1.30.3"), "hub:5000/istio/proxyv2:1.30.3");
  EXPECT_EQ(ImageOfRelease("hub:5000/istio/proxyv2", "1.30.3"), "hub:5000/istio/proxyv2:1.30.3");
  EXPECT_EQ(ImageOfRelease("istio/proxyv2:latest", "1.30.3"), "istio/proxyv2:1.30.3");
  EXPECT_EQ(ImageOfRelease("istio/proxyv2@sha256:ab", "1.30.3"), "istio/proxyv2:1.30.3");
}

TEST(ReleaseOfPod, AnIstiodIsOfTheWorldsProfileUnlessItSaysAnother) {
  const pilot::Profile worlds = *pilot::ParseProfile("istio-1.18+gateway-once-per-cla");
  const auto plain = ProfileOfIstiod(*IstiodPod(json::object()), worlds);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(*plain, worlds);
  const auto other = ProfileOfIstiod(*IstiodPod({{kProfileAnnotation, "istio-1.30"}}), worlds);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->Name(), "istio-1.30");
}

TEST(ReleaseOfPod, AnUnknownProfileIsRefusedByName) {
  const auto read = ProfileOfIstiod(*IstiodPod({{kProfileAnnotation, "istio-9"}}), {});
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(Message(read.status())), HasSubstr("istio-9"));
}

TEST(ReleaseOfPod, AnIstiodsPodSaysWhichSingleChangesItHas) {
  json pod = {{"spec",
               {{"containers",
                 {{{"name", "x"}, {"image", "a:1"}}, {{"name", "discovery"}, {"image", "example/pilot:1.18.2"}}}}}}};
  GiveIstiodRelease(*pilot::ParseProfile("istio-1.30+gateway-once-per-cla"), &pod);
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "a:1");
  EXPECT_EQ(pod["spec"]["containers"][1]["image"], "example/pilot:1.30.3");
  EXPECT_EQ(pod["metadata"]["annotations"][kProfileAnnotation], "istio-1.30+gateway-once-per-cla");
}

TEST(ReleaseOfPod, OnlyTheProxysOwnContainersGetItsRelease) {
  json pod = {
      {"spec",
       {{"containers",
         {{{"name", "app"}, {"image", "shop:1.2.3"}}, {{"name", "istio-proxy"}, {"image", "istio/proxyv2:1.18.2"}}}},
        {"initContainers", {{{"name", "istio-init"}, {"image", "istio/proxyv2:1.18.2"}}}}}}};
  GiveProxyRelease("1.30.3", &pod);
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "shop:1.2.3");
  EXPECT_EQ(pod["spec"]["containers"][1]["image"], "istio/proxyv2:1.30.3");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["image"], "istio/proxyv2:1.30.3");
}

}  // namespace
}  // namespace wavetank::sim
