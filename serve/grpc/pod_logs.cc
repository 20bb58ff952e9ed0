#include "serve/grpc/pod_logs.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "fakes/envoy/access_log/access_log.h"
#include "fmt/format.h"
#include "replay/recorder.h"
#include "sim/agent/pod_agent.h"
#include "sim/pod_process.h"
#include "sim/world.h"
#include "sim/world_site.h"

namespace wavetank::serve {
namespace {

constexpr size_t kKeptLines = 1000;

bool SaysJson(const nlohmann::json& pod, std::string_view container) {
  for (const nlohmann::json& one : Items(At(pod, {"spec", "containers"}))) {
    if (Text(one, "name") != container) continue;
    for (const nlohmann::json& argument : Items(At(one, "args"))) {
      const std::string text = TextOf(argument);
      if (text == "--log_as_json" || text == "--log_as_json=true") return true;
    }
  }
  return false;
}

}  // namespace

void PodLogs::Printed::Add(Time at, std::string line) {
  lines.emplace_back(at, std::move(line));
  if (lines.size() <= kKeptLines) return;
  lines.pop_front();
  ++forgotten;
}

void PodLogs::Watch(sim::World& world) {
  world.CollectAccessLogs([this, &world](const sim::PodProcess& pod, const envoysim::AccessLogLine& line) {
    if (line.path != "/dev/stdout" && line.path != "/dev/stderr") return;
    std::string text(line.text);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    proxies_[pod.name()].Add(world.Now(), std::move(text));
  });
  world.on_istiod_log = [this, &world](const std::string& istiod, Time at, const LogLine& line) {
    OfIstiod(world, istiod, at, replay::LineOf(at, line));
  };
  world.kernel().AddObserver([this, &world](const sim::TraceEvent& event) {
    if (!replay::IsLoggedBySomeone(event.record.kind)) return;
    const replay::LoggedEvent logged = replay::Logged(world.kernel(), event);
    OfIstiods(world, logged);
    OfProxy(logged);
  });
}

// What its scopes let through.
void PodLogs::OfIstiod(const sim::World& world, const std::string& istiod, Time at, const std::string& line) {
  Printed& printed = istiods_[istiod];
  const sim::World::Site::IstiodLog* const log = sim::LogOfIstiod(world, istiod);
  if (log == nullptr || log->scopes->Printed(at, line)) printed.Add(at, line);
}

// Every istiod's log follows every event: which proxies are its own is said once.
void PodLogs::OfIstiods(const sim::World& world, const replay::LoggedEvent& event) {
  const bool own = event.kind == TraceKind::kConfigUpdate || event.kind == TraceKind::kPushContextReady;
  if (own && !logs_.contains(event.subject)) {
    istiods_[event.subject];
    logs_.try_emplace(
        event.subject, event.subject,
        [this, &world, name = event.subject](Time at, const std::string& line) { OfIstiod(world, name, at, line); });
  }
  for (auto& [name, printed] : istiods_) {
    if (const auto log = logs_.find(name); log != logs_.end()) log->second.Add(event);
  }
}

void PodLogs::OfProxy(const replay::LoggedEvent& event) {
  const std::string name = event.subject.substr(0, event.subject.find('/'));
  if (name.find('@') == std::string::npos) return;
  Printed& printed = proxies_[name];
  const auto [log, first] =
      logs_.try_emplace(name, name, [&printed](Time at, const std::string& line) { printed.Add(at, line); });
  log->second.Add(event);
}

std::vector<std::pair<Time, std::string>> PodLogs::After(Place* place, const sim::PodProcess& pod,
                                                         std::string_view container) const {
  std::vector<std::pair<Time, std::string>> all;
  const auto take = [&](const auto& lines, uint64_t forgotten, uint64_t* read) {
    const uint64_t first = std::max(*read, forgotten) - forgotten;
    *read = forgotten + lines.size();
    for (size_t i = first; i < lines.size(); ++i) all.push_back(lines[i]);
  };
  const auto printed = [&](const std::map<std::string, Printed>& from, const std::string& name) {
    if (const auto it = from.find(name); it != from.end())
      take(it->second.lines, it->second.forgotten, &place->printed);
  };
  if (container == "discovery") printed(istiods_, fmt::format("{}.{}", pod.pod()->meta.name, pod.site().name));
  if (container == "istio-proxy") {
    printed(proxies_, pod.name());
    if (const sim::PodAgent* agent = pod.pod_agent(); agent != nullptr) {
      take(agent->log(), agent->forgotten_lines(), &place->agent);
      std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    }
  }
  const bool json = SaysJson(pod.pod()->body, container);
  for (auto& [at, line] : all) {
    const bool access_log = line.find('\t') == std::string::npos;
    if (json && !access_log) line = replay::AsJson(line);
    line += '\n';
  }
  return all;
}

}  // namespace wavetank::serve
