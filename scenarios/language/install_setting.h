// "PATH=VALUE" as of `istioctl install --set`.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wavetank::scenario {

// InvalidArgument: it is of another form. What the path leads to istioctl judges.
absl::Status CheckInstallSetting(const std::string& setting);

}  // namespace wavetank::scenario
