#include "core/profile/published_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::pilot {
namespace {

using testing::HasSubstr;

TEST(PublishedImages, ReleasesAndTheirVariantsAreThere) {
  for (const char* image : {"docker.io/istio/pilot:1.18.2", "istio/proxyv2:1.18.7-distroless",
                            "gcr.io/istio-release/install-cni:1.30.3-debug", "index.docker.io/istio/operator:1.23.6",
                            "registry.istio.io/release/ztunnel:1.30.0"})
    EXPECT_EQ(NeverPublished(image), "") << image;
}

TEST(PublishedImages, WhatADayCannotKnowMayBeThere) {
  for (const char* image :
       {"istio/pilot:1.30.99", "istio/pilot:1.31.0", "istio/pilot:2.0.0", "istio/pilot:latest", "istio/pilot:1.18",
        "istio/pilot:1.18.0-rc.1", "istio/pilot", "registry.example/istio/pilot:1.18.9",
        "istio/pilot:1.18.9@sha256:2094f", "istio/examples-helloworld-v1:1.18.9", "nginx:1.18.9"})
    EXPECT_EQ(NeverPublished(image), "") << image;
}

TEST(PublishedImages, ATagThatNoReleaseHadIsTold) {
  EXPECT_EQ(NeverPublished("docker.io/istio/proxyv2:1.18.9"),
            "Istio has no release 1.18.9: those of 1.18 end with 1.18.7, without 1.18.4");
  EXPECT_THAT(NeverPublished("istio/pilot:1.18.4-distroless"), HasSubstr("no release 1.18.4"));
  EXPECT_EQ(NeverPublished("gcr.io/istio-release/pilot:1.20.20"),
            "Istio has no release 1.20.20: those of 1.20 end with 1.20.8");
  EXPECT_THAT(NeverPublished("istio/pilot:1.18.2-distrolless"), HasSubstr("no variant distrolless"));
  EXPECT_THAT(NeverPublished("istio/pilot:v1.18.2"), HasSubstr("begin with no v: it is 1.18.2"));
}

TEST(PublishedImages, AnImageThatTheReleaseDoesNotHaveIsTold) {
  EXPECT_EQ(NeverPublished("istio/operator:1.24.1"), "Istio 1.24 has no image operator: it ended with 1.23");
  EXPECT_EQ(NeverPublished("istio/ztunnel:1.17.2"), "Istio 1.17 has no image ztunnel: it came with 1.18");
  EXPECT_EQ(NeverPublished("istio/proxyv3:1.18.2"), "docker.io/istio has no image proxyv3; one that it has is proxyv2");
}

TEST(PublishedImages, HalfAReleaseIsNoticedInIstiosHubs) {
  EXPECT_TRUE(HasHalfARelease("docker.io/istio/pilot:1.2"));
  EXPECT_FALSE(HasHalfARelease("docker.io/istio/pilot:1.18.2"));
  EXPECT_FALSE(HasHalfARelease("mirror.example/istio/pilot:1.18"));
  // Examples have versions of their own.
  EXPECT_FALSE(HasHalfARelease("registry.istio.io/release/examples-helloworld-v1:1.0"));
}

TEST(PublishedImages, AHubThatIsAlmostIstiosIsNoticed) {
  EXPECT_EQ(HubMeant("docker.io/isito/pilot:1.18.2"), "docker.io/istio");
  EXPECT_EQ(HubMeant("gcr.io/istio-releases/proxyv2:1.18.2"), "gcr.io/istio-release");
  EXPECT_EQ(HubMeant("docker.io/istio/pilot:1.18.2"), "");
  EXPECT_EQ(HubMeant("gcr.io/istio-testing/pilot:1.18.2"), "");
  EXPECT_EQ(HubMeant("mirror.example/istio/pilot:1.18.2"), "");
  EXPECT_EQ(HubMeant("docker.io/isito/app:1"), "") << "somebody's own image";
}

}  // namespace
}  // namespace wavetank::pilot
