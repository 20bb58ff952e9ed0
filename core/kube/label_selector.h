// A LabelSelector as it stands in objects: {matchLabels, matchExpressions}.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::kube {

class LabelSelector {
 public:
  // null and {} select everything. InvalidArgument names the path and what is wrong.
  static absl::StatusOr<LabelSelector> FromJson(const nlohmann::json& selector);

  bool Matches(const Labels& labels) const;
  bool empty() const { return requirements_.empty(); }

 private:
  enum class Operator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist };
  struct Requirement {
    std::string key;
    Operator op;
    std::vector<std::string> values;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace wavetank::kube
