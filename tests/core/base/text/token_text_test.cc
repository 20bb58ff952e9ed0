#include "core/base/text/token_text.h"

#include <string>

#include "gtest/gtest.h"

namespace wavetank {
namespace {

const std::string kToken = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln";

std::string Found(const std::string& text) {
  const auto place = FindToken(text);
  return place ? text.substr(place->begin, place->end - place->begin) : "none";
}

TEST(FindToken, AlsoInAPathAQueryAndQuotes) {
  EXPECT_EQ(Found(kToken), kToken);
  EXPECT_EQ(Found("/callback/" + kToken + "/done"), kToken);
  EXPECT_EQ(Found("/?token=" + kToken + "&x=1"), kToken);
  EXPECT_EQ(Found("\"" + kToken + "\""), kToken);
}

TEST(FindToken, ButNotWhatOnlyLooksAlike) {
  EXPECT_EQ(Found("eyJhbGciOiJub25lIn0"), "none");
  EXPECT_EQ(Found("host.eyJzdWIiOiJhIn0"), "none");
  EXPECT_EQ(Found("xeyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0"), "none");
}

TEST(FindToken, TheNextOneBehindAPlace) {
  const std::string text = kToken + " " + kToken;
  EXPECT_EQ(FindToken(text, 1)->begin, kToken.size() + 1);
}

}  // namespace
}  // namespace wavetank
