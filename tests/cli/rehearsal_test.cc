// How long one has to wait between the steps of scenarios/root-rotation, found by search.
#include "tests/cli/program.h"

namespace wavetank {
namespace {

class RootRotation : public ProgramTest {
 protected:
  // Whether no request fails with so many minutes before step `which` (0: the new root signs, 1: the old one goes).
  bool Works(int which, int minutes) {
    std::string text = Read(WAVETANK_SOURCE_DIR "/scenarios/root-rotation/scenario.yaml");
    const std::string manifests = WAVETANK_SOURCE_DIR "/scenarios/manifests";
    for (size_t at = text.find("../manifests"); at != std::string::npos; at = text.find("../manifests", at + 1)) {
      text.replace(at, 12, manifests);
    }
    size_t at = text.find("after: 13h");
    for (int i = 0; i < which; ++i) at = text.find("after: 13h", at + 1);
    text.replace(at, 10, fmt::format("after: {}m", minutes));
    return Call("run " + Write("scenario.yaml", text)).code == 0;
  }
  int LeastWait(int which) {
    int too_short = 1, enough = 13 * 60;
    EXPECT_FALSE(Works(which, too_short));
    EXPECT_TRUE(Works(which, enough));
    while (enough - too_short > 5) {
      const int middle = (too_short + enough) / 2;
      (Works(which, middle) ? enough : too_short) = middle;
    }
    return enough;
  }
};

// Certificates live for a day and are renewed at its half: until then a workload knows the roots that came with its
// own.
TEST_F(RootRotation, TheNewRootMaySignWhenEveryWorkloadHasRenewedOnce) {
  const int minutes = LeastWait(0);
  EXPECT_GT(minutes, 11 * 60 + 45);
  EXPECT_LT(minutes, 12 * 60 + 10);
}

TEST_F(RootRotation, TheOldRootMayGoWhenEveryWorkloadHasRenewedAgain) {
  const int minutes = LeastWait(1);
  // An hour of that half day was over: the story waited thirteen hours before.
  EXPECT_GT(minutes, 10 * 60 + 45);
  EXPECT_LT(minutes, 11 * 60 + 10);
}

}  // namespace
}  // namespace wavetank
