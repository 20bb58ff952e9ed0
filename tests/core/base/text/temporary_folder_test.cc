#include "core/base/text/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace wavetank {
namespace {

TEST(TemporaryFolder, IsNewEachTimeAndNamedAfterItsPurpose) {
  const absl::StatusOr<std::string> one = MakeTemporaryFolder("test"), other = MakeTemporaryFolder("test");
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_NE(*one, *other);
  for (const std::string& folder : {*one, *other}) {
    EXPECT_THAT(folder, testing::HasSubstr("wavetank-test-"));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    std::filesystem::remove(folder);
  }
}

TEST(TemporaryFolder, WhereNoneCanBeMadeIsAnErrorAndNoException) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no/such/folder", 1);
  const absl::StatusOr<std::string> folder = MakeTemporaryFolder("test");
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", kept.c_str(), 1);
  }
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(folder.status().ToString(), testing::HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace wavetank
