#include "core/base/text/file_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace wavetank {
namespace {

TEST(FileName, StaysAsItIsWhereItIsOne) {
  for (const char* name :
       {"cluster1", "sleep-6qsm27d5x9-6hjrb.sample@cluster1", "arn:aws:eks:east", "a b", "ä", "a..b"})
    EXPECT_EQ(FileName(name), name);
}

TEST(FileName, LeadsToNoOtherFolder) {
  EXPECT_EQ(FileName("../evil"), "%2E.%2Fevil");
  EXPECT_EQ(FileName(".."), "%2E.");
  EXPECT_EQ(FileName("/etc/passwd"), "%2Fetc%2Fpasswd");
  EXPECT_EQ(FileName(""), "%");
  EXPECT_EQ(FileName(std::string("a\0b\n", 4)), "a%00b%0A");
}

TEST(FileName, OfOtherNamesIsAnother) {
  const std::string many(300, 'x');
  std::set<std::string> files;
  for (const std::string& name : {std::string("a/b"), std::string("a%2Fb"), std::string("a%252Fb"), std::string(),
                                  std::string("%"), many, many + "y", many + "z"}) {
    EXPECT_LE(FileName(name).size(), 200u);
    EXPECT_TRUE(files.insert(FileName(name)).second) << name;
  }
}

}  // namespace
}  // namespace wavetank
