#include "core/push/host_match.h"

#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

TEST(HostMatchTest, SubsetOfMeansEveryName) {
  EXPECT_TRUE(HostSubsetOf("a.b", "*.b"));
  EXPECT_TRUE(HostSubsetOf("a.b", "*"));
  EXPECT_TRUE(HostSubsetOf("*.x.b", "*.b"));
  EXPECT_FALSE(HostSubsetOf("*.b", "*.x.b"));
  EXPECT_FALSE(HostSubsetOf("*.b", "a.b"));
  EXPECT_FALSE(HostSubsetOf("a.c", "*.b"));
}

TEST(HostMatchTest, MatchesMeansSomeName) {
  EXPECT_TRUE(HostMatches("*.b", "a.b"));
  EXPECT_TRUE(HostMatches("*.b", "*.x.b"));
  EXPECT_TRUE(HostMatches("*.x.b", "*.b"));
  EXPECT_FALSE(HostMatches("*.x.b", "*.y.b"));
  EXPECT_FALSE(HostMatches("a.b", "b.b"));
}

TEST(HostMatchTest, ShortNamesGetNamespaceAndDomain) {
  EXPECT_EQ(ResolveShortnameToFqdn("reviews", "ns", "cluster.local"), "reviews.ns.svc.cluster.local");
  EXPECT_EQ(ResolveShortnameToFqdn("reviews.other", "ns", "cluster.local"), "reviews.other");
  EXPECT_EQ(ResolveShortnameToFqdn("*", "ns", "cluster.local"), "*");
  EXPECT_EQ(ResolveShortnameToFqdn("fd00::1", "ns", "cluster.local"), "fd00::1");
  EXPECT_EQ(ResolveShortnameToFqdn("", "ns", "cluster.local"), "");
}

TEST(HostTableTest, LongestWildcardThatCoversTheHostWins) {
  HostTable<int> table;
  table["*.local"] = 1;
  table["*.ns.svc.cluster.local"] = 2;
  table["a.ns.svc.cluster.local"] = 3;
  EXPECT_EQ(*table.MostSpecific("a.ns.svc.cluster.local"), 3);
  EXPECT_EQ(*table.MostSpecific("b.ns.svc.cluster.local"), 2);
  EXPECT_EQ(*table.MostSpecific("b.local"), 1);
  EXPECT_EQ(table.MostSpecific("b.example"), nullptr);
  EXPECT_EQ(*table.MostSpecific("*.ns.svc.cluster.local"), 2);
  EXPECT_EQ(*table.MostSpecific("*.x.ns.svc.cluster.local"), 2);
  EXPECT_EQ(table.MostSpecific("*"), nullptr);
  table["*"] = 0;
  EXPECT_EQ(*table.MostSpecific("b.example"), 0);
  EXPECT_EQ(*table.MostSpecific("*"), 0);
}

}  // namespace
}  // namespace wavetank::pilot
