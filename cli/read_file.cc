#include "cli/read_file.h"

#include <filesystem>
#include <fstream>

#include "core/base/bounds.h"
#include "core/base/text/read_up_to.h"
#include "fmt/format.h"

namespace wavetank::cli {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(fmt::format("{}: is a folder; name a file", path));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(fmt::format("{}: cannot be read; check the path and its permissions", path));
  std::string text = ReadUpTo(in, bounds::kDumpBytes + 1);
  if (text.size() <= bounds::kDumpBytes) return text;
  return absl::ResourceExhaustedError(fmt::format("{}: larger than 1 GiB; name a smaller file", path));
}

}  // namespace wavetank::cli
