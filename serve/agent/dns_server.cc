#include "serve/agent/dns_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/agent/dns_message.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::serve {
namespace {

constexpr int kUpstreamPatience = 5000;  // ms (istiod: pkg/dns/client/proxy.go)
constexpr int kTcpPatience = 2000;       // ms, for a client to say its question
constexpr size_t kMaxMessage = 65535;

sockaddr_in AddressOf(uint32_t host_order, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(host_order);
  return out;
}

bool WaitFor(int fd, short events, int ms) {
  pollfd wait{fd, events, 0};
  return poll(&wait, 1, ms) == 1;
}

bool ReadAll(int fd, char* to, size_t size) {
  while (size > 0) {
    if (!WaitFor(fd, POLLIN, kTcpPatience)) return false;
    const ssize_t got = recv(fd, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

class DnsServerImpl final : public DnsServer {
 public:
  explicit DnsServerImpl(Options options) : options_(std::move(options)), random_(1, "dns") {}
  ~DnsServerImpl() override {
    if (worker_.joinable()) {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t told = write(wake_, &one, sizeof one);
      worker_.join();
    }
    for (const int fd : {udp_, tcp_, wake_}) {
      if (fd >= 0) close(fd);
    }
  }

  absl::Status Start() {
    const size_t colon = options_.address.rfind(':');
    int32_t port = 0;
    if (colon == std::string::npos || !absl::SimpleAtoi(options_.address.substr(colon + 1), &port) || port < 0 ||
        port > 65535) {
      return absl::InvalidArgumentError("dns address must be a valid host:port");
    }
    std::string host = options_.address.substr(0, colon);
    if (host == "localhost") host = "127.0.0.1";
    in_addr parsed{};
    if (inet_pton(AF_INET, host.c_str(), &parsed) != 1) {
      return absl::InvalidArgumentError("dns address must be a valid host:port");
    }
    sockaddr_in at = AddressOf(ntohl(parsed.s_addr), static_cast<uint16_t>(port));
    udp_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    tcp_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wake_ = eventfd(0, EFD_CLOEXEC);
    const int yes = 1;
    setsockopt(tcp_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const auto failed = [&](const char* protocol) {
      return absl::UnavailableError(
          fmt::format("Failed to listen on {} port {}: {}", protocol, options_.address, std::strerror(errno)));
    };
    if (bind(udp_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return failed("udp");
    socklen_t size = sizeof at;
    if (getsockname(udp_, reinterpret_cast<sockaddr*>(&at), &size) != 0) return failed("udp");
    if (bind(tcp_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(tcp_, 16) != 0) return failed("tcp");
    port_ = ntohs(at.sin_port);
    for (const char* protocol : {"udp", "tcp"}) {
      Say(options_.log, agent::Level::kInfo, "dns",
          fmt::format("Starting local {} DNS server on {}", protocol, options_.address));
    }
    worker_ = std::thread([this] { Work(); });
    return absl::OkStatus();
  }
  uint16_t port() const override { return port_; }

 private:
  void Work() {
    std::string buffer(kMaxMessage, '\0');
    while (true) {
      pollfd wait[3] = {{wake_, POLLIN, 0}, {udp_, POLLIN, 0}, {tcp_, POLLIN, 0}};
      if (poll(wait, 3, -1) < 0 && errno != EINTR) return;
      if (wait[0].revents != 0) return;
      if (wait[1].revents != 0) {
        sockaddr_in from{};
        socklen_t size = sizeof from;
        const ssize_t got = recvfrom(udp_, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
        if (got <= 0) continue;
        const std::string answer = Answer(std::string_view(buffer).substr(0, static_cast<size_t>(got)), false);
        if (!answer.empty()) sendto(udp_, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
      }
      if (wait[2].revents != 0) {
        const int fd = accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) continue;
        unsigned char length[2];
        if (ReadAll(fd, reinterpret_cast<char*>(length), 2)) {
          const size_t size = static_cast<size_t>(length[0]) << 8 | length[1];
          if (ReadAll(fd, buffer.data(), size)) {
            const std::string answer = Answer(std::string_view(buffer).substr(0, size), true);
            const char head[2] = {static_cast<char>(answer.size() >> 8), static_cast<char>(answer.size() & 0xff)};
            const std::string whole = std::string(head, 2) + answer;
            send(fd, whole.data(), whole.size(), MSG_NOSIGNAL);
          }
        }
        close(fd);
      }
    }
  }

  // Empty: no answer at all, to what is no question.
  std::string Answer(std::string_view message, bool tcp) {
    const absl::StatusOr<agent::DnsQuery> query = agent::ParseQuery(message);
    if (!query.ok()) return "";
    const size_t limit = tcp ? kMaxMessage : query->udp_size;
    if (!query->has_question) return agent::MakeAnswer(*query, {}, agent::DnsRcode::kServFail, limit);
    agent::DnsDecision decision = options_.lookup(query->name, query->type);
    switch (decision.kind) {
      case agent::DnsDecision::Kind::kAnswer:
        agent::DnsTable::Shuffle(decision.records, random_);
        return agent::MakeAnswer(*query, decision.records, agent::DnsRcode::kNoError, limit);
      case agent::DnsDecision::Kind::kServFail:
        return agent::MakeAnswer(*query, {}, agent::DnsRcode::kServFail, limit);
      case agent::DnsDecision::Kind::kUpstream:
        break;
    }
    for (const std::string& server : options_.name_servers) {
      if (std::string answer = Ask(server, message); !answer.empty()) return answer;
      Say(options_.log, agent::Level::kInfo, "dns", fmt::format("upstream failure: {} does not answer", server));
    }
    return agent::MakeAnswer(*query, {}, agent::DnsRcode::kServFail, limit);
  }

  std::string Ask(const std::string& server, std::string_view message) const {
    in_addr parsed{};
    if (inet_pton(AF_INET, server.c_str(), &parsed) != 1) return "";
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return "";
    const sockaddr_in to = AddressOf(ntohl(parsed.s_addr), options_.upstream_port);
    std::string out(kMaxMessage, '\0');
    ssize_t got = 0;
    // Connected, the socket takes answers of this server alone; the id must be the question's.
    if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
        send(fd, message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size()) &&
        WaitFor(fd, POLLIN, kUpstreamPatience)) {
      got = recv(fd, out.data(), out.size(), 0);
    }
    close(fd);
    if (got < 12 || std::string_view(out).substr(0, 2) != message.substr(0, 2)) return "";
    out.resize(static_cast<size_t>(got));
    return out;
  }

  const Options options_;
  RandomStream random_;
  int udp_ = -1, tcp_ = -1, wake_ = -1;
  uint16_t port_ = 0;
  std::thread worker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DnsServer>> DnsServer::Listen(Options options) {
  auto out = std::make_unique<DnsServerImpl>(std::move(options));
  if (absl::Status status = out->Start(); !status.ok()) return status;
  return out;
}

}  // namespace wavetank::serve
