#include "capacity/calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace wavetank::capacity {
namespace {

absl::Status CheckVersion(const Samples& samples, std::string_view which) {
  const std::string version = samples.LabelOf("pilot_info", "version");
  if (version.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: has no pilot_info, so these are no metrics of istiod; save :15014/metrics of its pod", which));
  }
  if (version.rfind("1.18", 0) != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: of Istio {}; the cost model is that of 1.18, whose terms another version does not have", which, version));
  }
  for (const char* needed : {"process_cpu_seconds_total", "process_resident_memory_bytes", "pilot_xds_pushes",
                             "pilot_xds", "pilot_services"}) {
    if (!samples.Has(needed)) {
      return absl::InvalidArgumentError(fmt::format("{}: lacks {}; save all of :15014/metrics", which, needed));
    }
  }
  // A sum over replicas is of no istiod: each has its process, and its own connections.
  std::vector<std::string> processes;
  samples.ForEach("process_cpu_seconds_total", [&](const std::map<std::string, std::string>& labels, double) {
    std::vector<std::string> words;
    for (const auto& [name, value] : labels) words.push_back(name + "=" + value);
    processes.push_back(words.empty() ? "without labels" : fmt::format("{}", fmt::join(words, ", ")));
  });
  if (processes.size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("{}: of {} processes ({}, and {}); the cost model is of one istiod: keep the series of one pod",
                    which, processes.size(), processes[0], processes[1]));
  }
  return absl::OkStatus();
}

// How often each thing was done in between, as processor time of the model.
struct Work {
  double push_ms = 0, incremental_ms = 0, full_ms = 0, idle_ms = 0;
  double Sum() const { return push_ms + incremental_ms + full_ms; }
};

void Scale(std::string_view name, double factor, Calibration* out) {
  const double value = out->parameters[name];
  if (value == 0) return;
  out->parameters.Set(name, value * factor, "calibrated");
  out->told.emplace_back(name);
}

}  // namespace

absl::StatusOr<Calibration> Calibrate(const Parameters& start, const Samples& before, const Samples& after,
                                      double endpoints, double clusters) {
  if (!std::isfinite(endpoints) || endpoints < 0 || !std::isfinite(clusters) || clusters < 1) {
    return absl::InvalidArgumentError(
        fmt::format("{} endpoints of {} clusters: write how many there are, as --endpoints 4000", endpoints, clusters));
  }
  if (absl::Status status = CheckVersion(before, "before"); !status.ok()) return status;
  if (absl::Status status = CheckVersion(after, "after"); !status.ok()) return status;
  const auto more = [&](std::string_view name, std::string_view label = {}, std::string_view value = {}) {
    return std::max(0.0, after.Sum(name, label, value)) - std::max(0.0, before.Sum(name, label, value));
  };
  const double cpu = more("process_cpu_seconds_total");
  if (cpu < 0) {
    return absl::InvalidArgumentError(
        "process_cpu_seconds_total is less after than before: another process, or the files are the wrong way round");
  }
  Calibration out{.parameters = start};
  const CostModel model(start);
  MeshSize mesh;
  mesh.proxies = std::max(1.0, after.Sum("pilot_xds"));
  mesh.services = std::max(0.0, after.Sum("pilot_services"));
  mesh.endpoints = endpoints;
  mesh.clusters = clusters;
  const double cds = more("pilot_xds_pushes", "type", "cds"), eds = more("pilot_xds_pushes", "type", "eds");
  const double full = std::max(0.0, cds), incremental = std::max(0.0, eds - cds);
  const double pushes = std::max(0.0, more("pilot_debounce_time_count"));
  const double events = std::max(0.0, more("pilot_inbound_updates"));
  if (full + incremental <= 0) {
    return absl::InvalidArgumentError(
        "pilot_xds_pushes did not grow: nothing was pushed in between; take the second scrape after changes");
  }
  const auto per_proxy = [&](Change change) {
    double sum = 0;
    for (const CostModel::Stage& stage : model.Push({mesh, change, 0, true}).stages) sum += stage.ms;
    return sum;
  };
  Work work;
  work.push_ms = pushes * start["push.fixed"] + events * start["push.event"] +
                 full / mesh.proxies * (start["push.context"] + mesh.services * start["push.context.service"]);
  work.incremental_ms = incremental * per_proxy(Change::kEndpoints);
  work.full_ms = full * per_proxy(Change::kService);
  const double seconds = std::max(0.0, more("istiod_uptime_seconds"));
  work.idle_ms = seconds * (start["idle.process"] + start["idle.proxy"] * mesh.proxies);
  out.cpu_seconds = cpu;
  out.predicted_seconds = (work.Sum() + work.idle_ms) / 1000;
  // Less than an idle istiod takes tells nothing of pushes: that they are for nothing is no answer.
  const bool cpu_tells = cpu * 1000 > work.idle_ms;
  out.cpu_factor = cpu_tells ? (cpu * 1000 - work.idle_ms) / work.Sum() : 1;
  // One sum tells one factor: it goes to what made up most of it, a tenth at least.
  const auto part = [&](double ms, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (cpu_tells && ms >= work.Sum() / 10) {
        Scale(name, out.cpu_factor, &out);
      } else {
        out.untold.emplace_back(name);
      }
    }
  };
  part(work.push_ms, {"push.fixed", "push.event", "push.context", "push.context.service"});
  part(work.incremental_ms, {"eds.proxy", "eds.name"});
  part(work.full_ms, {"full.proxy", "cds.service", "rds.service"});
  for (const char* name : {"eds.service", "eds.endpoint", "eds.miss", "start.process", "start.endpoint",
                           "connect.client", "connect.service", "connect.endpoint", "push.secret"}) {
    out.untold.emplace_back(name);
  }
  const Situation now{mesh, Change::kConnect, 0, full > 0};
  out.rss_mb = after.Sum("process_resident_memory_bytes") / (1024 * 1024);
  out.predicted_mb = model.Resident(now);
  // istiod with an empty mesh is what it is; the rest goes with the mesh.
  const double base = start["rss.process"];
  const bool memory_tells = out.rss_mb > base && out.predicted_mb > base;
  out.memory_factor = memory_tells ? (out.rss_mb - base) / (out.predicted_mb - base) : 1;
  for (const Term& term : Terms()) {
    if (term.place != Place::kResident || term.name == "rss.process") continue;
    if (memory_tells && term.count(now) > 0) {
      Scale(term.name, out.memory_factor, &out);
    } else {
      out.untold.emplace_back(term.name);
    }
  }
  out.extrapolates = Extrapolates(mesh);
  return out;
}

}  // namespace wavetank::capacity
