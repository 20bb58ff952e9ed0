// The agent's status port: HTTP for the kubelet and for Envoy's own health listener (istiod:
// pilot/cmd/pilot-agent/status/server.go).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "core/agent/probes.h"
#include "core/agent/xds_relay.h"

namespace wavetank::serve {

class StatusPort {
 public:
  struct Options {
    uint16_t port = 15020, admin_port = 15000;
    std::string address = "0.0.0.0";  // as the real one: the kubelet comes from outside
    std::string pod_ip;               // where the application is asked
    agent::AppProbers probers;
    std::function<bool()> terminating;    // any thread
    std::function<absl::Status()> check;  // of the agent itself; any thread
    std::function<std::string()> names;   // /debug/ndsz: JSON; empty text: no table. Any thread
    std::function<void()> quit;           // /quitquitquit; any thread
    // PROXY_XDS_DEBUG_VIA_AGENT: on loopback, istiod's debug pages. 0: none. `tap` may answer later, on any thread.
    uint16_t tap_port = 0;
    std::function<void(agent::OwnRequest, std::function<void(absl::StatusOr<std::string> json)>)> tap;
    agent::Log log;  // any thread
  };
  // Unavailable: the port is taken.
  static absl::StatusOr<std::unique_ptr<StatusPort>> Listen(Options options);
  virtual ~StatusPort() = default;
  virtual uint16_t port() const = 0;
};

// What an application answers a probe: an HTTP status; 0 if it cannot be asked.
int AskApplication(const agent::AppProber& prober, const std::string& ip);

}  // namespace wavetank::serve
