#include "library/client/process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

extern char** environ;

namespace wavetank::client {
namespace {

constexpr int kChannel = 3;

// Beside the library: PREFIX/bin of PREFIX/lib or PREFIX/lib/ARCHITECTURE.
std::string ProgramBeside() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&ProgramBeside), &info) == 0 || info.dli_fname == nullptr) return {};
  std::string folder = info.dli_fname;
  for (int up = 0; up < 3; ++up) {
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos) return {};
    folder.resize(slash);
    const std::string program = folder + "/bin/wavetank";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

std::string ProgramPath(const std::string& asked) {
  if (!asked.empty()) return asked;
  if (const char* const named = std::getenv("WAVETANK_PROGRAM"); named != nullptr && *named != '\0') return named;
  const std::string beside = ProgramBeside();
  return beside.empty() ? "wavetank" : beside;
}

struct SpawnActions {
  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  posix_spawn_file_actions_t actions;
};

struct Wire {
  int ours, theirs;
};

Result<pid_t> Spawn(const std::string& program, std::vector<std::string> arguments, const std::vector<Wire>& wires) {
  SpawnActions spawn;
  for (const Wire& wire : wires) posix_spawn_file_actions_adddup2(&spawn.actions, wire.ours, wire.theirs);
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, program.c_str(), &spawn.actions, nullptr, argv.data(), environ);
  if (failed != 0) {
    return Error{program + ": " + std::strerror(failed) +
                 "; install wavetank, or name its program in WAVETANK_PROGRAM"};
  }
  return pid;
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<std::unique_ptr<Process>> Process::Start(const std::string& program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("no socket for a world: ") + std::strerror(errno)};
  Result<pid_t> pid = Spawn(ProgramPath(program), {"session", "--fd", std::to_string(kChannel)}, {{ends[1], kChannel}});
  close(ends[1]);
  if (!pid.ok()) {
    close(ends[0]);
    return Error{pid.error()};
  }
  return std::unique_ptr<Process>(new Process(ends[0], *pid));
}

Process::~Process() {
  close(socket_);
  if (pid_ > 0) Reap(pid_);
}

bool Process::Send(const std::string& line, int beside) {
  size_t at = 0;
  if (beside >= 0) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{const_cast<char*>(line.data()), line.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &beside, sizeof beside);
    const ssize_t n = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (n <= 0) return false;
    at = static_cast<size_t>(n);
  }
  while (at < line.size()) {
    const ssize_t n = send(socket_, line.data() + at, line.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

bool Process::Receive(std::string* line) {
  size_t seen = 0;
  while (true) {
    if (const size_t end = text_.find('\n', seen); end != std::string::npos) {
      line->assign(text_, 0, end);
      text_.erase(0, end + 1);
      return true;
    }
    seen = text_.size();
    std::array<char, 65536> buffer;
    const ssize_t n = recv(socket_, buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text_.append(buffer.data(), static_cast<size_t>(n));
  }
}

Result<Value> Process::Exchange(Value::Map request, int beside) {
  std::string line;
  if (!Send(Value(std::move(request)).Print() + "\n", beside) || !Receive(&line))
    return Error{"the world's process has ended; what it said last is on standard error"};
  Value answer;
  if (!Value::Parse(line, &answer)) return Error{"the world's process answered what is no JSON"};
  if (!answer["nowNs"].IsNull()) now_ns_ = answer["nowNs"].Integer();
  if (answer["error"].IsText()) return Error{answer["error"].Text()};
  return answer;
}

Result<Value> Process::Ask(Value::Map request) { return Exchange(std::move(request), -1); }

Result<std::unique_ptr<Process>> Process::Fork() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Error{std::string("no socket for a fork: ") + std::strerror(errno)};
  // Both sides answer: the one that goes on as before here, the copy on the new socket.
  Result<Value> answer = Exchange({{"op", "fork"}}, ends[1]);
  close(ends[1]);
  std::unique_ptr<Process> copy(new Process(ends[0], -1));
  std::string line;
  if (!answer.ok()) return Error{answer.error()};
  if (!copy->Receive(&line)) return Error{"the copy of the world did not answer"};
  copy->now_ns_ = now_ns_;
  return copy;
}

Result<std::string> OutputOf(const std::string& program, const std::vector<std::string>& arguments, int* code,
                             std::string* complaint) {
  std::array<std::array<int, 2>, 2> pipes{};  // of standard output and of standard error
  std::array<std::string, 2> said;
  if (pipe2(pipes[0].data(), O_CLOEXEC) != 0) return Error{std::string("no pipe: ") + std::strerror(errno)};
  if (pipe2(pipes[1].data(), O_CLOEXEC) != 0) {
    const int failed = errno;
    for (const int end : pipes[0]) close(end);
    return Error{std::string("no pipe: ") + std::strerror(failed)};
  }
  Result<pid_t> pid =
      Spawn(ProgramPath(program), arguments, {{pipes[0][1], STDOUT_FILENO}, {pipes[1][1], STDERR_FILENO}});
  for (const auto& ends : pipes) close(ends[1]);
  std::array<pollfd, 2> open{{{pipes[0][0], POLLIN, 0}, {pipes[1][0], POLLIN, 0}}};
  std::array<char, 65536> buffer;
  while (pid.ok() && (open[0].fd >= 0 || open[1].fd >= 0)) {
    if (poll(open.data(), open.size(), -1) < 0 && errno != EINTR) break;
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      const ssize_t n = read(open[i].fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n > 0) {
        said[i].append(buffer.data(), static_cast<size_t>(n));
      } else {
        open[i].fd = -1;
      }
    }
  }
  for (const auto& ends : pipes) close(ends[0]);
  if (!pid.ok()) return Error{pid.error()};
  *code = Reap(*pid);
  const std::string name = "wavetank: ";
  const size_t at = said[1].rfind(name, 0) == 0 ? name.size() : 0;
  *complaint = said[1].substr(at, said[1].find('\n', at) - at);
  return std::move(said[0]);
}

}  // namespace wavetank::client
