// The agent's DNS server on real sockets: UDP and TCP, one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/agent/dns_table.h"
#include "core/agent/log.h"

namespace wavetank::serve {

class DnsServer {
 public:
  struct Options {
    std::string address;  // "localhost:15053"
    std::vector<std::string> name_servers;
    uint16_t upstream_port = 53;
    // On the server's thread.
    std::function<agent::DnsDecision(const std::string& name, uint16_t type)> lookup;
    agent::Log log;
  };
  // InvalidArgument: no address; Unavailable: the port is taken.
  static absl::StatusOr<std::unique_ptr<DnsServer>> Listen(Options options);
  virtual ~DnsServer() = default;
  virtual uint16_t port() const = 0;
};

}  // namespace wavetank::serve
