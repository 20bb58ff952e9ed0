// Cases that agreed with a real Envoy only when they ran again: a note in the census (tools/census), and a failure
// where there are many, since a difference that is not always there is a difference.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "oracles/envoy/envoydiff.h"

namespace wavetank::envoydiff {

class Retried {
 public:
  void Add(const CaseResult& result) {
    if (result.tries == 1) return;
    ++count_;
    names_ += fmt::format("{}{} (try {}, at first: {})", names_.empty() ? "" : "; ", result.name, result.tries,
                          result.at_first.empty() ? "" : result.at_first.front());
  }
  // Once, after all `cases`.
  void Report(size_t cases) const {
    if (count_ == 0) return;
    const std::string note = fmt::format("{} of {} cases ran again: {}", count_, cases, names_);
    std::printf("%s\n", note.c_str());
    ::testing::Test::RecordProperty("note", note);
    EXPECT_LE(count_, 2 + cases / 10) << "more than a busy machine explains";
  }

 private:
  size_t count_ = 0;
  std::string names_;
};

}  // namespace wavetank::envoydiff
