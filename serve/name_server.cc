#include "serve/name_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/agent/dns_message.h"
#include "fmt/format.h"
#include "sim/network/dns.h"
#include "sim/world_site.h"

namespace wavetank::serve {
namespace {

constexpr size_t kLargest = 4096;
constexpr uint16_t kPort = 53;
// istiods of the world take an answer for so long that says nothing of it; and what is not there for so long
// (istiod: pilot/pkg/model/network.go, MinGatewayTTL).
constexpr Duration kTtl = 60s, kTtlOfNothing = 30s;
constexpr int kLookMs = 100;

}  // namespace

std::optional<std::string> AnswerQuery(sim::World& world, const std::string& cluster, std::string_view message) {
  const absl::StatusOr<agent::DnsQuery> query = agent::ParseQuery(message);
  if (!query.ok() || !query->has_question) return std::nullopt;
  sim::World::Site* site = world.FindSite(cluster);
  absl::StatusOr<sim::WorldDns::Answer> found = absl::NotFoundError("no such cluster");
  if (site != nullptr) found = site->place().dns->Ask(query->name, "istio-system");
  agent::DnsLife life;
  life.nothing = static_cast<uint32_t>(kTtlOfNothing / 1s);
  if (!found.ok()) {
    const bool absent = absl::IsNotFound(found.status());
    return agent::MakeAnswer(*query, {}, absent ? agent::DnsRcode::kNxDomain : agent::DnsRcode::kServFail, kLargest,
                             life);
  }
  life.records = static_cast<uint32_t>(found->ttl.value_or(kTtl) / 1s);
  life.nothing = life.records;
  std::vector<agent::DnsRecord> records;
  for (const IpAddress& ip : found->addresses) {
    const agent::DnsType type = ip.is_v4() ? agent::DnsType::kA : agent::DnsType::kAaaa;
    if (query->type == static_cast<uint16_t>(type))
      records.push_back({absl::AsciiStrToLower(query->name), type, ip, ""});
  }
  return agent::MakeAnswer(*query, records, agent::DnsRcode::kNoError, kLargest, life);
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
