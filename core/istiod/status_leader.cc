#include "core/istiod/status_leader.h"

#include <utility>

#include "core/base/json_access.h"
#include "core/config/store/store.h"
#include "core/istiod/distribution_reporter.h"
#include "core/kube/time_format.h"
#include "core/kube/types.h"
#include "core/x509/calendar.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

constexpr Duration kInterval = 200ms, kStale = 1min, kResync = 1min;

// As reports name it; empty for kinds that are none of Istio's with proxies behind them.
std::string ResourceOf(const kube::Object& object) {
  for (int k = 0; k < config::kKinds; ++k) {
    const kube::ResourceKind kind = config::ResourceKindOf(static_cast<config::Kind>(k));
    if (kind.kind == object.kind) {
      return fmt::format("{}/{}/{}/{}/{}/{}", kind.group, kind.version, kind.resource, object.meta.ns, object.meta.name,
                         object.meta.generation);
    }
  }
  return "";
}

}  // namespace

StatusLeader::StatusLeader(Host& host, kube::Client& client, const std::string& ns, Objects objects)
    : host_(host),
      client_(client),
      objects_(std::move(objects)),
      reports_(client, host, kube::kinds::kConfigMap,
               kube::ListOptions{.ns = ns, .label_selector = fmt::format("{}=true", kReportLabel)}) {
  const auto on = [this](const kube::ObjectRef& map) { OnReport(*map); };
  reports_.AddHandler({.on_add = on, .on_update = [on](const auto&, const auto& now) { on(now); }});
}

void StatusLeader::Start() {
  reports_.Start();
  WriteAll();
  ReadAgain();
}

void StatusLeader::OnReport(const kube::Object& map) {
  const auto data = kube::ConfigMapData(map);
  const auto text = data.find(std::string(kReportKey));
  if (text == data.end()) return;
  const absl::StatusOr<DistributionReport> report = ParseReport(text->second);
  if (!report.ok()) return;  // istiod discards it as well
  for (const auto& [resource, proxies] : report->in_progress)
    state_[resource][report->reporter] = {proxies, report->data_planes};
  heard_[report->reporter] = host_.Now();
}

// An informer tells of everything again each minute, so that a reporter that says the same is not thought gone.
void StatusLeader::ReadAgain() {
  host_.RunAfter(kResync, [this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    for (const kube::ObjectRef& map : reports_.List()) OnReport(*map);
    ReadAgain();
  });
}

void StatusLeader::WriteAll() {
  for (const kube::ObjectRef& object : objects_()) {
    const auto state = state_.find(ResourceOf(*object));
    if (state == state_.end()) continue;
    Progress sum;
    for (auto it = state->second.begin(); it != state->second.end();) {
      if (host_.Now() - heard_[it->first] > kStale) {
        it = state->second.erase(it);
        continue;
      }
      sum.acked += it->second.acked;
      sum.total += it->second.total;
      ++it;
    }
    if (sum.total > 0) WriteStatus(*object, sum);
  }
  host_.RunAfter(kInterval, [this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) WriteAll();
  });
}

// istiod: ReconcileStatuses.
void StatusLeader::WriteStatus(const kube::Object& object, const Progress& progress) {
  const std::string text = fmt::format("{}/{} proxies up to date.", progress.acked, progress.total);
  const std::string status = progress.acked == progress.total ? "True" : "False";
  for (const json& condition : Items(At(object.body, {"status", "conditions"}))) {
    if (Text(condition, "type") != "Reconciled") continue;
    const bool of_this =
        Text(At(object.body, "status"), "observedGeneration") == std::to_string(object.meta.generation);
    if (of_this && Text(condition, "message") == text && Text(condition, "status") == status) return;
  }
  int64_t& version = under_way_[object.Key()];
  if (version == object.meta.resource_version) return;  // what it brings comes as another version
  version = object.meta.resource_version;
  const std::string now = kube::FormatRfc3339(x509::UnixSeconds(host_.WallClock()));
  json body = object.body;
  if (!body["status"].is_object()) body["status"] = json::object();
  json& conditions = body["status"]["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  std::erase_if(conditions.get_ref<json::array_t&>(),
                [](const json& condition) { return Text(condition, "type") == "Reconciled"; });
  conditions.push_back({{"type", "Reconciled"},
                        {"status", status},
                        {"lastProbeTime", now},
                        {"lastTransitionTime", now},
                        {"message", text}});
  body["status"]["observedGeneration"] = std::to_string(object.meta.generation);
  absl::StatusOr<kube::ObjectRef> written = kube::Object::FromJson(std::move(body));
  if (!written.ok()) return;  // made of an object that could be read
  client_.Apply(*std::move(written), [this, key = object.Key(), alive = std::weak_ptr<char>(alive_)](
                                         const absl::StatusOr<kube::ObjectRef>& result) {
    if (!alive.expired() && !result.ok()) under_way_.erase(key);  // somebody else has written: with the next look
  });
}

}  // namespace wavetank::pilot
