#include "core/agent/health_checker.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

constexpr std::string_view kHealthScope = "healthcheck";

// A number of seconds or of probes; nothing and 0 are the default.
int64_t OrDefault(const nlohmann::json& in, const char* name, int64_t otherwise) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t said = Number(in, name);
  return said > 0 && said < kMost ? said : otherwise;
}

absl::StatusOr<uint16_t> PortOf(const nlohmann::json& in) {
  const int64_t port = Number(in, "port");
  if (port < 1 || port > 65535) return absl::InvalidArgumentError("readinessProbe: port must be in 1..65535");
  return static_cast<uint16_t>(port);
}

}  // namespace

absl::StatusOr<HealthProbe> ParseHealthProbe(const nlohmann::json& readiness_probe, const std::string& proxy_ip) {
  HealthProbe out;
  out.initial_delay = std::chrono::seconds(OrDefault(readiness_probe, "initialDelaySeconds", 0));
  out.timeout = std::chrono::seconds(OrDefault(readiness_probe, "timeoutSeconds", 1));
  out.period = std::chrono::seconds(OrDefault(readiness_probe, "periodSeconds", 10));
  out.success_threshold = static_cast<int>(OrDefault(readiness_probe, "successThreshold", 1));
  out.failure_threshold = static_cast<int>(OrDefault(readiness_probe, "failureThreshold", 1));
  const nlohmann::json &http = At(readiness_probe, "httpGet"), &tcp = At(readiness_probe, "tcpSocket"),
                       &exec = At(readiness_probe, "exec");
  if (exec.is_object()) {
    out.kind = HealthProbe::Kind::kExec;
    for (const nlohmann::json& word : Items(At(exec, "command"))) out.command.push_back(TextOf(word));
    if (out.command.empty()) return absl::InvalidArgumentError("readinessProbe: exec has no command");
    return out;
  }
  if (!http.is_object() && !tcp.is_object()) {
    return absl::InvalidArgumentError("readinessProbe: one of httpGet, tcpSocket and exec is needed");
  }
  const nlohmann::json& from = http.is_object() ? http : tcp;
  const absl::StatusOr<uint16_t> port = PortOf(from);
  if (!port.ok()) return port.status();
  out.port = *port;
  out.kind = http.is_object() ? HealthProbe::Kind::kHttp : HealthProbe::Kind::kTcp;
  // An HTTP probe without a host goes to the proxy's address, a TCP one to the local host.
  out.host = Text(from, "host", out.kind == HealthProbe::Kind::kTcp || proxy_ip.empty() ? "localhost" : proxy_ip);
  out.path = Text(from, "path", "/");
  if (out.path.empty()) out.path = "/";
  if (absl::AsciiStrToLower(Text(from, "scheme")) == "https") out.scheme = "https";
  for (const nlohmann::json& header : Items(At(from, "httpHeaders"))) {
    out.headers[Text(header, "name")] = Text(header, "value");
  }
  return out;
}

HealthChecker::HealthChecker(Host& host, HealthProbe probe, Probe ask, OnChange on_change, Log log)
    : host_(host),
      probe_(std::move(probe)),
      ask_(std::move(ask)),
      on_change_(std::move(on_change)),
      log_(std::move(log)),
      tally_(probe_.success_threshold, probe_.failure_threshold) {
  WAVETANK_ASSERT(probe_.period > Duration::zero(), probe_.period);  // else it would ask without end at one instant
  WAVETANK_ASSERT(ask_ != nullptr);
  WAVETANK_ASSERT(on_change_ != nullptr);
}

void HealthChecker::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

void HealthChecker::Start() {
  Say(log_, Level::kInfo, kHealthScope,
      fmt::format("starting health check for health.AggregateProber in {}s", probe_.initial_delay / 1s));
  After(probe_.initial_delay, [this] { Check(); });
}

// A ticker: a probe that is still under way when the next is due lets that one be.
void HealthChecker::Check() {
  After(probe_.period, [this] { Check(); });
  if (std::exchange(asking_, true)) return;
  ask_(probe_, [this, alive = std::weak_ptr(alive_)](const absl::Status& status) {
    if (!alive.expired()) OnAnswer(status);
  });
}

void HealthChecker::OnAnswer(const absl::Status& status) {
  WAVETANK_ASSERT(asking_);  // each probe is answered once
  asking_ = false;
  const std::optional<bool> changed = tally_.OnProbe(status.ok());
  if (!changed) return;
  const std::string why(Message(status));
  Say(log_, Level::kInfo, kHealthScope,
      *changed ? std::string("success threshold hit, marking as healthy")
               : fmt::format("failure threshold hit, marking as unhealthy: {}", why));
  on_change_(*changed, why);
}

}  // namespace wavetank::agent
