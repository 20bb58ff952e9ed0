#include "scenarios/language/install_setting.h"

#include "fmt/format.h"

namespace wavetank::scenario {

absl::Status CheckInstallSetting(const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals != std::string::npos && equals > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not PATH=VALUE, as values.global.network=network1 or profile=minimal", setting));
}

}  // namespace wavetank::scenario
