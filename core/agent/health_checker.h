// The application's health, as an agent outside Kubernetes probes it by ProxyConfig's readinessProbe, which a
// WorkloadGroup's probe becomes (istiod: pkg/istio-agent/health). Told is only a change, after as many probes in a row
// as the thresholds say; the first is told in any case.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/agent/log.h"
#include "core/agent/probes.h"
#include "core/base/host.h"
#include "nlohmann/json.hpp"

namespace wavetank::agent {

struct HealthProbe {
  enum class Kind : uint8_t { kHttp, kTcp, kExec };
  Kind kind = Kind::kHttp;
  std::string host, path = "/", scheme = "http";  // of HTTP and TCP
  uint16_t port = 0;
  std::map<std::string, std::string> headers;
  std::vector<std::string> command;  // of exec
  Duration initial_delay{}, timeout = 1s, period = 10s;
  int success_threshold = 1, failure_threshold = 1;
};

// `proxy_ip`: where an HTTP probe without a host goes. InvalidArgument: it probes nothing, or no port.
absl::StatusOr<HealthProbe> ParseHealthProbe(const nlohmann::json& readiness_probe, const std::string& proxy_ip);

class HealthChecker {
 public:
  // One probe: of the Envoy first, then of the application. An error's text is what istiod is told.
  using Probe = std::function<void(const HealthProbe& probe, absl::AnyInvocable<void(absl::Status)> done)>;
  using OnChange = std::function<void(bool healthy, const std::string& why)>;

  HealthChecker(Host& host, HealthProbe probe, Probe ask, OnChange on_change, Log log = {});
  ~HealthChecker() { alive_.reset(); }

  void Start();

 private:
  void Check();
  void OnAnswer(const absl::Status& status);
  void After(Duration delay, Callback fn);

  Host& host_;
  const HealthProbe probe_;
  const Probe ask_;
  const OnChange on_change_;
  const Log log_;
  HealthTally tally_;
  bool asking_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::agent
