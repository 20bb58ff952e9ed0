#include "cli/read_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "fmt/format.h"

namespace wavetank::cli {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(fmt::format("{}: is a folder; name a file", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("{}: cannot be read; check the path and its permissions", path));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace wavetank::cli
