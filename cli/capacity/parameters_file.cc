#include "cli/capacity/parameters_file.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace wavetank::cli {

absl::StatusOr<capacity::Parameters> ReadParameters(const std::string& path) {
  if (path.empty()) return capacity::Parameters::OfIstiod();
  std::ifstream in(path);
  if (!in)
    return absl::NotFoundError(fmt::format("{}: cannot be read; `wavetank calibrate` writes such a table", path));
  std::ostringstream text;
  text << in.rdbuf();
  return capacity::Parameters::Parse(text.str(), path);
}

}  // namespace wavetank::cli
