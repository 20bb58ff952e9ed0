#include "capacity/plan/evaluate.h"

#include <fmt/format.h>

#include <algorithm>

#include "capacity/fleet/churn.h"
#include "core/base/duration.h"

namespace wavetank::capacity {
namespace {

// Kubernetes' defaults: a node is not ready after 40 s, its pods are evicted after 300 more
// (node-monitor-grace-period; DefaultTolerationSeconds).
constexpr Duration kNodeNoticed = 40s, kEviction = 300s;
constexpr Duration kPodStart = 5s;  // scheduled, image there, container up

Duration Rank(const std::vector<Duration>& sorted, int64_t ppm) {
  if (sorted.empty()) return Duration::zero();
  return sorted[static_cast<size_t>((static_cast<int64_t>(sorted.size() - 1) * ppm + 500'000) / 1'000'000)];
}

Duration Ms(double ms) { return Duration(static_cast<int64_t>(ms * 1e6)); }

// `proxies` connect to `istiods` that each have `cpus`: the limit of streams a second, or the processors.
Duration Connected(const CostModel& model, const Fleet& fleet, MeshSize mesh, double proxies, double istiods,
                   double reviews) {
  if (proxies <= 0) return Duration::zero();
  mesh.proxies = std::max(1.0, proxies / istiods);
  const double each_ms = model.Cpu({mesh, Change::kConnect, 0, true}) / mesh.proxies +
                         model.parameters()["security.tls_handshake"] + model.parameters()["security.token_review"] -
                         model.parameters()["connect.refusal"] * mesh.proxies / 25;  // Envoys back off
  const double by_processor = mesh.proxies * std::max(0.1, each_ms) / fleet.istiod.cpus;
  const double by_limit = mesh.proxies * 1000 / static_cast<double>(fleet.istiod.requests_per_second);
  return std::max(Ms(std::max(by_processor, by_limit)), Reviewed(fleet.istiod, mesh.proxies, reviews));
}

// Of each second of the fleet's time.
ChangeRates RatesOf(const Outcome& outcome, double seconds) {
  ChangeRates rates;
  for (const auto& [kind, of] : outcome.kinds) {
    (kind == Change::kEndpoints ? rates.endpoints : rates.objects) += static_cast<double>(of.changes) / seconds;
  }
  return rates;
}

// An endpoint of what a proxy sees is applied as one load assignment; of a full push, clusters and routes are compared.
void Proxies(const CostModel& model, const ChangeRates& rates, Outcome* out) {
  const Parameters& p = model.parameters();
  const double seen = out->mesh.services > 0 ? out->mesh.Visible() / out->mesh.services : 0;
  out->envoy_mb = p["envoy.rss.process"] + p["envoy.rss.cluster"] * out->mesh.Visible() +
                  p["envoy.rss.endpoint"] * out->mesh.VisibleEndpoints();
  out->envoy_cpus = (rates.endpoints * seen * p["envoy.cpu.endpoint"] +
                     out->full_share * out->pushes_per_second * 2 * out->mesh.Visible() * p["envoy.cpu.unchanged"]) /
                    1000;
  out->envoy_first =
      Ms(out->mesh.Visible() * p["envoy.cpu.cluster"] + out->mesh.VisibleEndpoints() * p["envoy.cpu.first_endpoint"]);
}

void Recovery(const CostModel& model, const Fleet& fleet, Outcome* out) {
  out->start = kPodStart + Ms(model.Cpu({out->mesh, Change::kStart, 0, false}) / std::min(2.0, fleet.istiod.cpus));
  out->all_connect = AllServed(model, fleet, *out, ProxiesOf(fleet));
  out->istiod_recovery = ServedAgain(model, fleet, *out, ProxiesOfOne(fleet));
  // The pods of the node start elsewhere and connect.
  const double pods = ProxiesOf(fleet) / static_cast<double>(fleet.nodes);
  const auto istiods = static_cast<double>(fleet.istiod.replicas);
  out->node_recovery = kNodeNoticed + kEviction + fleet.churn.pod_start +
                       Connected(model, fleet, out->mesh, pods, istiods, kReviewsOfNewProxy);
}

}  // namespace

Duration Outcome::Quantile(int64_t ppm) const {
  return ppm >= 1'000'000 ? worst : ppm >= 990'000 ? p99 : ppm >= 900'000 ? p90 : p50;
}

double ProxiesOf(const Fleet& fleet) { return static_cast<double>(fleet.proxies + fleet.gateways); }

double ProxiesOfOne(const Fleet& fleet) { return ProxiesOf(fleet) / static_cast<double>(fleet.istiod.replicas); }

// Its proxies go to the others at once; a lone istiod has to come back first.
Duration ServedAgain(const CostModel& model, const Fleet& fleet, const Outcome& outcome, double proxies) {
  const auto replicas = static_cast<double>(fleet.istiod.replicas);
  return replicas > 1 ? Connected(model, fleet, outcome.mesh, proxies, replicas - 1, kReviewsOfStream)
                      : outcome.start + Connected(model, fleet, outcome.mesh, proxies, 1, kReviewsOfStream);
}

Duration AllServed(const CostModel& model, const Fleet& fleet, const Outcome& outcome, double proxies) {
  return Connected(model, fleet, outcome.mesh, proxies, static_cast<double>(fleet.istiod.replicas), kReviewsOfNewProxy);
}

double IdleCpus(const CostModel& model, const MeshSize& mesh) {
  return (model.parameters()["idle.process"] + model.parameters()["idle.proxy"] * mesh.proxies) / 1000;
}

QueueOptions QueueOf(const Fleet& fleet) {
  QueueOptions options;
  options.cpus = fleet.istiod.cpus;
  options.push_throttle = static_cast<int>(fleet.istiod.push_throttle);
  options.debounce_after = fleet.istiod.debounce_after;
  options.debounce_max = fleet.istiod.debounce_max;
  return options;
}

absl::StatusOr<Outcome> Evaluate(const CostModel& model, const Fleet& fleet, int samples, double faster) {
  Outcome out;
  out.mesh = SizeOf(fleet);
  const QueueOptions options = QueueOf(fleet);
  std::vector<Duration> all;
  std::map<Change, std::vector<Duration>> kinds;
  const double seconds = static_cast<double>(fleet.duration.count()) / 1e9;
  double pushes = 0, full = 0, proxy_pushes = 0, merged = 0, kilobytes = 0, busy = 0;
  for (int sample = 0; sample < samples; ++sample) {
    const absl::StatusOr<std::vector<ChangeEvent>> events =
        Churn(fleet, static_cast<uint64_t>(sample) * 1'000'003, faster);
    if (!events.ok()) return events.status();
    const QueueResult result = RunQueue(model, out.mesh, options, *events);
    std::vector<Duration> own;
    for (const Arrivals& a : result.arrivals) {
      own.push_back(a.last);
      kinds[a.change].push_back(a.last);
    }
    std::sort(own.begin(), own.end());
    const Duration p99 = Rank(own, 990'000);
    out.p99_low = sample == 0 ? p99 : std::min(out.p99_low, p99);
    out.p99_high = std::max(out.p99_high, p99);
    all.insert(all.end(), own.begin(), own.end());
    out.changes += static_cast<int64_t>(events->size());
    out.missing += static_cast<int64_t>(events->size() - result.arrivals.size());
    const double length = std::max(seconds, static_cast<double>(result.end.count()) / 1e9);
    const double used = static_cast<double>(result.busy.count()) / 1e9 / length;
    busy += used;
    out.busiest = std::max(out.busiest, used);
    pushes += static_cast<double>(result.pushes);
    full += static_cast<double>(result.full_pushes);
    proxy_pushes += static_cast<double>(result.proxy_pushes);
    merged += static_cast<double>(result.merged);
    kilobytes += result.kilobytes;
    out.most_waiting = std::max(out.most_waiting, result.most_waiting);
    out.debounced += result.waited;
  }
  const double idle = IdleCpus(model, out.mesh);
  out.cpus = busy / samples + idle;
  out.busiest += idle;
  std::sort(all.begin(), all.end());
  out.p50 = Rank(all, 500'000);
  out.p90 = Rank(all, 900'000);
  out.p99 = Rank(all, 990'000);
  out.worst = Rank(all, 1'000'000);
  for (auto& [kind, list] : kinds) {
    std::sort(list.begin(), list.end());
    out.kinds[kind] = {static_cast<int64_t>(list.size()), Rank(list, 500'000), Rank(list, 990'000), list.back()};
  }
  if (out.changes > 0) out.debounced /= out.changes;
  out.resident_mb = model.Resident({out.mesh, Change::kConnect, 0, false});
  out.after_full_mb = model.Resident({out.mesh, Change::kConnect, 0, true});
  out.pushes_per_second = pushes / samples / seconds;
  out.kilobytes_per_second = kilobytes / samples / seconds;
  out.full_share = pushes > 0 ? full / pushes : 0;
  out.merged_share = proxy_pushes + merged > 0 ? merged / (proxy_pushes + merged) : 0;
  const ChangeRates rates = RatesOf(out, seconds * samples);
  out.api = ApiLoadOf(model, fleet, out.mesh, rates);
  Proxies(model, rates, &out);
  Recovery(model, fleet, &out);
  return out;
}

std::string Breaks(const Slo& slo, const Fleet& fleet, const Outcome& outcome) {
  if (slo.limit > Duration::zero() && outcome.Quantile(slo.convergence_ppm) > slo.limit) {
    return fmt::format("convergence is {}", FormatDuration(outcome.Quantile(slo.convergence_ppm)));
  }
  if (slo.cpu_ppm > 0 && outcome.busiest > fleet.istiod.cpus * static_cast<double>(slo.cpu_ppm) / 1e6) {
    return fmt::format("{:.2f} of {:g} CPUs are used", outcome.busiest, fleet.istiod.cpus);
  }
  if (slo.memory_ppm > 0 &&
      outcome.after_full_mb > fleet.istiod.memory_mb * static_cast<double>(slo.memory_ppm) / 1e6) {
    return fmt::format("{:.0f} of {:.0f} MB are used", outcome.after_full_mb, fleet.istiod.memory_mb);
  }
  if (slo.no_error && outcome.after_full_mb > fleet.istiod.memory_mb) {
    return fmt::format("{:.0f} MB are needed and {:.0f} allowed: istiod is killed", outcome.after_full_mb,
                       fleet.istiod.memory_mb);
  }
  if (slo.no_error && outcome.missing > 0) return fmt::format("{} changes do not arrive", outcome.missing);
  return "";
}

}  // namespace wavetank::capacity
