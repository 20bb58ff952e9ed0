#include "scenarios/runner/access_log_file.h"

#include <filesystem>
#include <system_error>

#include "core/kube/credentials/sealing.h"
#include "core/kube/object.h"
#include "fmt/format.h"
#include "sim/world.h"

namespace wavetank::scenario {

absl::StatusOr<std::unique_ptr<AccessLogFile>> AccessLogFile::Create(const std::string& path, sim::World& world) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return absl::AlreadyExistsError(fmt::format("{}: there, and not a file: name another for the access log", path));
  }
  std::unique_ptr<AccessLogFile> file(new AccessLogFile(path, world));
  if (!file->out_) {
    return absl::PermissionDeniedError(
        fmt::format("{}: cannot be written: name a file in a folder that exists and may be written to", path));
  }
  return file;
}

AccessLogFile::AccessLogFile(std::string path, sim::World& world)
    : path_(std::move(path)), partial_(path_ + ".partial"), world_(world) {
  out_.open(partial_, std::ios::binary | std::ios::trunc);
  world_.CollectAccessLogs([this](const sim::PodProcess& pod, const envoysim::AccessLogLine& line) {
    Add(fmt::format("{}/{}/{}", pod.site().name, pod.pod()->meta.ns, pod.pod()->meta.name), line.at, line.text);
  });
}

AccessLogFile::~AccessLogFile() {
  if (finished_) return;
  world_.CollectAccessLogs(nullptr);
  out_.close();
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

void AccessLogFile::Add(std::string_view pod, Time at, std::string_view text) {
  // Nothing that comes later is older than now.
  WriteUntil(world_.Now());
  std::string line = fmt::format("{} {}", pod, kube::SealedText(text));
  if (line.back() != '\n') line.push_back('\n');
  ahead_.emplace(std::pair(at, lines_++), std::move(line));
}

void AccessLogFile::WriteUntil(Time now) {
  while (!ahead_.empty() && ahead_.begin()->first.first <= now) {
    out_ << ahead_.begin()->second;
    ahead_.erase(ahead_.begin());
  }
}

absl::Status AccessLogFile::Finish() {
  WriteUntil(Time::max());
  out_.close();
  if (!out_) return absl::ResourceExhaustedError(fmt::format("{}: cannot be written: free space", path_));
  std::error_code error;
  std::filesystem::rename(partial_, path_, error);
  if (error) {
    return absl::PermissionDeniedError(fmt::format("{}: cannot be given its name: {}", path_, error.message()));
  }
  world_.CollectAccessLogs(nullptr);
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace wavetank::scenario
