#include "serve/rest_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace wavetank::serve {
namespace {

RestWatch::RealTime At(Duration since_start) { return RestWatch::RealTime(1h) + since_start; }

TEST(RestWatchTest, WhoSentNothingAndNeededNoProcessorForAWhileIsAtRest) {
  RestWatch watch(1s);
  watch.Stirred(At(0s));
  bool rest = false;
  Duration at = 0s;
  for (; !rest && at < 10s; at += 100ms) rest = watch.Look(At(at), at / 100);
  EXPECT_EQ(at, 1100ms);
}

TEST(RestWatchTest, WhatIsSentBeginsTheWhileAnew) {
  RestWatch watch(1s);
  for (Duration at = 0s; at <= 900ms; at += 100ms) EXPECT_FALSE(watch.Look(At(at), 0s));
  watch.Stirred(At(950ms));
  for (Duration at = 1s; at < 1950ms; at += 100ms) EXPECT_FALSE(watch.Look(At(at), 0s)) << at.count();
  EXPECT_TRUE(watch.Look(At(2s), 0s));
}

TEST(RestWatchTest, WhoWorksOrWaitsForAProcessorIsNotAtRestThoughHeSendsNothing) {
  RestWatch watch(1s);
  Duration worked = 0s;
  for (Duration at = 0s; at <= 5s; at += 100ms) EXPECT_FALSE(watch.Look(At(at), worked += 50ms));
  // Idle from here on: the last busy moments leave the while by and by.
  int64_t looks = 0;
  while (!watch.Look(At(5100ms + looks * 100ms), worked)) ++looks;
  EXPECT_GE(looks, 4);
  EXPECT_LE(looks, 10);
}

TEST(RestWatchTest, ProcessorTimeOfAProcessGrowsWithItsWork) {
  const Duration before = ProcessorTime(getpid());
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; i < 50'000'000; ++i) sum = sum + i;
  EXPECT_GT(ProcessorTime(getpid()), before);
  EXPECT_EQ(ProcessorTime(-1), 0s);
}

}  // namespace
}  // namespace wavetank::serve
