// The lines of a session, and forks of it.
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "library/session/session.h"

namespace wavetank::session {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLongestLine = size_t{256} << 20;

class Channel {
 public:
  Channel(int in, int out) : in_(in), out_(out) {}

  // False: there is no further line.
  bool ReadLine(std::string* line) {
    while (true) {
      if (const size_t end = text_.find('\n', seen_); end != std::string::npos) {
        line->assign(text_, 0, end);
        text_.erase(0, end + 1);
        seen_ = 0;
        return true;
      }
      seen_ = text_.size();
      if (text_.size() > kLongestLine || !ReadMore()) return false;
    }
  }

  bool Write(std::string line) {
    line += '\n';
    for (size_t at = 0; at < line.size();) {
      const ssize_t n = write(out_, line.data() + at, line.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }

  // That came beside the lines so far, in order; -1: none is left.
  int TakeSocket() {
    if (sockets_.empty()) return -1;
    const int out = sockets_.front();
    sockets_.pop_front();
    return out;
  }

  // From now on another socket is spoken on.
  void MoveTo(int socket) {
    close(in_);
    if (out_ != in_) close(out_);
    in_ = out_ = socket;
    text_.clear();
    seen_ = 0;
    for (const int other : sockets_) close(other);
    sockets_.clear();
  }

 private:
  bool ReadMore() {
    char buffer[65536];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec part{buffer, sizeof buffer};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = -1;
    do {
      n = plain_ ? read(in_, buffer, sizeof buffer) : recvmsg(in_, &message, MSG_CMSG_CLOEXEC);
      if (n < 0 && errno == ENOTSOCK && !plain_) {
        plain_ = true;
        errno = EINTR;
      }
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    if (!plain_) {
      for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int socket = -1;
        std::memcpy(&socket, CMSG_DATA(c), sizeof socket);
        sockets_.push_back(socket);
      }
    }
    text_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  int in_, out_;
  bool plain_ = false;  // a pipe or a file
  std::string text_;
  size_t seen_ = 0;  // of it, without a line's end
  std::deque<int> sockets_;
};

// In the copy: true.
absl::StatusOr<bool> Fork(Channel& channel) {
  const int socket = channel.TakeSocket();
  if (socket < 0) return absl::InvalidArgumentError("a fork needs a socket of its own beside the request");
  const pid_t pid = fork();
  if (pid == 0) {
    channel.MoveTo(socket);
    return true;
  }
  close(socket);
  if (pid < 0) return absl::UnavailableError(std::string("no process for a fork: ") + std::strerror(errno));
  return false;
}

}  // namespace

int Serve(int in, int out, ConfigPrinter print) {
  signal(SIGCHLD, SIG_IGN);  // forks end when their callers do, and nobody asks how
  signal(SIGPIPE, SIG_IGN);
  Session session(std::move(print));
  Channel channel(in, out);
  std::string line;
  while (channel.ReadLine(&line)) {
    const nlohmann::json request = ParseJson(line);
    ordered_json answer;
    absl::Status status;
    if (!request.is_object()) {
      status = absl::InvalidArgumentError("a request is a JSON object in one line of UTF-8");
    } else if (Text(request, "op") == "fork") {
      const absl::StatusOr<bool> copy = Fork(channel);
      status = copy.status();
      answer = ordered_json::object();
    } else {
      absl::StatusOr<ordered_json> reply = session.Answer(request);
      status = reply.status();
      if (reply.ok()) answer = *std::move(reply);
    }
    if (!status.ok()) answer = {{"error", std::string(Message(status))}};
    if (const int64_t now = session.NowNs(); now >= 0) answer["nowNs"] = now;
    if (!channel.Write(JsonText(answer))) return 1;
  }
  return 0;
}

}  // namespace wavetank::session
