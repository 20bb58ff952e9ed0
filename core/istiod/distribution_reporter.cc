#include "core/istiod/distribution_reporter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/kube/yaml.h"
#include "core/xds/connection.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

// istiod: pilot/pkg/xds/eventhandler.go, AllEventTypes.
constexpr XdsType kReported[] = {XdsType::kCds, XdsType::kLds, XdsType::kRds, XdsType::kEds};

// "GROUP/VERSION/RESOURCE/NAMESPACE/NAME".
std::string NameOf(const config::ConfigMeta& meta) {
  const kube::ResourceKind kind = config::ResourceKindOf(meta.kind);
  return fmt::format("{}/{}/{}/{}/{}", kind.group, kind.version, kind.resource, meta.ns, meta.name);
}

// Of "2023-09-01T00:00:05Z/7".
uint64_t PushNumber(const std::string& version) {
  uint64_t number = 0;
  const size_t slash = version.rfind('/');
  return slash != std::string::npos && absl::SimpleAtoi(version.substr(slash + 1), &number) ? number : 0;
}

}  // namespace

std::string ReportYaml(const DistributionReport& report) {
  std::string out = fmt::format("dataPlaneCount: {}\n", report.data_planes);
  if (report.in_progress.empty()) {
    out += "inProgressResources: {}\n";
  } else {
    out += "inProgressResources:\n";
    for (const auto& [resource, proxies] : report.in_progress) out += fmt::format("  {}: {}\n", resource, proxies);
  }
  return out + fmt::format("reporter: {}\n", report.reporter);
}

absl::StatusOr<DistributionReport> ParseReport(const std::string& yaml) {
  const absl::StatusOr<json> read = kube::ParseYaml(yaml, std::string(kReportKey));
  if (!read.ok()) return read.status();
  if (!read->is_object()) return absl::InvalidArgumentError(fmt::format("{}: it is no mapping", kReportKey));
  DistributionReport out;
  out.reporter = Text(*read, "reporter");
  // Anybody may have written it: sums over reporters stay in range.
  const auto count = [](int64_t said) { return std::clamp<int64_t>(said, 0, 1'000'000'000); };
  out.data_planes = count(Number(*read, "dataPlaneCount"));
  const json& resources = At(*read, "inProgressResources");
  if (!resources.is_object()) return out;
  for (const auto& [resource, proxies] : resources.items()) out.in_progress[resource] = count(NumberOf(proxies));
  return out;
}

DistributionReporter::DistributionReporter(Host& host, kube::Client& client, config::ConfigStore& configs,
                                           const DiscoveryServer& discovery, Options options)
    : host_(host), client_(client), discovery_(discovery), options_(std::move(options)) {
  for (int k = 0; k < config::kKinds; ++k) {
    const auto kind = static_cast<config::Kind>(k);
    // istiod: initRegistryEventHandlers passes these by.
    if (kind == config::Kind::kServiceEntry || kind == config::Kind::kWorkloadEntry) continue;
    configs.AddHandler(
        kind, [this, alive = std::weak_ptr<char>(alive_)](config::ConfigEvent event, const config::AnyConfigRef*,
                                                          const config::AnyConfigRef& now) {
          if (!alive.expired()) OnConfig(event, now);
        });
  }
}

void DistributionReporter::OnConfig(config::ConfigEvent event, const config::AnyConfigRef& config) {
  const config::ConfigMeta& meta = config::MetaOf(config);
  const std::string name = NameOf(meta);
  if (event == config::ConfigEvent::kDelete) {
    in_progress_.erase(name);
    return;
  }
  InProgress& known = in_progress_[name];
  // A status that was written is a change, too, but brings nothing to proxies.
  if (known.resource.empty() || known.generation != meta.generation) known.push = discovery_.pushes() + 1;
  known.generation = meta.generation;
  known.resource = fmt::format("{}/{}", name, meta.generation);
  known.completed = 0;
}

DistributionReport DistributionReporter::Report() const {
  DistributionReport out;
  out.reporter = options_.pod;
  for (const auto& [name, progress] : in_progress_) out.in_progress[progress.resource] = 0;
  for (const Connection* client : discovery_.Clients()) {
    const uint64_t push = client->last_push() == nullptr ? 0 : PushNumber(client->last_push()->version());
    for (const XdsType type : kReported) {
      const auto watched = client->proxy().watched_resources.find(type);
      if (watched == client->proxy().watched_resources.end() || watched->second.nonce_acked.empty()) continue;
      ++out.data_planes;
      if (watched->second.nonce_sent != watched->second.nonce_acked) continue;
      for (const auto& [name, progress] : in_progress_) {
        if (push >= progress.push) ++out.in_progress[progress.resource];
      }
    }
  }
  return out;
}

void DistributionReporter::Start() {
  WAVETANK_ASSERT(options_.interval > Duration::zero(), options_.interval);
  host_.RunAfter(options_.interval, [this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired() || stopped_) return;
    Write();
    Start();
  });
}

// What everybody has had for a minute is reported no more (removeCompletedResource).
void DistributionReporter::Write() {
  const DistributionReport report = Report();
  for (auto it = in_progress_.begin(); it != in_progress_.end();) {
    InProgress& progress = it->second;
    const int64_t proxies = report.in_progress.at(progress.resource);
    WAVETANK_ASSERT(proxies <= report.data_planes, proxies, report.data_planes);
    const bool everywhere = proxies == report.data_planes;
    if (everywhere) ++progress.completed;
    it = everywhere && progress.completed > Duration(1min) / options_.interval ? in_progress_.erase(it) : std::next(it);
  }
  std::string yaml = ReportYaml(report);
  if (yaml == written_) return;  // writing it again changes nothing at the API server
  written_ = std::move(yaml);
  absl::StatusOr<kube::ObjectRef> map = kube::Object::FromJson({{"apiVersion", "v1"},
                                                                {"kind", "ConfigMap"},
                                                                {"metadata",
                                                                 {{"name", options_.pod + "-distribution"},
                                                                  {"namespace", options_.ns},
                                                                  {"labels", {{std::string(kReportLabel), "true"}}}}},
                                                                {"data", {{std::string(kReportKey), written_}}}});
  if (!map.ok()) return;  // made of names that an API server has taken
  client_.Apply(*std::move(map), [this, alive = std::weak_ptr<char>(alive_)](const absl::StatusOr<kube::ObjectRef>& r) {
    if (!alive.expired() && !r.ok()) written_.clear();  // with the next report
  });
}

void DistributionReporter::Stop() {
  if (std::exchange(stopped_, true)) return;
  client_.Delete(kube::kinds::kConfigMap, {options_.ns, options_.pod + "-distribution"}, [](const absl::Status&) {});
}

}  // namespace wavetank::pilot
