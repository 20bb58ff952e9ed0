// The two Unix sockets that an Envoy knows its agent by: ADS, passed on to istiod stream by stream, and secrets
// (istiod: pkg/istio-agent/xds_proxy.go, security/pkg/nodeagent/sds).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "core/agent/secret_manager.h"
#include "core/agent/xds_relay.h"
#include "serve/agent/ca_dial.h"
#include "serve/agent/real_host.h"

namespace wavetank::serve {

class UdsServer {
 public:
  struct Options {
    std::string xds_socket, sds_socket;
    DialOptions istiod;
    agent::Log log;
  };
  // All outlive it; the host runs. Unavailable: a socket cannot be listened on.
  static absl::StatusOr<std::unique_ptr<UdsServer>> Listen(RealHost& host, agent::XdsRelay& relay,
                                                           agent::SecretManager& secrets, Options options);
  // Hangs up on all streams. The host has stopped.
  virtual ~UdsServer() = default;

  // On the host's thread: what the agent says of its own accord on the open stream (the application's health).
  virtual void SendOwn(const agent::OwnRequest& request) = 0;
  // On the host's thread: istiod's answer to `request` on the open stream, as JSON (tap.h), one question after the
  // other. Unavailable: no stream is open. DeadlineExceeded: nothing came for kTapPatience; of a delta stream always,
  // as 1.18.2 has it, which puts the question where nobody takes it. `done` is not called once this is gone.
  using Tapped = std::function<void(absl::StatusOr<std::string> json)>;
  virtual void Tap(agent::OwnRequest request, Tapped done) = 0;
  // Whether both socket files are still there. An agent of 1.18.2 does not make them again: an Envoy that comes after
  // their loss finds none until the container starts anew.
  virtual bool Reachable() const = 0;
};

}  // namespace wavetank::serve
