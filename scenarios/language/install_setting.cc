#include "scenarios/language/install_setting.h"

#include <filesystem>

#include "fmt/format.h"

namespace wavetank::scenario {

absl::Status CheckInstallSetting(const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals != std::string::npos && equals > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not PATH=VALUE, as values.global.network=network1 or profile=minimal", setting));
}

InstallSetting SplitInstallSetting(const std::string& setting) {
  const size_t colon = setting.find(':');
  if (colon >= setting.find('=')) return {"", setting};
  return {setting.substr(0, colon), setting.substr(colon + 1)};
}

bool IsCalled(const std::string& file, const std::string& name) {
  const std::filesystem::path path(file);
  return file == name || path.filename() == name || path.stem() == name;
}

}  // namespace wavetank::scenario
