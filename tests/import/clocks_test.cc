// Clocks of several istiods, put right by what they show together.
#include "import/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavetank::importing {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr WallNs kS = 1'000'000'000;

void Tell(Evidence& evidence, const std::string& replica, const std::string& name, WallNs at) {
  InferredInput& input = evidence.inputs.emplace_back();
  input.kind = InputKind::kConfig;
  input.object_kind = "VirtualService";
  input.name = name;
  input.replica = replica;
  input.at = input.earliest = input.latest = at;
}
const auto kNobody = [](const std::string&) { return false; };

Evidence TwoReplicas(WallNs ahead, WallNs jitter = 0) {
  Evidence evidence;
  for (int i = 0; i < 5; ++i) {
    Tell(evidence, "a", "v" + std::to_string(i), (100 + 10 * i) * kS);
    Tell(evidence, "b", "v" + std::to_string(i), (100 + 10 * i) * kS + ahead + i * jitter);
  }
  // What one of them alone shows.
  Tell(evidence, "a", "other", 300 * kS);
  return evidence;
}

TEST(Clocks, AreEstimatedFromWhatTwoSourcesShow) {
  Evidence evidence = TwoReplicas(2 * kS);
  AlignClocks(evidence, kNobody);
  EXPECT_EQ(evidence.inputs[1].at, 100 * kS);
  EXPECT_EQ(evidence.inputs[9].at, 140 * kS);
  EXPECT_THAT(evidence.notes, ElementsAre(HasSubstr("the clock of b is 2.000 s ahead of that of a, by 5 events")));
}

TEST(Clocks, ThatDifferByTheLagOfWatchesStay) {
  Evidence evidence = TwoReplicas(kS / 10);
  AlignClocks(evidence, kNobody);
  EXPECT_EQ(evidence.inputs[1].at, 100 * kS + kS / 10);
  EXPECT_TRUE(evidence.notes.empty());
}

TEST(Clocks, ThatDoNotDifferEvenlyStay) {
  Evidence evidence = TwoReplicas(2 * kS, 3 * kS);
  AlignClocks(evidence, kNobody);
  EXPECT_EQ(evidence.inputs[1].at, 102 * kS);
  EXPECT_TRUE(evidence.notes.empty());
}

TEST(Clocks, ThatTheUserToldAreRight) {
  Evidence evidence = TwoReplicas(2 * kS);
  AlignClocks(evidence, [](const std::string& replica) { return replica == "b"; });
  EXPECT_EQ(evidence.inputs[0].at, 102 * kS);
  EXPECT_EQ(evidence.inputs[1].at, 102 * kS);
}

TEST(Clocks, OfReplicasWithoutACommonEventStay) {
  Evidence evidence;
  for (int i = 0; i < 5; ++i) {
    Tell(evidence, "a", "v" + std::to_string(i), (100 + i) * kS);
    Tell(evidence, "b", "w" + std::to_string(i), (500 + i) * kS);
  }
  AlignClocks(evidence, kNobody);
  EXPECT_EQ(evidence.inputs[1].at, 500 * kS);
}

TEST(Clocks, ThatAreWeeksApartAreNotedWithHowToPutThemRight) {
  const auto notes = [](WallNs apart) {
    Evidence evidence;
    for (const auto& [file, at] : {std::pair("a.log", 100 * kS), std::pair("b.log", 100 * kS + apart)}) {
      Tell(evidence, file, "v", at);
      evidence.inputs.back().place.file = file;
    }
    NoteLongSilence(evidence);
    return evidence.notes;
  };
  EXPECT_THAT(notes(3600 * kS), testing::IsEmpty());
  EXPECT_THAT(notes(75 * 86'400 * kS),
              ElementsAre(testing::AllOf(HasSubstr("75 days between a.log"), HasSubstr("--skew b.log=DURATION"))));
}

}  // namespace
}  // namespace wavetank::importing
