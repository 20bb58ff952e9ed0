#include "core/gen/view/stat_prefix.h"

#include "core/profile/changes.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

class StatPrefixTest : public ::testing::Test {
 protected:
  std::string Of(std::string_view pattern, std::optional<uint32_t> target_port = 0) {
    ServiceAttributes attributes;
    attributes.registry = Provider::kKubernetes;
    attributes.name = "web";
    attributes.ns = "shop";
    return BuildStatPrefix(pattern, "web.shop.svc.cluster.local", "v1", {"http", 80}, attributes, profile, target_port);
  }
  Profile profile;
};

TEST_F(StatPrefixTest, WhatAReleaseDoesNotKnowStaysAsItIs) {
  EXPECT_EQ(Of("%SERVICE%_%SUBSET_NAME%_%SERVICE_PORT%_%SERVICE_PORT_NAME%"), "web.shop_v1_80_http");
  EXPECT_EQ(Of("%SERVICE_NAME%_%TARGET_PORT%"), "%SERVICE_NAME%_%TARGET_PORT%");
}

// istiod: pilot/pkg/networking/telemetry/telemetry.go; so did a real 1.30.3.
TEST_F(StatPrefixTest, ServiceNamesAndTargetPortsAreReplacedSince124And119) {
  profile.Set(Change::kServiceNamesInStatNames);
  EXPECT_EQ(Of("%SERVICE_NAME%_%TARGET_PORT%", 8080), "web_%TARGET_PORT%");
  profile.Set(Change::kTargetPortsInStatNames);
  EXPECT_EQ(Of("%SERVICE_NAME%_%TARGET_PORT%", 8080), "web_8080");
  EXPECT_EQ(Of("%TARGET_PORT%", std::nullopt), "%TARGET_PORT%") << "of inbound listeners";
}

}  // namespace
}  // namespace wavetank::pilot
