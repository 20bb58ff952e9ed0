// A bare client of an HTTP server, for tests and measurements: what it sends is exactly what it was given.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace wavetank::fakekube::http {

class Peer {
 public:
  explicit Peer(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Peer() { ::close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool connected() const { return connected_; }
  bool Send(const std::string& bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // Until `until` was read, the peer closed, or nothing came for so long: what must come may take its time on a machine
  // that has much to do.
  std::string Read(const std::string& until, int milliseconds = 60000) {
    return ReadWhile([&] { return until.empty() || read_.find(until) == std::string::npos; }, milliseconds);
  }
  // Until a line with `mark` was read to its end, as a watch sends an event: TCP may cut it anywhere.
  std::string ReadThroughLineWith(const std::string& mark, int milliseconds = 60000) {
    return ReadWhile(
        [&] {
          const size_t at = read_.find(mark);
          return at == std::string::npos || read_.find('\n', at) == std::string::npos;
        },
        milliseconds);
  }
  bool closed() const { return closed_; }
  int fd() const { return fd_; }

 private:
  std::string ReadWhile(const std::function<bool()>& more, int milliseconds) {
    while (more()) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, milliseconds) != 1) break;
      char buffer[65536];
      const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) {
        closed_ = true;
        break;
      }
      read_.append(buffer, static_cast<size_t>(got));
    }
    return std::exchange(read_, "");
  }

  int fd_;
  bool connected_ = false, closed_ = false;
  std::string read_;
};

std::string Get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"; }

}  // namespace wavetank::fakekube::http
