#include "core/base/text/percent.h"

#include "gtest/gtest.h"

namespace wavetank {
namespace {

TEST(Percent, EscapesStandForTheirBytesInEitherCase) {
  EXPECT_EQ(PercentDecoded("a%2Fb%2f%C3%a9"), "a/b/\xc3\xa9");
  EXPECT_EQ(PercentDecoded("%2525"), "%25") << "once";
}

TEST(Percent, PlusIsABlankInFormsAlone) {
  EXPECT_EQ(PercentDecoded("a+b%2B", true), "a b+");
  EXPECT_EQ(PercentDecoded("a+b"), "a+b");
}

TEST(Percent, TheFirstBrokenEscapeIsTold) {
  for (const auto& [text, told] : {std::pair("a%zz%1", "%zz"), std::pair("a%2", "%2"), std::pair("%", "%")}) {
    std::string_view broken;
    EXPECT_EQ(PercentDecoded(text, false, &broken), std::nullopt) << text;
    EXPECT_EQ(broken, told);
  }
}

TEST(Percent, LooselyABrokenEscapeStandsForItself) {
  EXPECT_EQ(PercentDecodedLoosely("100%, %4x+%41"), "100%, %4x+A");
  EXPECT_EQ(PercentDecodedLoosely("%+", true), "% ");
}

TEST(Percent, WhatIsEncodedIsReadAsItWas) {
  EXPECT_EQ(PercentEncoded("aZ09-/ %\xc3\xa9", "/"), "aZ09%2D/%20%25%C3%A9");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(PercentDecoded(PercentEncoded(all)), all);
}

}  // namespace
}  // namespace wavetank
