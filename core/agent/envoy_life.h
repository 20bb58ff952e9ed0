// The life of the Envoy that an agent has started: one process, never started again by the agent itself, for when it
// ends, the agent ends and its container is started anew (istiod: pkg/envoy/agent.go, proxy.go). There is one epoch:
// hot restarts are disabled since 1.12.
//
// Told to end (SIGTERM, SIGINT, /quitquitquit), it has Envoy drain its listeners, waits for the termination drain, and
// kills it. With EXIT_ON_ZERO_ACTIVE_CONNECTIONS it waits for the minimum drain instead, then asks every second how
// many connections are open, and kills it when none is, when there is no telling, or when Envoy does not answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "core/base/host.h"

namespace wavetank::agent {

// What an agent can do to its Envoy.
class EnvoyControl {
 public:
  virtual ~EnvoyControl() = default;
  // An error: there is no such program, say. Its end is told to EnvoyLife::OnExit, once, later.
  virtual absl::Status Start() = 0;
  // POST /drain_listeners?graceful, of a sidecar with inboundonly.
  virtual void Drain(absl::AnyInvocable<void(absl::Status)> done) = 0;
  // GET /stats?usedonly&filter=downstream_cx_active$: the page.
  virtual void ActiveConnections(absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) = 0;
  // SIGKILL.
  virtual void Kill() = 0;
};

struct EnvoyLifeOptions {
  Duration termination_drain = 5s;  // ProxyConfig's terminationDrainDuration
  Duration minimum_drain = 5s;      // MINIMUM_DRAIN_DURATION
  bool exit_on_zero_active_connections = false;
  // Listeners of Istio itself, whose connections do not count.
  uint16_t status_port = 15021, prometheus_port = 15090;
  Log log;
};

// How a process ended: of its own accord, or by a signal (0: none).
struct ProcessEnd {
  int code = 0, signal = 0;
};
// As Go says it: "exit status 1", "signal: killed"; empty for an end in order.
std::string Describe(const ProcessEnd& end);

class EnvoyLife {
 public:
  // All outlive it. `ended` once, when the Envoy is gone and the agent ends with it: OK, or why not.
  EnvoyLife(Host& host, EnvoyControl& envoy, EnvoyLifeOptions options, absl::AnyInvocable<void(absl::Status)> ended);
  ~EnvoyLife() { alive_.reset(); }
  EnvoyLife(const EnvoyLife&) = delete;
  EnvoyLife& operator=(const EnvoyLife&) = delete;

  void Start();
  // The second call and later ones are nothing new.
  void Terminate();
  void OnExit(const ProcessEnd& end);

  enum class State : uint8_t { kNew, kRunning, kDraining, kKilled, kEnded };
  State state() const { return state_; }
  // The readiness probe fails from the signal on.
  bool terminating() const { return state_ == State::kDraining || state_ == State::kKilled; }

 private:
  void WaitForConnections();
  void Abort();
  void After(Duration delay, Callback fn);
  void Tell(Level level, std::string_view text) const { Say(options_.log, level, "", text); }

  Host& host_;
  EnvoyControl& envoy_;
  const EnvoyLifeOptions options_;
  absl::AnyInvocable<void(absl::Status)> ended_;
  State state_ = State::kNew;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

// Connections on listeners, without those of Istio's own and without what is counted twice (per worker); -1: the page
// is empty.
int64_t CountActiveConnections(std::string_view stats, uint16_t status_port, uint16_t prometheus_port);

// What Envoy is started with.
struct EnvoyArguments {
  std::string config;
  int64_t drain_seconds = 45;
  bool ipv6 = false;
  bool json_log = false;                         // --log_as_json
  std::string log_level = "warning,misc:error";  // --proxyLogLevel
  std::string component_log_level;               // --proxyComponentLogLevel
  int concurrency = 0;                           // 0: Envoy's own choice
  std::string config_yaml;                       // ISTIO_BOOTSTRAP_OVERRIDE's content; empty: none
};
std::vector<std::string> MakeEnvoyArguments(const EnvoyArguments& from);

}  // namespace wavetank::agent
