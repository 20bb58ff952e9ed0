#include "check/game_day/fork_pool.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fmt/format.h"

namespace wavetank::check {
namespace {

struct Child {
  size_t index = 0;
  pid_t pid = -1;
  int fd = -1;
};

// All of it, whatever interrupts.
void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
}

absl::StatusOr<Child> Start(size_t index, const std::vector<Child>& others,
                            const std::function<std::string(size_t)>& work) {
  int ends[2];
  if (pipe(ends) != 0) return absl::UnavailableError(fmt::format("no pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);  // or each fork would write again what is buffered
  const pid_t pid = fork();
  if (pid < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::UnavailableError(fmt::format("no process: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    close(ends[0]);
    for (const Child& other : others) close(other.fd);
    // What is thrown here ends this process: unwound into the caller's, its program would go on twice. The end mark
    // tells a whole answer from a fork that died.
    const auto alone = [&]() noexcept { WriteAll(ends[1], work(index) + '\0'); };
    alone();
    _exit(0);
  }
  close(ends[1]);
  return Child{index, pid, ends[0]};
}

// What it ended with, as waitpid says it.
int Reap(const Child& child) {
  close(child.fd);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> InForks(size_t count, int at_a_time,
                                                 const std::function<std::string(size_t)>& work,
                                                 const std::function<void(size_t)>& done,
                                                 const std::function<bool(size_t)>& more,
                                                 const std::function<std::string(size_t)>& name) {
  std::vector<std::string> answers(count);
  std::vector<Child> running;
  absl::Status status;
  size_t next = 0;
  while ((status.ok() && next < count) || !running.empty()) {
    while (status.ok() && next < count && running.size() < static_cast<size_t>(std::max(at_a_time, 1))) {
      if (more && !more(next)) {
        count = next;
        break;
      }
      absl::StatusOr<Child> child = Start(next, running, work);
      if (!child.ok()) {
        status = child.status();
        break;
      }
      ++next;
      running.push_back(*child);
    }
    if (running.empty()) break;
    std::vector<pollfd> wait;
    for (const Child& child : running) wait.push_back({child.fd, POLLIN, 0});
    if (poll(wait.data(), wait.size(), -1) < 0) continue;
    for (size_t i = wait.size(); i-- > 0;) {
      if (wait[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t got = read(running[i].fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) {
        answers[running[i].index].append(buffer, static_cast<size_t>(got));
        continue;
      }
      const size_t index = running[i].index;
      const int ended = Reap(running[i]);
      std::string& answer = answers[index];
      if (answer.empty() || answer.back() != '\0') {
        if (status.ok()) {
          status =
              absl::InternalError(fmt::format("the process that tried {} died of {}; that is a fault of wavetank",
                                              name ? name(index) : fmt::format("piece {}", index), HowItEnded(ended)));
        }
      } else {
        answer.pop_back();
      }
      if (done) done(index);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (!status.ok()) return status;
  answers.resize(count);
  return answers;
}

}  // namespace wavetank::check
