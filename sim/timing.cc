#include "sim/timing.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <optional>

#include "core/base/duration.h"

namespace wavetank::sim {
namespace {

struct Quantity {
  std::string name, meaning;
  std::function<std::string(const Timing&)> print;
  std::function<bool(Timing&, std::string_view)> parse;
};

// Nanoseconds with up to three decimals, as picoseconds: "4ns", "300ns", "1.5us", "10ms", "1s".
std::optional<int64_t> ParsePicoseconds(std::string_view text) {
  static constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"ps", 1}, {"ns", 1'000}, {"us", 1'000'000}, {"ms", 1'000'000'000}, {"s", 1'000'000'000'000}};
  for (const auto& [unit, scale] : kUnits) {
    if (text.size() <= unit.size() || text.substr(text.size() - unit.size()) != unit) continue;
    std::string_view number = text.substr(0, text.size() - unit.size());
    while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
    int64_t whole = 0, fraction = 0;
    const char* const end = number.data() + number.size();
    auto [at, error] = std::from_chars(number.data(), end, whole);
    if (error != std::errc() || whole < 0 || whole > 86'400'000) continue;
    if (at != end && *at == '.') {
      int64_t weight = scale / 10;
      for (++at; at != end && *at >= '0' && *at <= '9'; ++at, weight /= 10) fraction += (*at - '0') * weight;
    }
    if (at == end) return whole * scale + fraction;
  }
  return std::nullopt;
}

std::string PrintPicoseconds(int64_t ps) {
  if (ps % 1'000'000'000 == 0) return fmt::format("{}ms", ps / 1'000'000'000);
  if (ps % 1'000'000 == 0) return fmt::format("{}us", ps / 1'000'000);
  if (ps % 1'000 == 0) return fmt::format("{}ns", ps / 1'000);
  return fmt::format("{}ps", ps);
}

// Exactly, with the longest unit of which it is a multiple.
std::string PrintTime(Duration time) {
  if (time >= 1min && time % 1min == Duration::zero()) return fmt::format("{}m", time / 1min);
  return PrintPicoseconds(time.count() * 1000);
}

Quantity TimeOf(std::string name, Duration Timing::*member, std::string meaning) {
  return {std::move(name), std::move(meaning), [member](const Timing& t) { return PrintTime(t.*member); },
          [member](Timing& t, std::string_view text) {
            const std::optional<Duration> time = ParseDuration(text);
            if (time) t.*member = *time;
            return time.has_value();
          }};
}

constexpr int64_t kMostOfACount = 1'000'000'000;  // of whatever it is: an int holds it

Quantity Count(std::string name, int64_t Timing::*member, std::string meaning, int64_t least = 1) {
  return {std::move(name), std::move(meaning), [member](const Timing& t) { return std::to_string(t.*member); },
          [member, least](Timing& t, std::string_view text) {
            int64_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || value < least || value > kMostOfACount) {
              return false;
            }
            t.*member = value;
            return true;
          }};
}

constexpr std::string_view WorkName(WorkKind kind) {
  switch (kind) {
    case WorkKind::kRegistryEvent:
      return "registry_event";
    case WorkKind::kSecretSync:
      return "secret_sync";
    case WorkKind::kPushContextInit:
      return "push_context_init";
    case WorkKind::kPushStart:
      return "push_start";
    case WorkKind::kGenerateCds:
      return "generate_cds";
    case WorkKind::kGenerateEds:
      return "generate_eds";
    case WorkKind::kGenerateLds:
      return "generate_lds";
    case WorkKind::kGenerateRds:
      return "generate_rds";
    case WorkKind::kGenerateSds:
      return "generate_sds";
    case WorkKind::kProxyState:
      return "proxy_state";
    case WorkKind::kSendResponse:
      return "send_response";
    case WorkKind::kReceiveRequest:
      return "receive_request";
    case WorkKind::kConnect:
      return "connect";
    case WorkKind::kSignCertificate:
      return "sign_certificate";
    case WorkKind::kInjectPod:
      return "inject_pod";
  }
  return "";
}

