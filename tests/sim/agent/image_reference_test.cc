#include "sim/agent/image_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::sim {
namespace {

using testing::HasSubstr;

TEST(ImageReference, NamesOfImagesAreTaken) {
  for (const char* image :
       {"auto", "nginx", "nginx:1.25", "istio/proxyv2:1.18.2", "docker.io/istio/proxyv2:1.18.2-distroless",
        "registry.example:5000/team/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "Registry.example/app", "localhost/app:v1", "a__b/c-d.e:_x"}) {
    EXPECT_EQ(ImageReferenceError(image), "") << image;
  }
}

TEST(ImageReference, WhatNamesNoImageIsToldInTheKubeletsWords) {
  for (const char* image : {"http://docker.io/istio/proxyv2:1.18.2", "nginx:1:2", "nginx:", "/nginx", "nginx/", "a b",
                            "nginx@sha256:abc"}) {
    EXPECT_EQ(ImageReferenceError(image), "invalid reference format") << image;
  }
  EXPECT_EQ(ImageReferenceError("example/HelloWorld"), "invalid reference format: repository name must be lowercase");
  EXPECT_THAT(ImageReferenceError(std::string(64, 'a')), HasSubstr("cannot specify 64-byte hexadecimal strings"));
}

TEST(ImageReference, OfAPodTheFirstSuchContainerIsTold) {
  const nlohmann::json spec = {{"initContainers", {{{"image", "busybox"}}}},
                               {"containers", {{{"image", "app"}}, {{"image", "App:v1"}}}}};
  EXPECT_EQ(
      InvalidImage(spec),
      "InvalidImageName: Failed to apply default image tag \"App:v1\": couldn't parse image reference \"App:v1\": "
      "invalid reference format: repository name must be lowercase");
  EXPECT_EQ(InvalidImage({{"containers", {{{"image", "app"}}}}}), "");
}

TEST(ImageReference, OfAPodTheFirstImageThatNoRegistryHasIsTold) {
  const auto pod = [](const char* image, const char* policy = "IfNotPresent") {
    return nlohmann::json{{"containers", {{{"image", "app"}}, {{"image", image}, {"imagePullPolicy", policy}}}}};
  };
  EXPECT_EQ(
      UnpublishedImage(pod("istio/proxyv2:1.18.9")),
      "Failed to pull image \"istio/proxyv2:1.18.9\": rpc error: code = NotFound desc = failed to pull and unpack "
      "image \"docker.io/istio/proxyv2:1.18.9\": failed to resolve reference "
      "\"docker.io/istio/proxyv2:1.18.9\": docker.io/istio/proxyv2:1.18.9: not found");
  EXPECT_THAT(UnpublishedImage(pod("auto")), HasSubstr("pull access denied"));
  EXPECT_EQ(UnpublishedImage(pod("istio/proxyv2:1.18.2")), "");
  EXPECT_EQ(UnpublishedImage(pod("istio/proxyv2:1.18.9", "Never")), "") << "somebody brought it to the node";
}

}  // namespace
}  // namespace wavetank::sim
