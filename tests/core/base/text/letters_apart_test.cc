#include "core/base/text/letters_apart.h"

#include "gtest/gtest.h"

namespace wavetank {
namespace {

TEST(LettersApart, CountsLettersPutInTakenOutAndChanged) {
  EXPECT_EQ(LettersApart("", ""), 0u);
  EXPECT_EQ(LettersApart("abc", ""), 3u);
  EXPECT_EQ(LettersApart("gateway", "gatway"), 1u);
  EXPECT_EQ(LettersApart("kitten", "sitting"), 3u);
}

TEST(LettersApart, NeighboursThatChangePlacesAreOne) {
  EXPECT_EQ(LettersApart("istio", "isito"), 1u);
  EXPECT_EQ(LettersApart("seed", "sede"), 1u);
  EXPECT_EQ(LettersApart("abcd", "badc"), 2u);
}

}  // namespace
}  // namespace wavetank