const std::vector<Quantity>& Quantities() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<Quantity>{
        TimeOf("kube.api_request", &Timing::api_request, "a request to the API server, without the line"),
        TimeOf("kube.watch_delay", &Timing::watch_delay, "written to event on the watcher's socket"),
        TimeOf("kube.watch_jitter", &Timing::watch_jitter, "added to it, uniform"),
        TimeOf("kube.schedule", &Timing::schedule, "pod created to bound"),
        TimeOf("kube.container_start", &Timing::container_start, "bound to running"),
        TimeOf("kube.readiness", &Timing::readiness, "running to ready"),
        TimeOf("kube.readiness_jitter", &Timing::readiness_jitter, "added to it, uniform"),
        TimeOf("kube.termination", &Timing::termination, "terminating to gone"),
        TimeOf("kube.endpoint_slice", &Timing::endpoint_slice, "change to EndpointSlice written"),
        TimeOf("kube.load_balancer", &Timing::load_balancer, "Service created to address given"),
        TimeOf("kube.kube_proxy", &Timing::kube_proxy, "EndpointSlice written to VIPs follow"),
        TimeOf("kube.dns_reload", &Timing::dns_reload,
               "CoreDNS's ConfigMap changed to its plugin reload has taken it, at most; uniform below"),
        TimeOf("kube.load_balancer_check", &Timing::load_balancer_check,
               "between a load balancer's health checks of a node; 0s: it knows at once"),
        Count("kube.load_balancer_failures", &Timing::load_balancer_failures,
              "checks that fail in a row before a node gets no connections"),
        Count("kube.load_balancer_successes", &Timing::load_balancer_successes,
              "checks that succeed in a row before it gets some again"),
        TimeOf("line.inside", &Timing::line_inside, "one way within a site"),
        TimeOf("line.between", &Timing::line_between, "one way between sites"),
        TimeOf("envoy.xds_retry_base", &Timing::xds_retry_base, "first wait before the ADS stream is opened again"),
        TimeOf("envoy.xds_retry_max", &Timing::xds_retry_max, "up to which it doubles"),
        Count("istiod.cpus", &Timing::istiod_cpus, "processors of each istiod; 0: its work takes no time", 0),
        TimeOf("istiod.connection_age", &Timing::connection_age,
               "keepaliveMaxServerConnectionAge, 10 % more or less; 0s: none"),
        TimeOf("istiod.connection_age_grace", &Timing::connection_age_grace, "from that age to the cut"),
        TimeOf("istiod.debounce_after", &Timing::debounce_after, "PILOT_DEBOUNCE_AFTER"),
        TimeOf("istiod.debounce_max", &Timing::debounce_max, "PILOT_DEBOUNCE_MAX"),
        Count("istiod.push_throttle", &Timing::push_throttle, "PILOT_PUSH_THROTTLE"),
        Count("istiod.connections_per_second", &Timing::connections_per_second,
              "PILOT_MAX_REQUESTS_PER_SECOND; 0: no limit", 0),
        Count("istiod.cached_ppm", &Timing::cached_ppm, "share of a generation's cost that a cached result costs, ppm"),
    };
    for (int i = 0; i < kWorkKinds; ++i) {
      const auto index = static_cast<size_t>(i);
      const std::string base = fmt::format("istiod.{}", WorkName(static_cast<WorkKind>(i)));
      const auto part = [&](const char* suffix, int64_t WorkCost::*member, int64_t scale, const char* meaning) {
        all->push_back(
            {base + suffix, meaning,
             [index, member, scale](const Timing& t) { return PrintPicoseconds(t.work[index].*member * scale); },
             [index, member, scale](Timing& t, std::string_view text) {
               const std::optional<int64_t> ps = ParsePicoseconds(text);
               if (ps) t.work[index].*member = *ps / scale;
               return ps.has_value();
             }});
      };
      part(".fixed", &WorkCost::fixed_ns, 1000, "processor time per piece of work");
      part(".per_unit", &WorkCost::per_unit_ps, 1, "and per unit (core/base/cost.h)");
      part(".per_extra", &WorkCost::per_extra_ps, 1, "and per extra unit");
    }
    return all;
  }();
  return *kAll;
}

}  // namespace

std::array<WorkCost, kWorkKinds> Timing::DefaultWork() {
  std::array<WorkCost, kWorkKinds> work{};
  const auto set = [&](WorkKind kind, int64_t fixed_us, int64_t per_unit_ns, int64_t per_extra_ps) {
    work[static_cast<size_t>(kind)] = {fixed_us * 1000, per_unit_ns * 1000, per_extra_ps};
  };
  set(WorkKind::kRegistryEvent, 500, 1'000, 0);
  set(WorkKind::kSecretSync, 6'600, 2'000, 0);
  set(WorkKind::kPushContextInit, 230, 15'000, 250'000);
  set(WorkKind::kPushStart, 0, 100, 600'000);
  set(WorkKind::kGenerateCds, 60, 0, 5'000);
  set(WorkKind::kGenerateEds, 70, 0, 900'000);
  set(WorkKind::kGenerateLds, 60, 0, 5'000);
  set(WorkKind::kGenerateRds, 60, 0, 5'000);
  set(WorkKind::kGenerateSds, 40, 20'000, 0);
  set(WorkKind::kProxyState, 50, 0, 0);
  set(WorkKind::kSendResponse, 45, 6, 0);
  set(WorkKind::kReceiveRequest, 28, 200, 0);
  set(WorkKind::kConnect, 4'000, 0, 0);
  set(WorkKind::kSignCertificate, 400, 0, 0);
  set(WorkKind::kInjectPod, 1'500, 0, 0);
  return work;
}

Duration Timing::Cost(const Work& w) const {
  const WorkCost& cost = work[static_cast<size_t>(w.kind)];
  int64_t ns = cost.fixed_ns + (cost.per_unit_ps * w.units + cost.per_extra_ps * w.extra) / 1000;
  if (w.cached) ns = ns / 1000 * cached_ppm / 1000;
  return Duration(ns);
}

absl::Status Timing::Set(std::string_view name, std::string_view value) {
  for (const Quantity& quantity : Quantities()) {
    if (quantity.name != name) continue;
    if (quantity.parse(*this, value)) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("timing {}: '{}' cannot be read; write it like its default, {}", name,
                                                  value, quantity.print(Timing())));
  }
  return absl::InvalidArgumentError(fmt::format("timing '{}' is unknown; `wavetank timing` lists the names", name));
}

std::vector<TimingRow> TimingTable(const Timing& timing) {
  std::vector<TimingRow> rows;
  for (const Quantity& quantity : Quantities())
    rows.push_back({quantity.name, quantity.print(timing), quantity.meaning});
  return rows;
}

}  // namespace wavetank::sim
