#include "serve/name_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "sim/network/dns.h"
#include "sim/world_site.h"

namespace wavetank::serve {
namespace {

// RFC 1035, section 4.
constexpr size_t kHeader = 12, kLargest = 4096;
constexpr uint16_t kA = 1, kSoa = 6, kAaaa = 28, kInternet = 1;
constexpr uint16_t kNoError = 0, kServerFailure = 2, kNameError = 3;
constexpr uint16_t kPort = 53;
// istiods of the world take an answer for so long that says nothing of it; and what is not there for so long
// (istiod: pilot/pkg/model/network.go, MinGatewayTTL).
constexpr Duration kTtl = 60s, kTtlOfNothing = 30s;
constexpr int kLookMs = 100;

uint16_t Word(std::string_view in, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(in[at]) << 8 | static_cast<uint8_t>(in[at + 1]));
}

void Put16(uint16_t value, std::string* out) {
  out->push_back(static_cast<char>(value >> 8));
  out->push_back(static_cast<char>(value & 0xff));
}

void Put32(uint32_t value, std::string* out) {
  Put16(static_cast<uint16_t>(value >> 16), out);
  Put16(static_cast<uint16_t>(value & 0xffff), out);
}

struct Question {
  std::string name;  // with its last dot
  uint16_t type = 0;
  size_t end = 0;  // in the message
};

std::optional<Question> ReadQuestion(std::string_view query) {
  if (query.size() < kHeader || Word(query, 4) != 1 || (Word(query, 2) & 0x8000) != 0) return std::nullopt;
  Question out;
  size_t at = kHeader;
  while (at < query.size() && query[at] != 0) {
    const size_t length = static_cast<uint8_t>(query[at]);
    if (length > 63 || at + 1 + length > query.size()) return std::nullopt;  // no pointers in a question
    out.name.append(query.substr(at + 1, length)).push_back('.');
    at += 1 + length;
  }
  if (at + 5 > query.size() || out.name.empty()) return std::nullopt;
  out.type = Word(query, at + 1);
  out.end = at + 5;
  return out;
}

// A record of the question's name.
void PutRecord(uint16_t type, Duration ttl, std::string_view data, std::string* out) {
  Put16(0xc000 | kHeader, out);
  Put16(type, out);
  Put16(kInternet, out);
  Put32(static_cast<uint32_t>(ttl / 1s), out);
  Put16(static_cast<uint16_t>(data.size()), out);
  out->append(data);
}

std::string DataOf(const IpAddress& ip) {
  std::array<unsigned char, 16> raw{};
  inet_pton(ip.is_v4() ? AF_INET : AF_INET6, ip.ToString().c_str(), raw.data());
  return {reinterpret_cast<const char*>(raw.data()), ip.is_v4() ? size_t{4} : size_t{16}};
}

// As little as says how long nothing is there (RFC 2308).
std::string StartOfAuthority(Duration ttl) {
  std::string out(2, '\0');  // names of a server and of a mailbox: the root
  for (const uint32_t value : {1U, 3600U, 600U, 86400U, static_cast<uint32_t>(ttl / 1s)}) Put32(value, &out);
  return out;
}

}  // namespace

std::optional<std::string> AnswerQuery(sim::World& world, const std::string& cluster, std::string_view query) {
  const std::optional<Question> question = ReadQuestion(query);
  if (!question) return std::nullopt;
  sim::World::Site* site = world.FindSite(cluster);
  absl::StatusOr<sim::WorldDns::Answer> found = absl::NotFoundError("no such cluster");
  if (site != nullptr) found = site->place().dns->Ask(question->name, "istio-system");
  std::vector<std::string> records;
  if (found.ok()) {
    for (const IpAddress& ip : found->addresses) {
      if (question->type == (ip.is_v4() ? kA : kAaaa)) records.push_back(DataOf(ip));
    }
  }
  uint16_t code = kNoError;
  if (!found.ok()) code = absl::IsNotFound(found.status()) ? kNameError : kServerFailure;
  const Duration ttl = found.ok() ? found->ttl.value_or(kTtl) : kTtlOfNothing;
  std::string out(query.substr(0, 2));
  // An answer, authoritative, recursion as asked for and available.
  Put16(static_cast<uint16_t>(0x8480 | (Word(query, 2) & 0x0100) | code), &out);
  const bool nothing = records.empty() && code != kServerFailure;
  for (const size_t count : {size_t{1}, records.size(), size_t{nothing}, size_t{0}})
    Put16(static_cast<uint16_t>(count), &out);
  out.append(query.substr(kHeader, question->end - kHeader));
  for (const std::string& data : records) PutRecord(question->type, ttl, data, &out);
  if (nothing) PutRecord(kSoa, ttl, StartOfAuthority(ttl), &out);
  return out;
}

NameServer::Socket::~Socket() { close(number); }

absl::StatusOr<std::unique_ptr<NameServer>> NameServer::Start(Loop& loop, const std::string& cluster,
                                                              const std::string& address) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(kPort);
  if (inet_pton(AF_INET, address.c_str(), &where.sin_addr) != 1 || (ntohl(where.sin_addr.s_addr) >> 24) != 127)
    return absl::InvalidArgumentError(fmt::format("'{}' is no IPv4 address of loopback; write 127.0.0.53", address));
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return absl::UnavailableError("no socket can be had");
  if (bind(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
    const int why = errno;
    close(socket);
    return absl::UnavailableError(
        fmt::format("{}:{} cannot be had for DNS: {}; it takes root, and another address if "
                    "one listens there",
                    address, kPort, std::strerror(why)));
  }
  std::unique_ptr<NameServer> out(new NameServer(loop, cluster, socket));
  out->thread_ = std::thread([server = out.get()] { server->Run(); });
  return out;
}

NameServer::~NameServer() {
  over_ = true;
  thread_.join();
}

void NameServer::Run() {
  std::string buffer(kLargest, '\0');
  while (!over_) {
    pollfd ready{socket_->number, POLLIN, 0};
    if (poll(&ready, 1, kLookMs) <= 0) continue;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        recvfrom(socket_->number, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) continue;
    loop_.Post([socket = socket_, from, cluster = cluster_,
                query = buffer.substr(0, static_cast<size_t>(got))](sim::World& world) {
      const std::optional<std::string> answer = AnswerQuery(world, cluster, query);
      if (!answer) return;
      // One that is lost is asked for again.
      [[maybe_unused]] const ssize_t sent = sendto(socket->number, answer->data(), answer->size(), 0,
                                                   reinterpret_cast<const sockaddr*>(&from), sizeof from);
    });
  }
}

}  // namespace wavetank::serve
