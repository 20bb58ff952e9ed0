#include "scenarios/mesh/istioctl.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/containers/memo.h"
#include "core/base/json_text.h"
#include "core/base/text/temporary_folder.h"
#include "fmt/format.h"

extern char** environ;

namespace wavetank::scenario {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool Executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A folder that goes with this object.
struct Scratch {
  Scratch() {
    if (const absl::StatusOr<std::string> made = MakeTemporaryFolder("istioctl"); made.ok()) path = *made;
  }
  ~Scratch() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path path;  // empty: it could not be made
};

// Exit code of the program, which reads one file and writes two; nullopt: it could not be run, or took too long.
std::optional<int> RunToFiles(const std::vector<std::string>& arguments, const fs::path& in, const fs::path& out,
                              const fs::path& err) {
  constexpr auto kPatience = std::chrono::seconds(120);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return std::nullopt;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

absl::StatusOr<std::string> FindIstioctl() {
  if (const std::string named = Environment("ISTIOCTL"); !named.empty()) {
    if (Executable(named)) return named;
    return absl::NotFoundError(fmt::format("$ISTIOCTL is {}, which cannot be run", named));
  }
  if (const std::string home = Environment("ISTIO_HOME"); !home.empty()) {
    if (const fs::path path = fs::path(home) / "bin" / "istioctl"; Executable(path)) return path.string();
  }
  std::istringstream folders(Environment("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (const fs::path path = fs::path(folder) / "istioctl"; !folder.empty() && Executable(path)) return path.string();
  }
  return absl::NotFoundError("istioctl is neither $ISTIOCTL, nor in $ISTIO_HOME/bin, nor on the PATH");
}

namespace {

// The folder of charts and profiles that istioctl is to render; empty: those within it. A folder may be named by its
// charts alone.
std::string ChartsFolder() {
  std::error_code error;
  if (fs::path charts = Environment("ISTIO_CHARTS"); !charts.empty()) {
    if (!charts.has_filename()) charts = charts.parent_path();
    const bool inner = charts.filename() == "charts" && fs::is_directory(charts.parent_path() / "profiles", error);
    return inner ? charts.parent_path().string() : charts.string();
  }
  const std::string home = Environment("ISTIO_HOME");
  const fs::path release = fs::path(home) / "manifests";
  const bool there = !home.empty() && fs::is_directory(release / "charts", error);
  return there ? release.string() : "";
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (!line.empty()) out.push_back(std::move(line));
  }
  return out;
}

}  // namespace

absl::StatusOr<Rendered> GenerateManifestsBy(const std::string& istioctl, const std::vector<std::string>& options,
                                             const std::string& input) {
  const Scratch scratch;
  if (scratch.path.empty()) return absl::UnavailableError("no folder for istioctl's output could be made");
  const fs::path in = scratch.path / "in", out = scratch.path / "out", err = scratch.path / "err";
  std::ofstream(in) << input;
  std::vector<std::string> arguments{istioctl, "manifest", "generate"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  if (const std::string charts = ChartsFolder(); !charts.empty()) {
    arguments.insert(arguments.end(), {"--manifests", charts});
  }
  const std::optional<int> code = RunToFiles(arguments, in, out, err);
  if (!code) return absl::UnavailableError(fmt::format("{} could not be run, or took too long", istioctl));
  if (*code != 0) {
    std::string why = Contents(err);
    while (!why.empty() && why.back() == '\n') why.pop_back();
    return absl::InvalidArgumentError(fmt::format("istioctl manifest generate: {}", why));
  }
  return Rendered{Contents(out), Lines(Contents(err))};
}

absl::StatusOr<Rendered> GenerateManifests(const std::string& istioctl, const std::string& istio_operator,
                                           const std::vector<std::string>& set) {
  // A command asks for the same installation several times: for its objects, their places, the ranges of addresses.
  thread_local Memo<Rendered> known(64);  // each some 200 KB, and `serve` reads files as often as they change
  std::error_code error;
  const auto made = fs::last_write_time(istioctl, error).time_since_epoch().count();
  std::string asked = JsonText(nlohmann::json::array({istioctl, made, ChartsFolder(), set, istio_operator}));
  if (const Rendered* const rendered = known.Find(asked); rendered != nullptr) return *rendered;
  const Scratch scratch;
  if (scratch.path.empty()) return absl::UnavailableError("no folder for istioctl's input could be made");
  const fs::path in = scratch.path / "operator.yaml";
  std::ofstream(in) << istio_operator;
  std::vector<std::string> options{"-f", in.string()};
  for (const std::string& setting : set) options.insert(options.end(), {"--set", setting});
  absl::StatusOr<Rendered> out = GenerateManifestsBy(istioctl, options);
  if (out.ok()) known.Keep(std::move(asked), *out);
  return out;
}

}  // namespace wavetank::scenario
