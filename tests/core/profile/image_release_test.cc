#include "core/profile/image_release.h"

#include <gtest/gtest.h>

namespace wavetank::pilot {
namespace {

TEST(ImageRelease, IsWhatItsTagTells) {
  EXPECT_EQ(TagOf("docker.io/istio/pilot:1.18.2-distroless"), "1.18.2-distroless");
  EXPECT_EQ(TagOf("host:5000/istio/pilot"), "");
  EXPECT_EQ(TagOf("host:5000/istio/pilot:1.30.3@sha256:2094f"), "1.30.3");
  EXPECT_EQ(TagOf("istio/pilot@sha256:1.18"), "");
  EXPECT_EQ(MinorOfImage("istio/pilot:1.30.3@sha256:2094f"), 30);
  EXPECT_EQ(MinorOfImage("istio/pilot:2023.05"), 0) << "a tag of somebody's own";
  EXPECT_EQ(MinorOfImage("istio/pilot"), 0);
}

}  // namespace
}  // namespace wavetank::pilot
