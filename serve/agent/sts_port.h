// The agent's security token service on loopback (istiod: security/pkg/stsservice/server/server.go): what comes in goes
// to core/agent/token_exchange.h, what that asks goes out by HTTPS.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/agent/token_exchange.h"
#include "serve/agent/real_host.h"

namespace wavetank::serve {

class StsPort {
 public:
  // Unavailable: the port is taken. `host` and `exchange`, which runs on the host's thread, outlive it.
  static absl::StatusOr<std::unique_ptr<StsPort>> Listen(RealHost& host, agent::TokenExchange& exchange,
                                                         const std::string& address, int port, const agent::Log& log);
  virtual ~StsPort() = default;
  virtual uint16_t port() const = 0;
};

// Calls the internet's servers, whom the system's roots vouch for, for at most five seconds each; `roots_path`: others.
agent::SendTokenCall SendByHttps(RealHost& host, std::string roots_path = "");

}  // namespace wavetank::serve
