// The recorded outputs of a case (docs/golden-cases.md, "expect/").
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::golden {

// One recorded file: "gateways.json" or "<proxy>/cds.json".
struct ExpectedFile {
  std::string proxy;  // empty: of istiod itself
  std::string kind;   // "cds", "eds", "lds", "rds", "ecds", "gateways", "services", "shards"
  std::string path;   // where it is to be read: of this step, or of the nearest earlier one that has it
};

// Files of one step, in order of their names. A file that an earlier step recorded holds until another takes its place.
class Expectations {
 public:
  // NotFound if there is no expect/ or no step of that number.
  static absl::StatusOr<Expectations> Load(const std::string& case_directory, size_t steps);
  // 0 is the initial state.
  const std::vector<ExpectedFile>& ForStep(size_t step) const { return steps_[step]; }

 private:
  std::vector<std::vector<ExpectedFile>> steps_;
};

}  // namespace wavetank::golden
