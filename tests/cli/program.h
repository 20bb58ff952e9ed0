// The program as a user runs it: a process with arguments, its two outputs and its exit code.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
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

// A running program whose standard output is read line by line.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments, const std::string& errors) {
    arguments.insert(arguments.begin(), WAVETANK_BINARY_DIR "/wavetank");
    std::vector<char*> argv;
    for (std::string& each : arguments) argv.push_back(each.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(ends[1], 1);
      const int fd = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(fd, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fclose(output_);
  }
  std::string Line() {
    std::string out;
    for (int c = fgetc(output_); c != EOF && c != '\n'; c = fgetc(output_)) out += static_cast<char>(c);
    return out;
  }
  std::string Rest() {
    std::string out;
    for (int c = fgetc(output_); c != EOF; c = fgetc(output_)) out += static_cast<char>(c);
    return out;
  }
  void Signal(int number) const { kill(pid_, number); }
  // The exit code; 1000 and more for a signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
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
