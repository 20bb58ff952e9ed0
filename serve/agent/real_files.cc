#include "serve/agent/real_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "fmt/format.h"

namespace wavetank::serve {
namespace {

// Files that an agent reads are certificates, keys and tokens.
constexpr size_t kMaxFile = 16 << 20;

absl::Status FileError(std::string_view what, std::string_view path, int error) {
  std::string text = std::strerror(error);
  // Go writes the system's texts in small letters.
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  const std::string message = fmt::format("{} {}: {}", what, path, text);
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  if (error == ENOENT) return absl::NotFoundError(message);
  return absl::UnavailableError(message);
}

}  // namespace

absl::StatusOr<std::string> RealFiles::Read(std::string_view path) {
  const int fd = open(std::string(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("open", path, errno);
  std::string out;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 && out.size() <= kMaxFile) {
    out.append(buffer, static_cast<size_t>(got));
  }
  const int error = errno;
  close(fd);
  if (got < 0) return FileError("read", path, error);
  if (out.size() > kMaxFile) return absl::InvalidArgumentError(fmt::format("read {}: the file is too large", path));
  return out;
}

std::vector<std::string> RealFiles::List(std::string_view folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(std::string(folder), error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_regular_file(error)) out.push_back(at->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

absl::Status RealFiles::Write(std::string_view path, std::string_view bytes) {
  const std::string whole(path), beside = fmt::format("{}.tmp.{}", path, getpid());
  const mode_t mode = std::getenv("KUBERNETES_SERVICE_HOST") != nullptr ? 0644 : 0600;
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return FileError("open", path, errno);
  size_t done = 0;
  int error = 0;
  while (done < bytes.size() && error == 0) {
    const ssize_t put = write(fd, bytes.data() + done, bytes.size() - done);
    if (put > 0) {
      done += static_cast<size_t>(put);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && fchmod(fd, mode) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(beside.c_str(), whole.c_str()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  unlink(beside.c_str());
  return FileError("write", path, error);
}

}  // namespace wavetank::serve
