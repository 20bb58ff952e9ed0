#include "oracles/envoy/peers/process.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace wavetank::envoydiff {

// Only async-signal-safe calls: it also runs between fork and exit of a program with threads.
bool EnterOwnNetwork() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ifreq request;
  std::memset(&request, 0, sizeof request);
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return up;
}

bool BindWhenFree(int fd, const sockaddr* at, socklen_t size) {
  for (int tries = 0; bind(fd, at, size) != 0; ++tries) {
    if (errno != EADDRINUSE || tries == 200) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool RedirectFrom(const std::string& address, int port) {
  const std::string to = std::to_string(port);
  // -w: the lock is one for all networks of a machine.
  const char* const argv[] = {"iptables", "-w",         "10",       "-t",   "nat",           "-A",
                              "OUTPUT",   "-p",         "tcp",      "-s",   address.c_str(), "-j",
                              "REDIRECT", "--to-ports", to.c_str(), nullptr};
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    for (const char* path : {"/usr/sbin/iptables", "/sbin/iptables"}) execv(path, const_cast<char* const*>(argv));
    _exit(127);
  }
  close(nowhere);
  int status = 1;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool Process::Start(const std::vector<std::string>& arguments, const std::string& log) {
  Kill();
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // not left behind, whatever becomes of this process
    if (getppid() != parent) _exit(1);
    dup2(fd, 1);
    dup2(fd, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(fd);
  return pid_ > 0;
}

bool Process::running() {
  if (pid_ <= 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;  // reaped: its number may be another's by now
  return false;
}

void Process::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool NetworkNamespaceAllowed() {
  static const bool allowed = [] {
    const pid_t pid = fork();
    if (pid == 0) _exit(EnterOwnNetwork() ? 0 : 1);
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }();
  return allowed;
}

}  // namespace wavetank::envoydiff
