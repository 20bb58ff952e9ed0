#include "core/agent/probes.h"

#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::agent {
namespace {

using nlohmann::json;

// The number behind "NAME:" in the page; 0 if it is not there, as the real one takes it.
uint64_t Stat(std::string_view page, std::string_view name, bool* found = nullptr) {
  for (const absl::string_view each : absl::StrSplit(absl::string_view(page.data(), page.size()), '\n')) {
    const std::string_view line(each.data(), each.size());
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    if (found != nullptr) *found = true;
    const absl::string_view text = absl::StripAsciiWhitespace(each.substr(name.size() + 1));
    uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  return 0;
}

absl::Status BadProber(std::string text) { return absl::InvalidArgumentError(text); }

bool IsProbePath(std::string_view path) {
  constexpr std::string_view kPrefix = "/app-health/";
  if (!path.starts_with(kPrefix)) return false;
  path.remove_prefix(kPrefix.size());
  const size_t slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos) return false;
  const std::string_view kind = path.substr(slash + 1);
  return kind == "livez" || kind == "readyz" || kind == "startupz";
}

std::string StringOf(const json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

absl::StatusOr<uint16_t> PortOf(const json& object, std::string_view path) {
  const auto it = object.find("port");
  if (it == object.end() || !it->is_number_integer() || *it < 1 || *it > 65535) {
    return BadProber(fmt::format("invalid prober config for {}, the port must be int type", path));
  }
  return it->get<uint16_t>();
}

}  // namespace

std::string_view LacksConfiguration(const Updates& cds, const Updates& lds) {
  if (cds.accepted > 0 && lds.accepted > 0) return {};
  if (cds.accepted == 0 && lds.accepted == 0) return "config not received from XDS server (is Istiod running?)";
  if (lds.rejected > 0 || cds.rejected > 0) return "config received from XDS server, but was rejected";
  return "config not fully received from XDS server";
}

absl::Status ReadyProbe::OnUpdates(const absl::StatusOr<std::string>& page) {
  if (configured_) return absl::OkStatus();
  if (!page.ok()) return page.status();
  const Updates cds{Stat(*page, "cluster_manager.cds.update_success"),
                    Stat(*page, "cluster_manager.cds.update_rejected")};
  const Updates lds{Stat(*page, "listener_manager.lds.update_success"),
                    Stat(*page, "listener_manager.lds.update_rejected")};
  const std::string_view lacks = LacksConfiguration(cds, lds);
  configured_ = lacks.empty();
  if (configured_) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{}: cds updates: {} successful, {} rejected; lds updates: {} successful, {} rejected", lacks,
                  cds.accepted, cds.rejected, lds.accepted, lds.rejected));
}

absl::Status ReadyProbe::OnState(const absl::StatusOr<std::string>& page) {
  if (live_) return absl::OkStatus();
  const auto failed = [](std::string_view why) {
    return absl::UnavailableError(fmt::format("failed to get readiness stats: {}", why));
  };
  if (!page.ok()) return failed(Message(page.status()));
  bool state_known = false, workers_known = false;
  const uint64_t state = Stat(*page, "server.state", &state_known);
  const uint64_t workers = Stat(*page, "listener_manager.workers_started", &workers_known);
  if (!state_known) return failed(fmt::format("server.state is not yet updated: {}", *page));
  if (!workers_known) return failed(fmt::format("listener_manager.workers_started is not yet updated: {}", *page));
  if (state != 0) {
    static constexpr const char* kStates[] = {"LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"};
    return absl::UnavailableError(fmt::format("server is not live, current state is: {}",
                                              state < std::size(kStates) ? kStates[state] : std::to_string(state)));
  }
  if (workers != 1) return absl::UnavailableError("workers have not yet started");
  live_ = true;
  return absl::OkStatus();
}

absl::Status ReadyProbe::Terminating() {
  return absl::UnavailableError("server is not live, current state is: DRAINING");
}

absl::Status DnsReadiness(bool table_ready) {
  return table_ready ? absl::OkStatus()
                     : absl::UnavailableError("istio DNS capture is turned ON and DNS lookup table is not ready yet");
}

absl::StatusOr<AppProbers> ParseAppProbers(std::string_view text) {
  const json all = ParseJson(std::string(text));
  if (!all.is_object()) return BadProber("failed to decode app prober: ISTIO_KUBE_APP_PROBERS is no JSON object");
  AppProbers out;
  for (const auto& [path, prober] : all.items()) {
    if (!IsProbePath(path)) {
      return BadProber(
          fmt::format("invalid path, must be in form of regex pattern "
                      "^/app-health/[^/]+/(livez|readyz|startupz)$: {}",
                      path));
    }
    int kinds = 0;
    AppProber one;
    for (const auto& [field, kind] :
         {std::pair("httpGet", AppProber::Kind::kHttp), std::pair("tcpSocket", AppProber::Kind::kTcp),
          std::pair("grpc", AppProber::Kind::kGrpc)}) {
      if (!prober.is_object() || !prober.contains(field) || !prober[field].is_object()) continue;
      ++kinds;
      const json& spec = prober[field];
      one.kind = kind;
      const absl::StatusOr<uint16_t> port = PortOf(spec, path);
      if (!port.ok()) return port.status();
      one.port = *port;
      if (kind == AppProber::Kind::kGrpc) one.service = StringOf(spec, "service");
      if (kind != AppProber::Kind::kHttp) continue;
      one.path = StringOf(spec, "path");
      if (!one.path.starts_with('/')) one.path.insert(0, 1, '/');
      one.https = StringOf(spec, "scheme") == "HTTPS";
      one.host = StringOf(spec, "host");
      const auto headers = spec.find("httpHeaders");
      if (headers == spec.end() || !headers->is_array()) continue;
      for (const json& header : *headers) {
        if (header.is_object()) one.headers[StringOf(header, "name")] = StringOf(header, "value");
      }
    }
    if (kinds != 1) return BadProber("invalid prober type, must be one of type httpGet, tcpSocket or gRPC");
    const auto timeout = prober.find("timeoutSeconds");
    if (timeout != prober.end() && timeout->is_number_integer() && *timeout > 0 && *timeout < 86400) {
      one.timeout = std::chrono::seconds(timeout->get<int64_t>());
    }
    out[path] = std::move(one);
  }
  return out;
}

int AppProbeStatus(int application_status) {
  if (application_status == 0) return 500;
  return application_status >= 300 && application_status < 400 ? 200 : application_status;
}

std::optional<bool> HealthTally::OnProbe(bool healthy) {
  int& count = healthy ? successes_ : failures_;
  (healthy ? failures_ : successes_) = 0;
  ++count;
  if (count != (healthy ? success_threshold_ : failure_threshold_) || last_ == healthy) return std::nullopt;
  count = 0;
  last_ = healthy;
  return healthy;
}

}  // namespace wavetank::agent
