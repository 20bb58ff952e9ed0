// No bytes of the outside end the process, throw, or keep it busy for good. ./test --long takes fifty times as many,
// and tools/fuzz lets libFuzzer look for others; what it finds becomes a sample.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "fmt/format.h"
#include "tests/fuzz/alter.h"
#include "tests/fuzz/border.h"
#include "tests/long.h"

namespace wavetank::fuzz {
namespace {

constexpr char kCorpus[] = WAVETANK_SOURCE_DIR "/tests/fuzz/corpus";

// What is being taken, for the line that reproduces it; of the process, since a signal comes to it.
char under_way[160];

void SayWhere(int signal) {
  std::fputs(under_way, stderr);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<std::string> Samples(const std::string& border) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(kCorpus) / border)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> out;
  for (const auto& file : files) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    out.push_back(std::move(text).str());
  }
  return out;
}

// The bytes of one number are the same in every run.
std::string Bytes(const Border& border, const std::vector<std::string>& samples, uint64_t number) {
  if (number < samples.size()) return samples[number];
  RandomStream random(number, border.name);
  const std::string& sample = samples[random.Below(samples.size())];
  return Altered(sample, samples[random.Below(samples.size())], random);
}

class HostileBytes : public ::testing::TestWithParam<Border> {};

TEST_P(HostileBytes, AreTakenOrRefused) {
  const Border& border = GetParam();
  const std::vector<std::string> samples = Samples(border.name);
  ASSERT_FALSE(samples.empty()) << "no sample in " << kCorpus << "/" << border.name;
  static char stack[1 << 16];  // an endless recursion leaves none
  const stack_t other = {stack, 0, sizeof(stack)};
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_handler = SayWhere;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) sigaction(signal, &action, nullptr);
  const char* const one = std::getenv("WAVETANK_FUZZ_NUMBER");
  const uint64_t first = one == nullptr ? 0 : std::strtoull(one, nullptr, 10);
  const uint64_t altered = (LongTests() ? 1'000'000 : 20'000) / static_cast<uint64_t>(border.cost);
  const uint64_t end = one == nullptr ? samples.size() + altered : first + 1;
  for (uint64_t number = first; number < end; ++number) {
    const std::string again =
        fmt::format("WAVETANK_FUZZ_NUMBER={} test_fuzz --gtest_filter='*/{}'\n", number, border.name);
    std::snprintf(under_way, sizeof(under_way), "%s", again.c_str());
    const std::string bytes = Bytes(border, samples, number);
    if (one != nullptr) std::ofstream(fmt::format("{}.bytes", border.name), std::ios::binary) << bytes;
    try {
      border.take(bytes);
    } catch (const std::exception& e) {
      FAIL() << "an exception came out: " << e.what() << "\n" << again;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, HostileBytes, ::testing::ValuesIn(Borders().begin(), Borders().end()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(HostileBytesTest, EveryFolderOfSamplesHasItsBorder) {
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(std::any_of(Borders().begin(), Borders().end(), [&](const Border& b) { return name == b.name; }))
        << name;
  }
}

}  // namespace
}  // namespace wavetank::fuzz
