// What istiod 1.18.2's own webhook said of objects, held by ours: tests/oracles/validation/README.md. More of them, of
// the same form: WAVETANK_VALIDATION_CASES names a file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/validation/istio_object.h"

namespace wavetank::validation {
namespace {

// The lines of a text in an order of their own: Go walks its maps in no order. Go's protobuf prints one or two spaces
// between fields.
std::vector<std::string> Sorted(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(absl::StrReplaceAll(text, {{"  ", " "}}), '\n');
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::vector<std::string> Sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(RecordedValidation, EveryObjectIsJudgedInTheWordsOfIstiod) {
  const char* other = std::getenv("WAVETANK_VALIDATION_CASES");
  std::ifstream file(other != nullptr ? other : WAVETANK_SOURCE_DIR "/tests/oracles/validation/cases.jsonl");
  size_t cases = 0, different = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json one = ParseJson(line);
    ASSERT_TRUE(one.is_object()) << line;
    ++cases;
    const Verdict verdict = Judge(one["object"]);
    const std::vector<std::string> warnings = Sorted(one["warnings"].get<std::vector<std::string>>());
    const std::string denied = one["denied"].get<std::string>();
    if (Sorted(verdict.denied) == Sorted(denied) && Sorted(verdict.warnings) == warnings) continue;
    if (++different > 20) continue;
    ADD_FAILURE() << JsonText(one["object"]) << "\nistiod: " << denied << JsonText(one["warnings"])
                  << "\nours:   " << verdict.denied << JsonText(nlohmann::json(verdict.warnings));
  }
  EXPECT_GT(cases, 100u);
  EXPECT_EQ(different, 0u) << "of " << cases;
}

}  // namespace
}  // namespace wavetank::validation
