#include "core/agent/envoy_life.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/assert.h"
#include "core/base/status.h"
#include "fmt/format.h"

namespace wavetank::agent {
namespace {

constexpr Duration kConnectionCheck = 1s;

std::string GoDuration(Duration d) {
  // Whole minutes and seconds, as the settings are; what is below, in milliseconds.
  if (d % 1s != Duration::zero()) return fmt::format("{}ms", d / 1ms);
  const int64_t seconds = d / 1s;
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{}m{}s", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

std::string Describe(const ProcessEnd& end) {
  if (end.signal != 0) {
    switch (end.signal) {
      case 1:
        return "signal: hangup";
      case 2:
        return "signal: interrupt";
      case 4:
        return "signal: illegal instruction";
      case 6:
        return "signal: aborted";
      case 7:
        return "signal: bus error";
      case 8:
        return "signal: floating point exception";
      case 9:
        return "signal: killed";
      case 11:
        return "signal: segmentation fault";
      case 13:
        return "signal: broken pipe";
      case 15:
        return "signal: terminated";
      default:
        return fmt::format("signal: signal {}", end.signal);
    }
  }
  return end.code == 0 ? "" : fmt::format("exit status {}", end.code);
}

EnvoyLife::EnvoyLife(Host& host, EnvoyControl& envoy, EnvoyLifeOptions options,
                     absl::AnyInvocable<void(absl::Status)> ended)
    : host_(host), envoy_(envoy), options_(std::move(options)), ended_(std::move(ended)) {}

void EnvoyLife::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

void EnvoyLife::Start() {
  WAVETANK_ASSERT(state_ == State::kNew, state_);  // the agent starts its Envoy once
  Tell(Level::kInfo, "Starting proxy agent");
  Tell(Level::kInfo, "starting");
  state_ = State::kRunning;
  if (const absl::Status status = envoy_.Start(); !status.ok()) {
    After(Duration::zero(), [this, status] {
      if (std::exchange(state_, State::kEnded) == State::kEnded) return;
      Tell(Level::kError, fmt::format("Envoy exited with error: {}", Message(status)));
      if (ended_) std::exchange(ended_, nullptr)(status);
    });
  }
}

void EnvoyLife::OnExit(const ProcessEnd& end) {
  WAVETANK_ASSERT(state_ != State::kNew);
  const State before = std::exchange(state_, State::kEnded);
  if (before == State::kEnded) return;
  const std::string why = Describe(end);
  absl::Status status;
  if (before == State::kKilled) {
    Tell(Level::kInfo, "Envoy aborted normally");
    Tell(Level::kInfo, "Agent has successfully terminated");
  } else if (before == State::kDraining) {
    // It went before its time was over.
    Tell(Level::kWarn, "Envoy aborted abnormally");
    Tell(Level::kInfo, "Agent has successfully terminated");
  } else if (why.empty()) {
    Tell(Level::kInfo, "Envoy exited normally");
  } else {
    if (end.signal == 9) {
      Tell(Level::kWarn, "Envoy may have been out of memory killed. Check memory usage and limits.");
    }
    Tell(Level::kError, fmt::format("Envoy exited with error: {}", why));
    status = absl::InternalError(why);
  }
  if (ended_) std::exchange(ended_, nullptr)(std::move(status));
}

void EnvoyLife::Terminate() {
  if (state_ != State::kRunning) return;
  state_ = State::kDraining;
  Tell(Level::kInfo, "Agent draining Proxy");
  envoy_.Drain([this, alive = std::weak_ptr(alive_)](const absl::Status& status) {
    if (alive.expired() || state_ != State::kDraining) return;
    if (!status.ok()) Tell(Level::kWarn, fmt::format("Error in invoking drain listeners endpoint {}", Message(status)));
    if (!options_.exit_on_zero_active_connections) {
      Tell(Level::kInfo,
           fmt::format("Graceful termination period is {}, starting...", GoDuration(options_.termination_drain)));
      return After(options_.termination_drain, [this] {
        if (state_ != State::kDraining) return;
        Tell(Level::kInfo, "Graceful termination period complete, terminating remaining proxies.");
        Abort();
      });
    }
    Tell(Level::kInfo, fmt::format("Agent draining proxy for {}, then waiting for active connections to terminate...",
                                   GoDuration(options_.minimum_drain)));
    After(options_.minimum_drain, [this] {
      if (state_ != State::kDraining) return;
      Tell(Level::kInfo, "Checking for active connections...");
      After(kConnectionCheck, [this] { WaitForConnections(); });
    });
  });
}

void EnvoyLife::WaitForConnections() {
  if (state_ != State::kDraining) return;
  envoy_.ActiveConnections([this, alive = std::weak_ptr(alive_)](const absl::StatusOr<std::string>& page) {
    if (alive.expired() || state_ != State::kDraining) return;
    if (!page.ok()) {
      Tell(Level::kError, fmt::format("unable to get listener stats from Envoy : {}", Message(page.status())));
      return Abort();
    }
    const int64_t active = CountActiveConnections(*page, options_.status_port, options_.prometheus_port);
    if (active == -1) {
      Tell(Level::kInfo,
           "downstream_cx_active are not available. This either means there are no downstream connection established "
           "yet or the stats are not enabled. Skipping active connections check...");
      return Abort();
    }
    if (active == 0) {
      Tell(Level::kInfo, "There are no more active connections. terminating proxy...");
      return Abort();
    }
    Tell(Level::kInfo, fmt::format("There are still {} active connections", active));
    After(kConnectionCheck, [this] { WaitForConnections(); });
  });
}

void EnvoyLife::Abort() {
  WAVETANK_ASSERT(state_ == State::kDraining, state_);  // killed after the drain, never instead of it
  state_ = State::kKilled;
  Tell(Level::kWarn, "Aborting proxy");
  envoy_.Kill();
}

int64_t CountActiveConnections(std::string_view stats, uint16_t status_port, uint16_t prometheus_port) {
  if (stats.empty()) return -1;
  int64_t active = 0;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(stats.data(), stats.size()), '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ':');
    if (parts.size() != 2) continue;
    const std::string_view name(parts[0].data(), parts[0].size());
    if (!name.starts_with("listener.") || name.find("worker_") != std::string_view::npos) continue;
    if (name == "listener.admin.downstream_cx_active" || name == "listener.admin.main_thread.downstream_cx_active" ||
        name == fmt::format("listener.0.0.0.0_{}.downstream_cx_active", status_port) ||
        name == fmt::format("listener.0.0.0.0_{}.downstream_cx_active", prometheus_port)) {
      continue;
    }
    const absl::string_view text = absl::StripAsciiWhitespace(parts[1]);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value > 0 && value < int64_t{1} << 40) {
      active += value;
    }
  }
  return active;
}

std::vector<std::string> MakeEnvoyArguments(const EnvoyArguments& from) {
  std::vector<std::string> out = {"-c",
                                  from.config,
                                  "--drain-time-s",
                                  std::to_string(from.drain_seconds),
                                  "--drain-strategy",
                                  "immediate",
                                  "--local-address-ip-version",
                                  from.ipv6 ? "v6" : "v4",
                                  "--file-flush-interval-msec",
                                  "1000",
                                  "--disable-hot-restart",
                                  "--allow-unknown-static-fields",
                                  "--log-format"};
  out.emplace_back(
      from.json_log
          ? R"({"level":"%l","time":"%Y-%m-%dT%T.%fZ","scope":"envoy %n","msg":"%j","caller":"%g:%#","thread":%t})"
          : "%Y-%m-%dT%T.%fZ\t%l\tenvoy %n %g:%#\t%v\tthread=%t");
  // "warning,misc:error": a level for all, and levels of components.
  std::string level;
  std::vector<std::string> components;
  for (const absl::string_view part : absl::StrSplit(from.log_level, ',')) {
    const auto colons = std::count(part.begin(), part.end(), ':');
    if (colons == 0) level = std::string(part);
    if (colons == 1) components.emplace_back(part);
  }
  if (!level.empty()) out.insert(out.end(), {"-l", level});
  if (!components.empty()) {
    out.insert(out.end(), {"--component-log-level", absl::StrJoin(components, ",")});
  } else if (!from.component_log_level.empty()) {
    out.insert(out.end(), {"--component-log-level", from.component_log_level});
  }
  if (!from.config_yaml.empty()) out.insert(out.end(), {"--config-yaml", from.config_yaml});
  if (from.concurrency > 0) out.insert(out.end(), {"--concurrency", std::to_string(from.concurrency)});
  return out;
}

}  // namespace wavetank::agent
