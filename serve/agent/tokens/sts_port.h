// The agent's security token service on loopback (istiod: security/pkg/stsservice/server/server.go): what comes in goes
// to core/agent/token_exchange.h, what that asks goes out by HTTPS.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/agent/token_exchange.h"

namespace wavetank::serve {

// Runs it on the exchange's thread, or drops it if that has ended. Any thread.
using PostToHost = std::function<void(Callback)>;

class StsPort {
 public:
  // Unavailable: the port is taken. `exchange` outlives it.
  static absl::StatusOr<std::unique_ptr<StsPort>> Listen(PostToHost post, agent::TokenExchange& exchange,
                                                         const std::string& address, int port, const agent::Log& log);
  virtual ~StsPort() = default;
  virtual uint16_t port() const = 0;
};

// Calls the internet's servers, whom the system's roots vouch for, for at most five seconds each; `roots_path`: others.
agent::SendTokenCall SendByHttps(PostToHost post, std::string roots_path = "");

}  // namespace wavetank::serve
