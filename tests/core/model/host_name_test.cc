#include "core/model/host_name.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank::pilot {
namespace {

using ::testing::ElementsAre;

TEST(HostName, SubsetIsOneWayMatchIsNot) {
  EXPECT_TRUE(HostSubsetOf("a.example", "*.example"));
  EXPECT_FALSE(HostSubsetOf("*.example", "a.example"));
  EXPECT_TRUE(HostMatches("*.example", "a.example"));
  EXPECT_TRUE(HostSubsetOf("*.a.example", "*.example"));
  EXPECT_FALSE(HostSubsetOf("*.example", "*.a.example"));
  EXPECT_TRUE(HostMatches("*.example", "*.a.example"));
  EXPECT_FALSE(HostMatches("a.example", "b.example"));
}

TEST(HostName, LongerIsMoreSpecificAndWildcardsComeLast) {
  std::vector<std::string> hosts = {"*", "b.example", "*.example", "a.example", "long.a.example"};
  std::sort(hosts.begin(), hosts.end(), HostMoreSpecific);
  EXPECT_THAT(hosts, ElementsAre("long.a.example", "a.example", "b.example", "*.example", "*"));
}

TEST(HostName, IntersectionKeepsTheNarrowerSideOnce) {
  EXPECT_THAT(IntersectHosts({"foo.com", "*.net"}, {"*.com", "bar.net", "*"}),
              ElementsAre("foo.com", "bar.net", "*.net"));
}

TEST(HostName, NamespacesOfServerHostsLimitThem) {
  EXPECT_THAT(HostsForNamespace({"ns1/a.com", "ns2/b.com", "*/c.com", "d.com"}, "ns1"),
              ElementsAre("a.com", "c.com", "d.com"));
}

}  // namespace
}  // namespace wavetank::pilot
