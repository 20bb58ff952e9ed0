// istioctl, which users have, run for what it alone knows: Istio's charts.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wavetank::scenario {

// Where it is; NotFound: nowhere (installer_files.h says where it is looked for).
absl::StatusOr<std::string> FindIstioctl();

struct Rendered {
  std::string manifests;
  std::vector<std::string> warnings;  // what it said beside them, a line each
};
// What `istioctl manifest generate -f` prints of an IstioOperator, each of `set` as an option --set after it.
// InvalidArgument: istioctl refused it, in its words. One that this thread has asked for is not asked for again: a
// `serve` that is to see other charts starts anew.
absl::StatusOr<Rendered> GenerateManifests(const std::string& istioctl, const std::string& istio_operator,
                                           const std::vector<std::string>& set = {});
// What `istioctl manifest generate OPTIONS` prints, `input` at its standard input. As above.
absl::StatusOr<Rendered> GenerateManifestsBy(const std::string& istioctl, const std::vector<std::string>& options,
                                             const std::string& input = {});

}  // namespace wavetank::scenario
