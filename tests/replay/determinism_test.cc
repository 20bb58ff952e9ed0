// The same world in other surroundings. What whole scenarios give is compared by tools/determinism.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <clocale>

#include "tests/replay/toy_world.h"

namespace wavetank::replay {
namespace {

std::string Digest(uint64_t seed) {
  ToyWorld world(seed);
  for (uint64_t i = 0; i < 100; ++i) {
    world.kernel().RunUntil(Time(i * 3ms));
    (void)world.Do(i, "throw", {{"ball", "ball-" + std::to_string(i % 7)}, {"bounces", static_cast<int>(i % 13)}});
  }
  world.kernel().RunUntil(Time(60s));
  return world.kernel().digest().Hex();
}

// The constant is the point: GCC, clang, Debug, Release and the sanitizers all have to meet it. Kernel, random streams,
// causes and digest stand behind it; whoever changes one of them on purpose puts the new digest here and says so in
// CHANGELOG.md, since logs of the version before will not replay.
TEST(Determinism, EveryBuildOnEveryMachineGivesThisDigest) {
  EXPECT_EQ(Digest(1), "32dc7c7566acdf3d08e0c1e1a870c718");
  EXPECT_EQ(Digest(0xffffffffffffffff), "1cc70c9a7baade43759e7cfddcd4da3e");
}

TEST(Determinism, NeitherTimeZoneNorLocaleMatter) {
  const std::string before = Digest(42);
  setenv("TZ", "Pacific/Chatham", 1);
  tzset();
  for (const char* locale : {"C.UTF-8", "tr_TR.UTF-8", "de_DE.UTF-8", ""}) {
    std::setlocale(LC_ALL, locale);  // those that are installed
    EXPECT_EQ(Digest(42), before) << locale;
  }
  std::setlocale(LC_ALL, "C");
  unsetenv("TZ");
}

TEST(Determinism, WorldsInOneProcessDoNotKnowOfEachOther) {
  const std::string alone = Digest(42);
  ToyWorld neighbour(1);
  (void)neighbour.Do(1, "throw", {{"ball", "red"}, {"bounces", 1000}});
  neighbour.kernel().RunUntil(Time(100ms));
  EXPECT_EQ(Digest(42), alone);
  neighbour.kernel().RunUntil(Time(10s));
  EXPECT_EQ(Digest(42), alone);
}

TEST(Determinism, AnotherSeedIsAnotherRun) { EXPECT_NE(Digest(1), Digest(2)); }

}  // namespace
}  // namespace wavetank::replay
