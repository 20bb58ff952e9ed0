#include "serve/agent/health_prober.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/agent/probes.h"
#include "fmt/format.h"
#include "serve/agent/child_process.h"
#include "serve/agent/envoy_child.h"
#include "serve/agent/real_host.h"
#include "serve/agent/status_port.h"

namespace wavetank::serve {
namespace {

absl::Status Unhealthy(std::string why) { return absl::UnavailableError(why); }

absl::Status RunCommand(const agent::HealthProbe& probe, const Environment& environment) {
  ChildProcess child;
  ChildProcess::Options options;
  options.arguments = probe.command;
  options.environment = {environment.begin(), environment.end()};
  if (absl::Status status = child.Start(options); !status.ok()) return status;
  const auto until = std::chrono::steady_clock::now() + probe.timeout;
  while (child.running()) {
    if (std::chrono::steady_clock::now() >= until) {
      child.Stop(Duration::zero());
      return Unhealthy("command timeout exceeded: signal: killed");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (child.end() == "exit code 0") return absl::OkStatus();
  return Unhealthy(child.end().starts_with("exit code ") ? fmt::format("exit status {}", child.end().substr(10))
                                                         : child.end());
}

absl::Status ProbeEnvoy(agent::ReadyProbe& ready, uint16_t admin_port) {
  if (ready.needs_updates()) {
    const absl::Status status = ready.OnUpdates(EnvoyChild::Page(admin_port, "GET", agent::kUpdateStatsQuery));
    if (!status.ok()) return status;
  }
  if (!ready.needs_state()) return absl::OkStatus();
  return ready.OnState(EnvoyChild::Page(admin_port, "GET", agent::kReadyStatsQuery));
}

// The application alone. Blocks, at most for the probe's timeout.
absl::Status ProbeApplication(const agent::HealthProbe& probe, const Environment& environment) {
  if (probe.kind == agent::HealthProbe::Kind::kExec) return RunCommand(probe, environment);
  agent::AppProber prober;
  prober.kind =
      probe.kind == agent::HealthProbe::Kind::kTcp ? agent::AppProber::Kind::kTcp : agent::AppProber::Kind::kHttp;
  prober.port = probe.port;
  prober.timeout = probe.timeout;
  prober.path = probe.path.starts_with('/') ? probe.path : "/" + probe.path;
  prober.https = probe.scheme == "https";
  const std::string host = probe.host == "localhost" ? "127.0.0.1" : probe.host;
  const int answer = AskApplication(prober, host);
  if (answer == 0) {
    return Unhealthy(fmt::format("dial tcp {}:{}: connect: connection refused", host, probe.port));
  }
  if (answer >= 200 && answer < 400) return absl::OkStatus();
  return Unhealthy(fmt::format("status code was not from [200,400), bad code {}", answer));
}

}  // namespace

agent::HealthChecker::Probe ProberOf(RealHost& host, uint16_t admin_port, Environment environment) {
  auto ready = std::make_shared<agent::ReadyProbe>();
  return [&host, admin_port, ready, environment = std::move(environment)](const agent::HealthProbe& probe,
                                                                          absl::AnyInvocable<void(absl::Status)> done) {
    // One at a time: the checker waits for the answer before it asks again.
    std::thread([&host, admin_port, ready, probe, environment, done = std::move(done)]() mutable {
      absl::Status status = ProbeEnvoy(*ready, admin_port);
      if (status.ok()) status = ProbeApplication(probe, environment);
      host.Call([done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
    }).detach();
  };
}

}  // namespace wavetank::serve
