// The program as a user runs it: a process with arguments, its two outputs and its exit code.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wavetank {

struct Ran {
  int code = -1;
  std::string output, error;
};

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("wavetank-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  static std::string Read(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Ran Call(const std::string& arguments) {
    const std::string errors = (folder_ / "stderr").string();
    FILE* pipe = popen(fmt::format("{}/wavetank {} 2>{}", WAVETANK_BINARY_DIR, arguments, errors).c_str(), "r");
    Ran ran;
    std::array<char, 4096> buffer;
    while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) ran.output.append(buffer.data(), n);
    const int status = pclose(pipe);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    ran.error = Read(errors);
    return ran;
  }
  // Exit code 2, nothing on standard output, one line on standard error that holds each of `parts`.
  void ExpectRefused(const Ran& ran, const std::vector<std::string>& parts) {
    EXPECT_EQ(ran.code, 2) << ran.error;
    EXPECT_EQ(ran.output, "");
    for (const std::string& part : parts) EXPECT_THAT(ran.error, testing::HasSubstr(part));
    EXPECT_EQ(std::count(ran.error.begin(), ran.error.end(), '\n'), 1) << ran.error;
  }

  std::filesystem::path folder_;
};

}  // namespace wavetank
