// What the agent's status port (15020) answers: whether the proxy is ready, and what the application says to the
// kubelet's probes, which were rewritten to come here (istiod: pilot/cmd/pilot-agent/status).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::agent {

// Envoy's statistics that readiness depends on, as "NAME: VALUE" lines of its admin interface.
inline constexpr std::string_view kUpdateStatsQuery =
    R"(/stats?usedonly&filter=^(cluster_manager\.cds|listener_manager\.lds)\.(update_success|update_rejected)$)";
inline constexpr std::string_view kReadyStatsQuery =
    R"(/stats?usedonly&filter=^(server\.state|listener_manager\.workers_started))";

// What is said of a proxy that lacks configuration; empty: it has accepted clusters and listeners (pilot-agent:
// status/ready/probe.go, checkConfigStatus).
struct Updates {
  uint64_t accepted = 0, rejected = 0;
};
std::string_view LacksConfiguration(const Updates& cds, const Updates& lds);

// One prober per Envoy: what was once seen need not be asked for again.
class ReadyProbe {
 public:
  // Whether the first page still has to be fetched: configuration has not been seen to arrive.
  bool needs_updates() const { return !configured_; }
  bool needs_state() const { return !live_; }
  // A page, or why there is none. OK if the proxy has got its clusters and listeners.
  absl::Status OnUpdates(const absl::StatusOr<std::string>& page);
  // OK if it is LIVE and its workers have started. `terminating`: the agent has been told to end.
  absl::Status OnState(const absl::StatusOr<std::string>& page);
  static absl::Status Terminating();

 private:
  bool configured_ = false, live_ = false;
};

// What the DNS server's state adds to readiness, where names are captured.
absl::Status DnsReadiness(bool table_ready);

// One probe of an application, by the path that the kubelet asks for.
struct AppProber {
  enum class Kind : uint8_t { kHttp, kTcp, kGrpc };
  Kind kind = Kind::kHttp;
  uint16_t port = 0;
  Duration timeout{};      // zero: none
  std::string path = "/";  // of HTTP; with a slash in front
  bool https = false;
  std::string host;  // the Host header; empty: the kubelet's own
  std::map<std::string, std::string> headers;
  std::string service;  // of gRPC
};
using AppProbers = std::map<std::string, AppProber, std::less<>>;

// Of ISTIO_KUBE_APP_PROBERS. InvalidArgument, in the agent's words, which ends it: a path that is none of
// "/app-health/NAME/(livez|readyz|startupz)", not exactly one kind of probe, a port that is no number.
absl::StatusOr<AppProbers> ParseAppProbers(std::string_view json);

// The status that the kubelet is answered, of what the application answered (0: it could not be asked). A redirect is a
// success: the kubelet would have followed it.
int AppProbeStatus(int application_status);

// When an application's health is told to istiod (VMs; istiod: pkg/istio-agent/health/health_check.go): only when it
// changes, after so many probes in a row.
class HealthTally {
 public:
  HealthTally(int success_threshold, int failure_threshold)
      : success_threshold_(success_threshold < 1 ? 1 : success_threshold),
        failure_threshold_(failure_threshold < 1 ? 1 : failure_threshold) {}
  // The new state, if there is one.
  std::optional<bool> OnProbe(bool healthy);

 private:
  int success_threshold_, failure_threshold_;
  int successes_ = 0, failures_ = 0;
  std::optional<bool> last_;
};

}  // namespace wavetank::agent
