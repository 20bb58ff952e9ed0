#include "oracles/envoy/peers/name_server.h"
#include "oracles/envoy/peers/process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace wavetank::envoydiff {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeader = 12;
constexpr int kTypeA = 1;

void Put16(std::string* out, unsigned value) {
  out->push_back(static_cast<char>(value >> 8));
  out->push_back(static_cast<char>(value & 0xff));
}

struct Question {
  std::string name;  // lower case, without a last dot
  size_t end = 0;    // in the query
  int type = 0;
};

std::optional<Question> Read(std::string_view query) {
  Question q;
  size_t at = kHeader;
  while (at < query.size() && query[at] != 0) {
    const size_t length = static_cast<unsigned char>(query[at]);
    if (length > 63 || at + 1 + length >= query.size()) return std::nullopt;
    if (!q.name.empty()) q.name += '.';
    q.name += query.substr(at + 1, length);
    at += 1 + length;
  }
  if (at + 5 > query.size()) return std::nullopt;
  std::transform(q.name.begin(), q.name.end(), q.name.begin(), [](unsigned char c) { return std::tolower(c); });
  q.type = static_cast<unsigned char>(query[at + 1]) << 8 | static_cast<unsigned char>(query[at + 2]);
  q.end = at + 5;
  return q;
}

std::string Reply(std::string_view query, const Question& q, const NameAnswer& answer) {
  std::vector<in_addr> addresses;
  for (const std::string& text : answer.addresses) {
    in_addr ip;
    if (q.type == kTypeA && inet_pton(AF_INET, text.c_str(), &ip) == 1) addresses.push_back(ip);
  }
  unsigned code = 0;
  if (answer.kind == NameAnswer::Kind::kUnknown) code = 3;
  if (answer.kind == NameAnswer::Kind::kFailure) code = 2;
  std::string out(query.substr(0, 2));
  Put16(&out, 0x8180 | code);
  Put16(&out, 1);
  Put16(&out, static_cast<unsigned>(addresses.size()));
  Put16(&out, 0);
  Put16(&out, 0);
  out += query.substr(kHeader, q.end - kHeader);
  for (const in_addr& ip : addresses) {
    Put16(&out, 0xc000 | kHeader);  // the question's name
    Put16(&out, kTypeA);
    Put16(&out, 1);
    Put16(&out, static_cast<unsigned>(answer.ttl_seconds) >> 16);
    Put16(&out, static_cast<unsigned>(answer.ttl_seconds) & 0xffff);
    Put16(&out, sizeof(ip));
    out.append(reinterpret_cast<const char*>(&ip), sizeof(ip));
  }
  return out;
}

class UdpServer final : public NameServer {
 public:
  UdpServer(int fd, Names names) : fd_(fd), names_(std::move(names)), thread_([this] { Serve(); }) {}
  ~UdpServer() override {
    running_ = false;
    thread_.join();
    close(fd_);
  }
  void Change(const Names& names) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [name, answer] : names) names_[name] = answer;
  }

 private:
  struct Due {
    Clock::time_point when;
    sockaddr_in to;
    std::string bytes;
  };

  void Serve() {
    std::vector<Due> due;
    while (running_) {
      const Clock::time_point now = Clock::now();
      int wait = 20;
      for (auto it = due.begin(); it != due.end();) {
        if (it->when <= now) {
          sendto(fd_, it->bytes.data(), it->bytes.size(), 0, reinterpret_cast<const sockaddr*>(&it->to),
                 sizeof(it->to));
          it = due.erase(it);
          continue;
        }
        wait = std::min<int>(
            wait, static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(it->when - now).count()) + 1);
        ++it;
      }
      pollfd one{fd_, POLLIN, 0};
      if (poll(&one, 1, wait) <= 0) continue;
      char buffer[1500];
      sockaddr_in from;
      socklen_t size = sizeof(from);
      const ssize_t n = recvfrom(fd_, buffer, sizeof(buffer), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (n < static_cast<ssize_t>(kHeader)) continue;
      const std::string_view query(buffer, static_cast<size_t>(n));
      const std::optional<Question> question = Read(query);
      if (!question.has_value()) continue;
      NameAnswer answer;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        answer = AnswerOf(names_, question->name);
      }
      if (answer.kind == NameAnswer::Kind::kSilence) continue;
      due.push_back({Clock::now() + std::chrono::milliseconds(answer.delay_ms), from, Reply(query, *question, answer)});
    }
  }

  const int fd_;
  std::mutex mutex_;
  Names names_;
  std::atomic<bool> running_{true};
  std::thread thread_;
};

}  // namespace

NameAnswer AnswerOf(const Names& names, const std::string& name) {
  NameAnswer unknown;
  unknown.kind = NameAnswer::Kind::kUnknown;
  for (const std::string& key : {name, std::string("*")}) {
    if (const auto at = names.find(key); at != names.end()) return at->second;
  }
  return unknown;
}

std::unique_ptr<NameServer> NameServer::Make(const std::string& address, const Names& names) {
  const size_t colon = address.rfind(':');
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + colon + 1)));
  if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &at.sin_addr) != 1) return nullptr;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  if (!BindWhenFree(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at))) {
    close(fd);
    return nullptr;
  }
  return std::make_unique<UdpServer>(fd, names);
}

}  // namespace wavetank::envoydiff
