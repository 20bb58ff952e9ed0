// Label and field selectors in Kubernetes' own syntax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::fakekube {

class LabelSelector {
 public:
  LabelSelector() = default;  // selects everything

  // "app=x,version in (v1, v2),!canary,tier!=back": InvalidArgument names the part that cannot be read.
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);
  // {matchLabels, matchExpressions} of a Deployment, or a plain map of a Service.
  static absl::StatusOr<LabelSelector> FromJson(const nlohmann::json& selector);
  static LabelSelector FromLabels(const kube::Labels& labels);

  bool Matches(const kube::Labels& labels) const;
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

// "metadata.name=x,metadata.namespace!=y": any path of scalars in the object.
class FieldSelector {
 public:
  static absl::StatusOr<FieldSelector> Parse(std::string_view text);
  bool Matches(const kube::Object& object) const;
  bool empty() const { return requirements_.empty(); }

 private:
  struct Requirement {
    std::vector<std::string> path;
    std::string value;
    bool equal;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace wavetank::fakekube
