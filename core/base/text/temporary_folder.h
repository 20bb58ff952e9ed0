// Folders for what a command needs while it runs.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/status/statusor.h"

namespace wavetank {

// A new folder in $TMPDIR, or else in /tmp, with the purpose in its name; whoever asks for it removes it. Unavailable:
// none can be made there.
inline absl::StatusOr<std::string> MakeTemporaryFolder(std::string_view purpose) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    return absl::UnavailableError("no folder for temporary files: " + error.message() + "; set TMPDIR to one");
  }
  std::string path = (parent / ("wavetank-" + std::string(purpose) + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(path + ": " + std::strerror(errno) + "; set TMPDIR to another folder");
  }
  return path;
}

}  // namespace wavetank
