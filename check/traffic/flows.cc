#include "check/traffic/flows.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/kube/types.h"
#include "fakes/envoy/tcp/response_flags.h"
#include "fmt/format.h"
#include "scenarios/answers/failure_words.h"
#include "scenarios/answers/request_story.h"
#include "scenarios/mesh/world.h"
#include "sim/inputs/kinds/traffic.h"
#include "sim/signing/istio_csr_settings.h"

namespace wavetank::check {
namespace {

bool IsClient(const Mesh& mesh, const sim::PodProcess& pod) {
  return !pod.app().empty() && pod.app() != "istiod" && !pod.router() && pod.pod()->meta.ns != "kube-system" &&
         pod.pod()->meta.ns != "istio-system" && !mesh.HoldsControlPlane(pod.pod()->meta.ns) &&
         !sim::IstioCsrSettings::Of(pod.pod()->body);
}

// Namespace, Service and port that lead to application pods in some cluster.
std::set<std::tuple<std::string, std::string, int>> Targets(const Mesh& mesh) {
  std::set<std::tuple<std::string, std::string, int>> out;
  for (const auto& cluster : mesh.clusters()) {
    for (const kube::ObjectRef& object : mesh.List(*cluster, "Service")) {
      const kube::Service& service = kube::ParseService(*object);
      if (!service.has_selector || object->meta.ns == "istio-system" || mesh.HoldsControlPlane(object->meta.ns) ||
          object->meta.ns == "kube-system")
        continue;
      for (const kube::ServicePort& port : service.ports) {
        for (const sim::PodProcess* pod : mesh.world().Pods()) {
          bool selected = pod->pod()->meta.ns == object->meta.ns && !service.selector.empty();
          for (const auto& [key, value] : service.selector) {
            const auto it = pod->pod()->meta.labels.find(key);
            selected = selected && it != pod->pod()->meta.labels.end() && it->second == value;
          }
          // Where nothing listens, everything fails before and after.
          if (!selected || port.protocol != "TCP" || sim::IstioCsrSettings::Of(pod->pod()->body)) continue;
          // A headless one's name is that of its pods' addresses, at which nothing maps ports.
          const int target =
              service.cluster_ip == "None" ? port.port : kube::TargetPortOf(port, kube::ParsePod(*pod->pod()));
          if (pod->Listens(static_cast<uint16_t>(target))) out.insert({object->meta.ns, object->meta.name, port.port});
        }
      }
    }
  }
  return out;
}

}  // namespace

std::vector<scenario::FlowSpec> FlowsOf(const Mesh& mesh, size_t limit) {
  return mesh.scenario().flows.empty() ? EveryFlow(mesh, limit, false) : mesh.scenario().flows;
}

std::vector<scenario::FlowSpec> EveryFlow(const Mesh& mesh, size_t limit, bool injected) {
  std::set<std::tuple<std::string, std::string, std::string>> clients;
  for (const sim::PodProcess* pod : mesh.world().Pods()) {
    if (IsClient(mesh, *pod) && (!injected || pod->bootstrap()))
      clients.insert({pod->site().name, pod->pod()->meta.ns, pod->app()});
  }
  std::vector<scenario::FlowSpec> out;
  for (const auto& [ns, service, port] : Targets(mesh)) {
    for (const auto& [cluster, client_ns, app] : clients) {
      if (out.size() >= limit) return out;
      if (app == service && client_ns == ns) continue;  // itself
      scenario::FlowSpec flow;
      flow.name = fmt::format("{}.{}@{} -> {}.{}:{}", app, client_ns, cluster, service, ns, port);
      flow.from_cluster = cluster;
      flow.from_namespace = client_ns;
      flow.from_app = app;
      flow.host = fmt::format("{}.{}", service, ns);
      flow.port = port;
      out.push_back(std::move(flow));
    }
  }
  return out;
}

std::string FailureReason::Text() const {
  std::string out = flags.empty() || flags == "-" ? "" : flags + ": ";
  out += words.empty() ? "no answer" : words;
  return upstream.empty() ? out : out + " at " + upstream;
}

Duration Window::Percentile(int percent) const {
  if (latencies_ns.empty()) return {};
  std::vector<int64_t> sorted = latencies_ns;
  const size_t at = std::min(sorted.size() - 1, sorted.size() * static_cast<size_t>(percent) / 100);
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return Duration(sorted[at]);
}

void Window::Merge(const Window& other) {
  sent += other.sent;
  failed += other.failed;
  retried += other.retried;
  for (const auto& [cluster, count] : other.by_cluster) by_cluster[cluster] += count;
  for (const auto& [reason, count] : other.reasons) reasons[reason] += count;
  latencies_ns.insert(latencies_ns.end(), other.latencies_ns.begin(), other.latencies_ns.end());
}

absl::StatusOr<std::unique_ptr<FlowMeter>> FlowMeter::Start(sim::World& world,
                                                            const std::vector<scenario::FlowSpec>& flows, int64_t rate,
                                                            std::vector<sim::inputs::StartTraffic> traffic) {
  std::unique_ptr<FlowMeter> out(new FlowMeter(world));
  out->windows_.resize(flows.size() + traffic.size());
  out->failures_.resize(flows.size() + traffic.size());
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < flows.size(); ++i) {
    scenario::Traffic of_flow;
    of_flow.flow = flows[i].name;
    of_flow.rate_per_kilosecond = std::min(flows[i].rate_per_kilosecond, rate * 1000);
    const std::string id = fmt::format("check#{}", i);
    out->ids_.push_back(id);
    out->periods_.push_back(scenario::PeriodOf(of_flow.rate_per_kilosecond));
    index[id] = i;
    if (absl::Status status = world.Do(scenario::MakeTraffic(flows[i], of_flow, id)); !status.ok()) return status;
  }
  for (sim::inputs::StartTraffic& t : traffic) {
    t.id = fmt::format("check#{}", out->ids_.size());
    t.requests = 0;
    t.period = std::max(t.period, Duration(1'000'000'000 / std::max<int64_t>(rate, 1)));
    t.ramp = t.last_period = {};
    index[t.id] = out->ids_.size();
    out->ids_.push_back(t.id);
    out->periods_.push_back(t.period);
    if (absl::Status status = world.Do(t); !status.ok()) return status;
  }
  FlowMeter* meter = out.get();
  out->requests_ = world.commons().on_request.Add([meter, index](const sim::TrafficRecord& record) {
    const auto it = index.find(record.spec.id);
    if (it != index.end()) meter->Add(it->second, record);
  });
  return out;
}

void FlowMeter::Add(size_t flow, const sim::TrafficRecord& record) {
  const Duration since = record.sent - start_;
  Window& window = windows_[flow][std::chrono::floor<std::chrono::seconds>(since).count()];
  ++window.sent;
  window.retried += record.record.attempts > 1;
  if (sim::Answered(record)) {
    ++window.by_cluster[record.server->cluster];
    window.latencies_ns.push_back((record.done - record.sent).count());
    return;
  }
  ++window.failed;
  FailureReason reason;
  reason.flags = envoysim::ResponseFlagsToString(record.record.flags);
  // A policy closes connections of TCP, and answers nothing.
  const std::string_view closer = record.record.server_details;
  const bool told =
      (record.record.details == "via_upstream" && !closer.empty()) || closer.find("rbac_access_denied") != closer.npos;
  reason.details = std::string(told ? closer : std::string_view(record.record.details));
  reason.words = scenario::FailureInWords(scenario::FactsOf(record.record));
  if (const std::string by = scenario::BlamedObject(record.record); !by.empty()) reason.words += " (" + by + ")";
  if (record.record.upstream.port != 0) {
    reason.upstream = names_.Of(record.record.upstream);
    const uint16_t code = record.record.code;
    const std::string obstacle = code == 0 || code == 503 || code == 504
                                     ? names_.Obstacle(record.client, record.record.upstream)
                                     : std::string();
    if (!obstacle.empty()) reason.words += " (" + obstacle + ")";
  }
  ++window.reasons[reason];
  failures_[flow].push_back(record.sent);
}

void FlowMeter::Finish(Duration patience) {
  for (const std::string& id : ids_) world_.Do(sim::inputs::StopTraffic{id}).IgnoreError();
  const Time deadline = world_.Now() + patience;
  const auto done = [&] {
    return std::all_of(ids_.begin(), ids_.end(), [&](const std::string& id) { return world_.TrafficDone(id); });
  };
  while (!done() && world_.Now() < deadline) world_.RunUntil(world_.Now() + 100ms);
  for (size_t i = 0; i < ids_.size(); ++i) CountUnanswered(i, world_.TrafficPending(ids_[i]));
}

// Nobody waits for them any longer. A flow sends at a steady rate, so that the seconds in which fewer have ended than
// were sent are theirs.
void FlowMeter::CountUnanswered(size_t flow, int64_t pending) {
  int64_t total = pending;
  for (const auto& [second, window] : windows_[flow]) total += window.sent;
  std::map<int64_t, int64_t> sent;
  for (int64_t k = 0; k < total && pending > 0; ++k) ++sent[k * periods_[flow].count() / 1'000'000'000];
  for (const auto& [second, count] : sent) {
    Window& window = windows_[flow][second];
    const int64_t missing = std::min(pending, count - window.sent);
    if (missing <= 0) continue;
    pending -= missing;
    window.sent += missing;
    window.failed += missing;
    window.reasons[FailureReason{}] += missing;
    failures_[flow].push_back(start_ + Duration(second * 1'000'000'000));
  }
}

Window FlowMeter::Between(size_t flow, int64_t from, int64_t to) const {
  Window out;
  for (auto it = windows_[flow].lower_bound(from); it != windows_[flow].end() && it->first < to; ++it)
    out.Merge(it->second);
  return out;
}

Time FlowMeter::LastFailure(size_t flow, Time since) const {
  Time last = since - 1ns;
  for (const Time at : failures_[flow]) last = std::max(last, at);
  return last;
}

}  // namespace wavetank::check
