#include "core/xds/cache.h"

#include <gtest/gtest.h>

#include "core/push/sidecar_scope.h"

namespace wavetank::pilot {
namespace {

const ConfigKey kService{ConfigKind::kServiceEntry, "web.shop", "shop"};
const ConfigKey kRule{ConfigKind::kDestinationRule, "web", "shop"};

uint64_t Hash(const ConfigKey& key) { return ConfigHash(key.kind, key.name, key.ns); }
Resource Make(const std::string& name) { return {name, "bytes of " + name}; }

TEST(XdsCache, AnEntryLivesUntilOneOfItsConfigurationsChanges) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {Hash(kService), Hash(kRule)}, Make("web"));
  ASSERT_NE(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k")->name, "web");
  EXPECT_EQ(cache.Get(XdsCache::Type::kCds, "k"), nullptr);
  cache.Clear({{ConfigKind::kServiceEntry, "other", "shop"}}, Time(2s));
  EXPECT_NE(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  cache.Clear({kRule}, Time(3s));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(XdsCache, WhatWasMadeForAnOlderPushThanTheLastClearingIsNotKept) {
  XdsCache cache;
  cache.Clear({kService}, Time(5s));
  cache.Add(XdsCache::Type::kEds, "k", Time(4s), {Hash(kService)}, Make("old"));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  cache.Add(XdsCache::Type::kEds, "k", Time(5s), {Hash(kService)}, Make("new"));
  ASSERT_NE(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k")->name, "new");
}

TEST(XdsCache, AProxyThatWasNeverPushedToFillsNothing) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kEds, "k", Time{}, {Hash(kService)}, Make("web"));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(XdsCache, APeerAuthenticationClearsAllEndpointsButNoClusters) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {Hash(kService)}, Make("web"));
  cache.Add(XdsCache::Type::kCds, "k", Time(1s), {Hash(kService)}, Make("web"));
  cache.Clear({{ConfigKind::kPeerAuthentication, "default", "shop"}}, Time(2s));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  EXPECT_NE(cache.Get(XdsCache::Type::kCds, "k"), nullptr);
}

TEST(XdsCache, AReplacedEntryForgetsWhatItDependedOn) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kCds, "k", Time(1s), {Hash(kService)}, Make("a"));
  cache.Add(XdsCache::Type::kCds, "k", Time(2s), {Hash(kRule)}, Make("b"));
  cache.Clear({kService}, Time(3s));
  EXPECT_NE(cache.Get(XdsCache::Type::kCds, "k"), nullptr);
}

TEST(XdsCache, AConfigurationTakesAllThatDependOnItAndNothingElse) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kCds, "a", Time(1s), {Hash(kService), Hash(kRule)}, Make("a"));
  cache.Add(XdsCache::Type::kCds, "b", Time(1s), {Hash(kRule)}, Make("b"));
  cache.Add(XdsCache::Type::kCds, "c", Time(1s), {Hash(kService)}, Make("c"));
  cache.Clear({kRule}, Time(2s));
  EXPECT_EQ(cache.Get(XdsCache::Type::kCds, "a"), nullptr);
  EXPECT_EQ(cache.Get(XdsCache::Type::kCds, "b"), nullptr);
  ASSERT_NE(cache.Get(XdsCache::Type::kCds, "c"), nullptr);
  cache.Clear({kService}, Time(3s));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(XdsCache, AnEntryAddedTwiceIsClearedOnce) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kCds, "k", Time(1s), {Hash(kService)}, Make("a"));
  cache.Add(XdsCache::Type::kCds, "k", Time(2s), {Hash(kService)}, Make("b"));
  EXPECT_EQ(*cache.Get(XdsCache::Type::kCds, "k")->bytes, "bytes of b");
  cache.Clear({kService}, Time(3s));
  EXPECT_EQ(cache.size(), 0u);
  cache.Add(XdsCache::Type::kCds, "k", Time(3s), {Hash(kRule)}, Make("c"));
  cache.Clear({kService}, Time(4s));
  EXPECT_EQ(cache.size(), 1u);
}

TEST(XdsCache, SaysOfWhichServicesSomethingWasAddedOrCleared) {
  using Hosts = std::vector<std::string>;
  XdsCache cache;
  const auto changed = [&](uint64_t mark) {
    const auto hosts = cache.ChangedSince(XdsCache::Type::kEds, mark);
    return hosts ? Hosts(hosts->begin(), hosts->end()) : Hosts{"any"};
  };
  const uint64_t start = cache.Mark(XdsCache::Type::kEds);
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {Hash(kRule), Hash(kService)}, Make("web"), kService.name);
  const uint64_t added = cache.Mark(XdsCache::Type::kEds);
  EXPECT_EQ(changed(start), Hosts{kService.name});
  EXPECT_EQ(changed(added), Hosts{});
  cache.Clear({kService}, Time(2s));
  EXPECT_EQ(changed(added), Hosts{kService.name});
  cache.Clear({kRule}, Time(3s));
  EXPECT_EQ(changed(added), Hosts{"any"});
  EXPECT_EQ(changed(cache.Mark(XdsCache::Type::kEds)), Hosts{});
}

TEST(XdsCache, KeepsNothingWhenItIsOff) {
  XdsCache cache(false);
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {}, Make("a"));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
}

}  // namespace
}  // namespace wavetank::pilot
