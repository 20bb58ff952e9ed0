// Label selectors: as they stand in objects ({matchLabels, matchExpressions}), and in the text of requests
// ("app=x,version in (v1, v2),!canary,size>4").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::kube {

class LabelSelector {
 public:
  LabelSelector() = default;  // selects everything

  // null and {} select everything. InvalidArgument names the path and what is wrong.
  static absl::StatusOr<LabelSelector> FromJson(const nlohmann::json& selector);
  // The expressions of a node selector's term, which also compare numbers ("Gt", "Lt"); null selects everything.
  // InvalidArgument as of FromJson().
  static absl::StatusOr<LabelSelector> FromNodeExpressions(const nlohmann::json& expressions);
  // kubectl's and the API's syntax; empty text selects everything. InvalidArgument names the part that cannot be read.
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);
  // All of these, as a Service selects.
  static LabelSelector FromLabels(const Labels& labels);

  bool Matches(const Labels& labels) const;
  bool empty() const { return requirements_.empty(); }

 private:
  enum class Operator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGreaterThan, kLessThan };
  struct Requirement {
    std::string key;
    Operator op;
    std::vector<std::string> values;  // one number for those that compare
  };
  // metav1.LabelSelectorRequirement knows no "Gt" and "Lt", core/v1.NodeSelectorRequirement does.
  absl::Status Add(const nlohmann::json& expressions, bool may_compare);
  static bool Meets(const Requirement& requirement, const Labels& labels);

  std::vector<Requirement> requirements_;
};

}  // namespace wavetank::kube
