#include "core/xds/cache.h"

#include <gtest/gtest.h>

namespace wavetank::pilot {
namespace {

const ConfigKey kService{ConfigKind::kServiceEntry, "web.shop", "shop"};
const ConfigKey kRule{ConfigKind::kDestinationRule, "web", "shop"};

Resource Make(const std::string& name) { return {name, std::make_shared<const std::string>("bytes of " + name)}; }

TEST(XdsCache, AnEntryLivesUntilOneOfItsConfigurationsChanges) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {kService, kRule}, Make("web"));
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
  cache.Add(XdsCache::Type::kEds, "k", Time(4s), {kService}, Make("old"));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  cache.Add(XdsCache::Type::kEds, "k", Time(5s), {kService}, Make("new"));
  ASSERT_NE(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k")->name, "new");
}

TEST(XdsCache, AProxyThatWasNeverPushedToFillsNothing) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kEds, "k", Time{}, {kService}, Make("web"));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(XdsCache, APeerAuthenticationClearsAllEndpointsButNoClusters) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {kService}, Make("web"));
  cache.Add(XdsCache::Type::kCds, "k", Time(1s), {kService}, Make("web"));
  cache.Clear({{ConfigKind::kPeerAuthentication, "default", "shop"}}, Time(2s));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
  EXPECT_NE(cache.Get(XdsCache::Type::kCds, "k"), nullptr);
}

TEST(XdsCache, AReplacedEntryForgetsWhatItDependedOn) {
  XdsCache cache;
  cache.Add(XdsCache::Type::kCds, "k", Time(1s), {kService}, Make("a"));
  cache.Add(XdsCache::Type::kCds, "k", Time(2s), {kRule}, Make("b"));
  cache.Clear({kService}, Time(3s));
  EXPECT_NE(cache.Get(XdsCache::Type::kCds, "k"), nullptr);
}

TEST(XdsCache, KeepsNothingWhenItIsOff) {
  XdsCache cache(false);
  cache.Add(XdsCache::Type::kEds, "k", Time(1s), {}, Make("a"));
  EXPECT_EQ(cache.Get(XdsCache::Type::kEds, "k"), nullptr);
}

}  // namespace
}  // namespace wavetank::pilot
