#include "core/base/text/read_up_to.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace wavetank {
namespace {

TEST(ReadUpTo, TakesAllOfWhatEndsBefore) {
  const std::string text(200'000, 'x');
  std::istringstream in(text);
  EXPECT_EQ(ReadUpTo(in, 1'000'000), text);
  std::istringstream none;
  EXPECT_EQ(ReadUpTo(none, 5), "");
}

TEST(ReadUpTo, TakesNoMoreOfWhatNeverEnds) {
  std::ifstream zeros("/dev/zero", std::ios::binary);
  EXPECT_EQ(ReadUpTo(zeros, 300'001).size(), 300'001u);
}

}  // namespace
}  // namespace wavetank
