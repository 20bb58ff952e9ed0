#include "sim/mending/mending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/status.h"

namespace wavetank::sim {
namespace {

TEST(Mending, WithoutAChoiceFillsInWhatIsLeftOutAltogether) {
  const Mending mending;
  EXPECT_TRUE(mending.Does(Mend::kRoots, true));
  EXPECT_FALSE(mending.Does(Mend::kRoots, false));
}

TEST(Mending, AChoiceHoldsWhateverIsThere) {
  const Mending mending = *Mending::Parse("roots, tokens");
  EXPECT_TRUE(mending.Does(Mend::kTokens, false));
  EXPECT_FALSE(mending.Does(Mend::kRbac, true));
  EXPECT_FALSE(Mending::Parse("none")->Does(Mend::kRoots, true));
}

TEST(Mending, ReadsWhatItPrints) {
  for (const char* text : {"", "none", "all", "istiod,rbac"}) EXPECT_EQ(Mending::Parse(text)->Text(), text);
}

TEST(Mending, RefusesOtherNamesAndListsThese) {
  EXPECT_THAT(std::string(Message(Mending::Parse("root").status())),
              testing::HasSubstr("called 'root'; there are: all"));
}

}  // namespace
}  // namespace wavetank::sim
