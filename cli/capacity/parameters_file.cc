#include "cli/capacity/parameters_file.h"

#include <fmt/format.h>

#include "cli/read_file.h"

namespace wavetank::cli {

absl::StatusOr<capacity::Parameters> ReadParameters(const std::string& path) {
  if (path.empty()) return capacity::Parameters::OfIstiod();
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  return capacity::Parameters::Parse(*text, path);
}

}  // namespace wavetank::cli
