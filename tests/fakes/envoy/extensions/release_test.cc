// Envoy's releases: which rules and which extensions each has.
#include "fakes/envoy/extensions/release.h"

#include <gtest/gtest.h>

#include "fakes/envoy/extensions/catalogue.h"

namespace wavetank::envoysim {
namespace {

TEST(ReleaseTest, EachChangeHasItsRow) {
  for (size_t i = 0; i < EnvoyChanges().size(); ++i) EXPECT_EQ(static_cast<size_t>(EnvoyChanges()[i].change), i);
}

TEST(ReleaseTest, TheFirstHostIsEjectedRegardlessBefore128) {
  EXPECT_FALSE(EnvoyRelease{26}.Has(EnvoyChange::kEjectionPercentIsStrict));
  EXPECT_FALSE(EnvoyRelease{27}.Has(EnvoyChange::kEjectionPercentIsStrict));
  EXPECT_TRUE(EnvoyRelease{28}.Has(EnvoyChange::kEjectionPercentIsStrict));
}

TEST(CatalogueTest, FiltersThatCameLaterAreUnknownTo126) {
  constexpr char kRateLimit[] = "envoy.extensions.filters.http.ratelimit.v3.RateLimit";
  constexpr char kBasicAuth[] = "envoy.extensions.filters.http.basic_auth.v3.BasicAuth";
  EXPECT_TRUE(HasExtension(EnvoyRelease{26}, kRateLimit));
  EXPECT_TRUE(HasExtension(EnvoyRelease{40}, kBasicAuth));
  EXPECT_FALSE(HasExtension(EnvoyRelease{26}, kBasicAuth));
  EXPECT_FALSE(HasExtension(EnvoyRelease{40}, "envoy.extensions.filters.http.no_such.v3.Filter"));
}

}  // namespace
}  // namespace wavetank::envoysim
