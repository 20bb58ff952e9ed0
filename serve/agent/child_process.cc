#include "serve/agent/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "fmt/format.h"

namespace wavetank::serve {

namespace {

constexpr const char* kResolvConf = "/etc/resolv.conf";

}  // namespace

absl::Status CheckProgram(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(fmt::format("{}: there is no such file", path));
  }
  if (access(path.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError(fmt::format("{}: is not executable ({})", path, std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status ChildProcess::Start(const Options& options) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  // Everything that exec needs is made here: between fork and exec of a program with threads nothing may be allocated.
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
  };
  const std::vector<char*> argv = pointers(options.arguments), envp = pointers(environment);
  const int log = options.log.empty() ? -1 : open(options.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (log < 0 && !options.log.empty()) {
    return absl::UnavailableError(fmt::format("{}: cannot be written: {}", options.log, std::strerror(errno)));
  }
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) {
    if (log >= 0) close(log);
    return absl::UnavailableError(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // A group of its own: Ctrl-C is for who started it, who then ends it in order.
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    if (log >= 0) {
      dup2(log, 1);
      dup2(log, 2);
    }
    int why = 0;
    if (!options.resolv_conf.empty() &&
        (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
         mount(options.resolv_conf.c_str(), kResolvConf, nullptr, MS_BIND, nullptr) != 0)) {
      why = -errno;
    }
    if (why == 0 && chdir(options.folder.c_str()) == 0) execve(argv[0], argv.data(), envp.data());
    if (why == 0) why = errno;
    [[maybe_unused]] const ssize_t told = write(failure[1], &why, sizeof why);
    _exit(127);
  }
  if (log >= 0) close(log);
  close(failure[1]);
  int why = pid_ < 0 ? errno : 0;
  // Ends with the exec.
  if (pid_ > 0 && read(failure[0], &why, sizeof why) != sizeof why) why = 0;
  close(failure[0]);
  if (why == 0) return absl::OkStatus();
  Stop(Duration::zero());
  if (why < 0) {
    return absl::PermissionDeniedError(fmt::format("{}: {} cannot be shown to it as {}: {}; that takes root",
                                                   options.arguments[0], options.resolv_conf, kResolvConf,
                                                   std::strerror(-why)));
  }
  return absl::InvalidArgumentError(fmt::format("{}: cannot be run: {}", options.arguments[0], std::strerror(why)));
}

bool ChildProcess::running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == 0) return true;
  end_ = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("exit code {}", WEXITSTATUS(status));
  pid_ = -1;  // reaped: its number may be another's by now
  return false;
}

void ChildProcess::Stop(Duration patience) {
  if (!running()) return;
  if (patience > Duration::zero()) kill(pid_, SIGTERM);
  for (Duration waited{}; waited < patience && running(); waited += 20ms) std::this_thread::sleep_for(20ms);
  if (!running()) return;
  kill(pid_, SIGKILL);
  while (running()) std::this_thread::sleep_for(5ms);
}

}  // namespace wavetank::serve
