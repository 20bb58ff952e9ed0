#include "core/base/ip.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/containers/cidr_trie.h"
#include "core/base/random.h"

namespace wavetank {
namespace {

IpAddress Ip(std::string_view text) { return IpAddress::Parse(text).value(); }
IpPrefix Prefix(std::string_view text) { return IpPrefix::Parse(text).value(); }

TEST(IpAddress, PrintsWhatItParsed) {
  for (const char* text : {"10.1.0.10", "255.255.255.255", "fd00::1", "2001:db8::ff00:42:8329", "::1"}) {
    EXPECT_EQ(Ip(text).ToString(), text);
  }
  EXPECT_EQ(Ip("::ffff:10.0.0.1"), Ip("10.0.0.1"));
}

TEST(IpAddress, RefusesWhatIsNoLiteral) {
  for (const char* text : {"", "10.0.0", "10.0.0.256", "010.0.0.1", "10.0.0.1 ", "gateway.example.com", "fd00::1::2",
                           "10.0.0.1/8", "fe80::1%eth0", "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb"}) {
    EXPECT_FALSE(IsIpAddress(text)) << text;
  }
}

TEST(IpPrefix, ClearsBitsPastItsLength) {
  EXPECT_EQ(Prefix("10.9.8.7/8").ToString(), "10.0.0.0/8");
  EXPECT_EQ(Prefix("fd00:1:2:3::/33").ToString(), "fd00:1::/33");
  EXPECT_EQ(Prefix("1.2.3.4/0").ToString(), "0.0.0.0/0");
}

TEST(IpPrefix, RefusesWhatIsNone) {
  for (const char* text : {"", "10.0.0.0", "10.0.0.0/", "/8", "10.0.0.0/33", "fd00::/129", "10.0.0.0/-1", "10.0.0.0/8x",
                           "10.0.0.0/ 8", "host/8", "10.0.0.0/4294967304"}) {
    EXPECT_FALSE(IpPrefix::Parse(text).ok()) << text;
  }
}

TEST(IpPrefix, FamiliesDoNotContainEachOther) {
  EXPECT_TRUE(Prefix("0.0.0.0/0").Contains(Ip("10.0.0.1")));
  EXPECT_FALSE(Prefix("0.0.0.0/0").Contains(Ip("fd00::1")));
  EXPECT_FALSE(Prefix("::/0").Contains(Ip("10.0.0.1")));
  EXPECT_FALSE(Prefix("10.0.0.0/8").Contains(Ip("11.0.0.1")));
}

TEST(SocketAddress, BracketsIpv6) {
  EXPECT_EQ(SocketAddress::Parse("[fd00::1]:15443").value().ToString(), "[fd00::1]:15443");
  EXPECT_EQ(SocketAddress::Parse("10.0.0.1:80").value().port, 80);
  EXPECT_FALSE(SocketAddress::Parse("10.0.0.1:65536").ok());
  EXPECT_FALSE(SocketAddress::Parse("10.0.0.1").ok());
}

TEST(CidrTrie, TellsWidestFromNarrowest) {
  CidrTrie<int> trie;
  EXPECT_TRUE(trie.Insert(Prefix("10.0.0.0/8"), 8));
  EXPECT_TRUE(trie.Insert(Prefix("10.1.0.0/16"), 16));
  EXPECT_TRUE(trie.Insert(Prefix("10.1.2.3/32"), 32));
  EXPECT_FALSE(trie.Insert(Prefix("10.1.0.0/16"), 99));
  EXPECT_EQ(*trie.FindWidest(Ip("10.1.2.3")), 8);
  EXPECT_EQ(*trie.FindNarrowest(Ip("10.1.2.3")), 32);
  EXPECT_EQ(*trie.FindNarrowest(Ip("10.1.2.4")), 16);
  EXPECT_EQ(trie.FindNarrowest(Ip("11.0.0.0")), nullptr);
  EXPECT_EQ(trie.FindWidest(Ip("::a01:203")), nullptr);
  EXPECT_EQ(trie.size(), 3u);
}

// Against asking every prefix in turn; the seed is fixed, so a failure repeats.
TEST(CidrTrie, AgreesWithAskingEveryPrefix) {
  RandomStream random(7, "cidr trie");
  const auto address = [&](bool v4) {
    // Few distinct high bits, so that prefixes nest and addresses hit.
    const uint64_t low = random.Below(4) << 62 | random.Below(8) << 28 | random.Below(16);
    return v4 ? IpAddress::V4(static_cast<uint32_t>(random.Below(3) << 30 | random.Below(8)))
              : IpAddress::V6(random.Below(2) << 63 | random.Below(4), low);
  };
  CidrTrie<size_t> trie;
  std::vector<IpPrefix> prefixes;
  for (int i = 0; i < 300; ++i) {
    const bool v4 = random.Chance(500'000);
    const auto length = static_cast<uint32_t>(random.Below(v4 ? 33 : 129));
    const IpPrefix prefix = IpPrefix::Make(address(v4).ToString(), length).value();
    if (trie.Insert(prefix, prefixes.size())) prefixes.push_back(prefix);
  }
  int hits = 0;
  for (int i = 0; i < 2'000; ++i) {
    const IpAddress ip = address(random.Chance(500'000));
    const IpPrefix *widest = nullptr, *narrowest = nullptr;
    for (const IpPrefix& prefix : prefixes) {
      if (!prefix.Contains(ip)) continue;
      if (widest == nullptr || prefix.length < widest->length) widest = &prefix;
      if (narrowest == nullptr || prefix.length > narrowest->length) narrowest = &prefix;
    }
    const size_t *w = trie.FindWidest(ip), *n = trie.FindNarrowest(ip);
    ASSERT_EQ(w == nullptr ? nullptr : &prefixes[*w], widest) << ip.ToString();
    ASSERT_EQ(n == nullptr ? nullptr : &prefixes[*n], narrowest) << ip.ToString();
    hits += widest != nullptr;
  }
  EXPECT_GT(hits, 500);
}

}  // namespace
}  // namespace wavetank
