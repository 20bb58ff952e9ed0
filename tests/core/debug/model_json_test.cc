// What istiod's pages show of its model.
#include "core/debug/model_json.h"

#include <gtest/gtest.h>

#include <utility>

namespace wavetank::debug {
namespace {

// Numbers, as Go prints an enum without a name.
TEST(ModelJson, ResolutionsHaveIstiodsNumbers) {
  for (const auto& [resolution, number] :
       {std::pair(pilot::Resolution::kClientSideLb, 0), std::pair(pilot::Resolution::kDnsLb, 1),
        std::pair(pilot::Resolution::kPassthrough, 2), std::pair(pilot::Resolution::kDnsRoundRobinLb, 3),
        std::pair(pilot::Resolution::kAlias, 4), std::pair(pilot::Resolution::kDynamicDns, 5)}) {
    pilot::Service service;
    service.resolution = resolution;
    EXPECT_EQ(ServiceJson(service)["Resolution"], number);
  }
}

}  // namespace
}  // namespace wavetank::debug
