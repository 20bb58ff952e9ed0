#include "core/base/containers/memo.h"

#include <gtest/gtest.h>

namespace wavetank {
namespace {

TEST(Memo, FindsWhatWasKeptByAllThatWasAsked) {
  Memo<int> memo(2);
  EXPECT_EQ(memo.Find("a"), nullptr);
  memo.Keep("a", 1);
  ASSERT_NE(memo.Find("a"), nullptr);
  EXPECT_EQ(*memo.Find("a"), 1);
  EXPECT_EQ(memo.Find("ab"), nullptr);
}

TEST(Memo, ForgetsAllWhenItIsFull) {
  Memo<int> memo(2);
  memo.Keep("a", 1);
  memo.Keep("b", 2);
  EXPECT_NE(memo.Find("a"), nullptr);
  memo.Keep("c", 3);
  EXPECT_EQ(memo.Find("a"), nullptr);
  EXPECT_EQ(memo.Find("b"), nullptr);
  ASSERT_NE(memo.Find("c"), nullptr);
}

TEST(Memo, HoldsNothingWhileMemosAreOff) {
  Memo<int> memo(2);
  memo.Keep("a", 1);
  {
    const MemosOff off, within;
    EXPECT_EQ(memo.Find("a"), nullptr);
    memo.Keep("b", 2);
  }
  EXPECT_NE(memo.Find("a"), nullptr);
  EXPECT_EQ(memo.Find("b"), nullptr);
}

}  // namespace
}  // namespace wavetank
