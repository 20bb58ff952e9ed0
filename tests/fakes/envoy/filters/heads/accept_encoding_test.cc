#include "fakes/envoy/filters/heads/accept_encoding.h"

#include <gtest/gtest.h>

namespace wavetank::envoysim {
namespace {

using Why = EncodingChoice::Why;

const std::vector<OfferedEncoding> kBoth = {{"gzip"}, {"br"}};

TEST(AcceptEncodingTest, TheLargestWeightWinsAndTheFirstOfEqualOnes) {
  EXPECT_EQ(ChooseEncoding("gzip;q=0.5, br;q=0.7", kBoth).encoding, "br");
  EXPECT_EQ(ChooseEncoding("br, gzip", kBoth).encoding, "br");
}

TEST(AcceptEncodingTest, AWildcardIsTheFirstOfferThatIsNotRuledOut) {
  EXPECT_EQ(ChooseEncoding("*", kBoth).encoding, "gzip");
  EXPECT_EQ(ChooseEncoding("gzip;q=0, *", kBoth).encoding, "br");
  EXPECT_EQ(ChooseEncoding("*", kBoth).why, Why::kWildcard);
}

TEST(AcceptEncodingTest, NothingInCommonIsNotValidAndIdentityMayBeAskedFor) {
  EXPECT_EQ(ChooseEncoding("zstd", kBoth).why, Why::kNotValid);
  EXPECT_EQ(ChooseEncoding("gzip;q=0.1, identity;q=0.5", kBoth).why, Why::kIdentity);
  EXPECT_EQ(ChooseEncoding("", kBoth).why, Why::kNotValid);
}

}  // namespace
}  // namespace wavetank::envoysim
