// "PATH=VALUE" as of `istioctl install --set`, and "[NAME:]PATH=VALUE" where a file or a cluster is meant.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wavetank::scenario {

// InvalidArgument: it is of another form. What the path leads to istioctl judges.
absl::Status CheckInstallSetting(const std::string& setting);

struct InstallSetting {
  std::string name, text;  // no name: any
};
InstallSetting SplitInstallSetting(const std::string& setting);

// A file by its path or its name, with the extension or without.
bool IsCalled(const std::string& file, const std::string& name);

}  // namespace wavetank::scenario
