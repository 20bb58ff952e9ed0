#include "serve/pods/pod_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "fakes/kube/http/message/reason_phrase.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

namespace http = fakekube::http;

constexpr size_t kMostHead = 32 << 10, kMostBody = 1 << 20;

class PageConnection final : public PodConnection, public std::enable_shared_from_this<PageConnection> {
 public:
  PageConnection(Peer peer, AskPage ask) : peer_(std::move(peer)), ask_(std::move(ask)) {}

  void OnBytes(std::string_view bytes) override {
    if (closed_) return;
    in_ += bytes;
    while (!closed_ && Next()) {
    }
  }
  void OnEnd() override {
    if (!std::exchange(closed_, true)) ask_({}, [peer = peer_](http::Response) { peer.end(); });
  }

 private:
  // Takes one whole request off what has come.
  bool Next() {
    const size_t end = in_.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (in_.size() > kMostHead) Refuse("the request's headers are too large");
      return false;
    }
    http::Request request;
    size_t length = 0;
    bool close = false;
    if (!ReadHead(std::string_view(in_).substr(0, end), request, length, close)) return false;
    if (in_.size() < end + 4 + length) return false;
    request.body = in_.substr(end + 4, length);
    in_.erase(0, end + 4 + length);
    const bool head_only = request.method == "HEAD";
    ask_(std::move(request), [peer = peer_, close, head_only](http::Response response) {
      const std::string body = response.Text();
      std::string out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", response.code,
                                    http::ReasonPhrase(response.code), response.content_type, body.size());
      for (const auto& [name, value] : response.headers) out += fmt::format("{}: {}\r\n", name, value);
      out += close ? "Connection: close\r\n\r\n" : "\r\n";
      if (!head_only) out += body;
      peer.send(std::move(out));
      if (close) peer.end();
    });
    closed_ = close;
    return !close;
  }

  bool ReadHead(std::string_view head, http::Request& request, size_t& length, bool& close) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const size_t first = line.find(' '), second = line.rfind(' ');
    if (first == line.npos || second == first || !line.substr(second + 1).starts_with("HTTP/1.")) {
      return Refuse("the request is no HTTP/1.1");
    }
    request.method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, second - first - 1);
    request.path = target.substr(0, target.find('?'));
    if (target.find('?') != target.npos) request.query = target.substr(target.find('?') + 1);
    close = line.ends_with("/1.0");
    size_t at = line.size() + 2;
    while (at < head.size()) {
      const size_t end = std::min(head.find("\r\n", at), head.size());
      const std::string_view field = head.substr(at, end - at);
      at = end + 2;
      const size_t colon = field.find(':');
      if (colon == field.npos) return Refuse("a header has no colon");
      const std::string name = absl::AsciiStrToLower(std::string(field.substr(0, colon)));
      std::string value(field.substr(colon + 1));
      absl::StripAsciiWhitespace(&value);
      if (name == "connection" && absl::AsciiStrToLower(value) == "close") close = true;
      if (name == "transfer-encoding") return Refuse("chunked bodies are not read here");
      if (name == "content-length" && (!absl::SimpleAtoi(value, &length) || length > kMostBody)) {
        return Refuse("the body is too large");
      }
    }
    return true;
  }

  bool Refuse(const char* why) {
    closed_ = true;
    peer_.send(fmt::format("HTTP/1.1 400 Bad Request\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                           std::string_view(why).size(), why));
    peer_.end();
    return false;
  }

  const Peer peer_;
  const AskPage ask_;
  std::string in_;
  bool closed_ = false;
};

class ListenerConnection final : public PodConnection {
 public:
  ListenerConnection(Peer peer, int fd) : fd_(std::make_shared<Socket>(fd)) {
    std::thread([peer = std::move(peer), socket = fd_] {
      char piece[16 << 10];
      while (true) {
        const ssize_t got = recv(socket->fd, piece, sizeof piece, 0);
        if (got <= 0) break;
        peer.send(std::string(piece, static_cast<size_t>(got)));
      }
      peer.end();
    }).detach();
  }
  ~ListenerConnection() override { shutdown(fd_->fd, SHUT_RDWR); }
  void OnBytes(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void OnEnd() override { shutdown(fd_->fd, SHUT_WR); }

 private:
  // Open as long as either half uses it.
  struct Socket {
    explicit Socket(int its_fd) : fd(its_fd) {}
    ~Socket() { close(fd); }
    const int fd;
  };
  const std::shared_ptr<Socket> fd_;
};

}  // namespace

std::shared_ptr<PodConnection> ConnectToPages(PodConnection::Peer peer, AskPage ask) {
  return std::make_shared<PageConnection>(std::move(peer), std::move(ask));
}

std::shared_ptr<PodConnection> ConnectToListener(PodConnection::Peer peer, const std::string& address) {
  const size_t colon = address.rfind(':');
  int32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) return nullptr;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  std::string host = address.substr(0, colon);
  if (host == "localhost" || host == "0.0.0.0") host = "127.0.0.1";
  if (inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) return nullptr;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    close(fd);
    return nullptr;
  }
  return std::make_shared<ListenerConnection>(std::move(peer), fd);
}

}  // namespace wavetank::serve
