#include "sim/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Traffic, AHostHeaderTakesThePlaceOfTheName) {
  TrafficSpec spec;
  spec.host = "172.30.1.1";
  EXPECT_EQ(RequestOf(spec).authority, "172.30.1.1");
  spec.headers = {{"host", "shop.example"}, {"x-group", "a"}};
  EXPECT_EQ(RequestOf(spec).authority, "shop.example");
  EXPECT_THAT(RequestOf(spec).headers, ElementsAre(Pair("x-group", "a")));
}

TEST(Traffic, TrailersComeBehindABodyInChunksWhereHttpHasNoFrames) {
  TrafficSpec spec;
  spec.host = "shop.example";
  spec.trailers = {{"x-sum", "abc"}};
  EXPECT_THAT(RequestOf(spec).trailers, ElementsAre(Pair("x-sum", "abc")));
  EXPECT_THAT(RequestOf(spec).headers, ElementsAre(Pair("transfer-encoding", "chunked")));
  spec.http = envoysim::HttpProtocol::kHttp2;
  EXPECT_THAT(RequestOf(spec).trailers, ElementsAre(Pair("x-sum", "abc")));
  EXPECT_THAT(RequestOf(spec).headers, IsEmpty());
}

TEST(Traffic, LeavesOutThePortThatItsSchemeHasAnyway) {
  TrafficSpec spec;
  spec.host = "shop.example";
  EXPECT_EQ(RequestOf(spec).authority, "shop.example");
  spec.port = 443;
  EXPECT_EQ(RequestOf(spec).authority, "shop.example:443");
  spec.flight = std::make_shared<envoysim::FirstFlight>();
  EXPECT_EQ(RequestOf(spec).authority, "shop.example");
}

}  // namespace
}  // namespace wavetank::sim
