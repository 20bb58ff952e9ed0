// Field selectors in Kubernetes' own syntax. (Label selectors: core/kube/label_selector.h.)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::fakekube {

// "metadata.name=x,metadata.namespace!=y": any path of scalars in the object.
class FieldSelector {
 public:
  // InvalidArgument: a requirement without an operator.
  static absl::StatusOr<FieldSelector> Parse(std::string_view text);
  bool Matches(const kube::Object& object) const;
  bool empty() const { return requirements_.empty(); }
  // Of all requirements, with dots.
  std::vector<std::string> Paths() const;
  // The value that `path` must have, if one requirement says so.
  std::optional<std::string> Exactly(std::string_view path) const;

 private:
  struct Requirement {
    std::vector<std::string> path;
    std::string value;
    bool equal;
  };
  std::vector<Requirement> requirements_;
};

}  // namespace wavetank::fakekube
