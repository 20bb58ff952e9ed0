#include "core/istiod/workload_entries.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_replace.h"
#include "core/base/assert.h"
#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/time_format.h"
#include "core/security/spiffe.h"
#include "core/x509/calendar.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

constexpr kube::ResourceKind kWorkloadGroupKind{"networking.istio.io", "v1alpha3", "WorkloadGroup", "workloadgroups"};
constexpr const char* kGroupAnnotation = "istio.io/autoRegistrationGroup";
constexpr const char* kControllerAnnotation = "istio.io/workloadController";
constexpr const char* kConnectedAnnotation = "istio.io/connectedAt";
constexpr const char* kDisconnectedAnnotation = "istio.io/disconnectedAt";
constexpr const char* kHealthyCondition = "Healthy";
constexpr int kMaxTries = 5;
constexpr Duration kBetweenCleanups = 50ms;

// time.RFC3339Nano.
std::string NanoText(Time time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  std::string text = kube::FormatRfc3339(kWorldEpochUnixSeconds + seconds.count());
  if (const int64_t nanos = (since - seconds).count(); nanos != 0) {
    text.pop_back();  // "Z"
    text += fmt::format(".{:09}", nanos);
    text.erase(text.find_last_not_of('0') + 1);
    text += 'Z';
  }
  return text;
}

std::optional<Time> ReadNano(const std::string& text) {
  const std::optional<int64_t> seconds = kube::ParseRfc3339(text);
  if (!seconds) return std::nullopt;
  int64_t nanos = 0;
  if (const size_t dot = text.find('.'); dot != std::string::npos) {
    int64_t scale = 100'000'000;
    for (size_t i = dot + 1; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, scale /= 10) {
      nanos += (text[i] - '0') * scale;
    }
  }
  const Time whole = x509::FromUnixSeconds(*seconds);  // anybody may write the annotation: dates far off are at the end
  return whole > Time::max() - Duration(nanos) ? Time::max() : whole + Duration(nanos);
}

// Ten grace periods; a product beyond 64 bits is what Go makes of it.
Duration BetweenLooks(Duration grace) {
  return Duration(static_cast<int64_t>(static_cast<uint64_t>(grace.count()) * 10));
}

std::string Annotation(const kube::Object& object, const char* name) {
  const auto it = object.meta.annotations.find(name);
  return it == object.meta.annotations.end() ? std::string() : it->second;
}

void MergeTexts(const json& from, json& to) {
  for (const auto& [key, value] : Members(from)) to[key] = TextOf(value);
}

std::string StreamKey(const Proxy& proxy) {
  return fmt::format("{}~{}~{}~{}", proxy.metadata.network.str(), proxy.ip_addresses.front(), AutoRegisteredName(proxy),
                     proxy.metadata.ns);
}

}  // namespace

std::string AutoRegisteredName(const Proxy& proxy) {
  if (proxy.metadata.auto_register_group.empty() || proxy.ip_addresses.empty() || proxy.metadata.ns.empty()) return "";
  std::string name = fmt::format("{}-{}", proxy.metadata.auto_register_group,
                                 absl::StrReplaceAll(proxy.ip_addresses.front(), {{":", "-"}}));
  if (!proxy.metadata.network.empty()) name += "-" + proxy.metadata.network.str();
  constexpr size_t kLongest = 253;
  return name.size() > kLongest ? name.substr(name.size() - kLongest) : name;
}

WorkloadEntryController::WorkloadEntryController(Host& host, kube::Client& client, Objects objects, Options options)
    : host_(host), client_(client), objects_(std::move(objects)), options_(std::move(options)) {}

absl::Status WorkloadEntryController::CheckGrace(Duration grace) {
  // istiod: periodicWorkloadEntryCleanup, time.NewTicker
  if (BetweenLooks(grace) > Duration::zero()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "panic: non-positive interval for NewTicker: PILOT_WORKLOAD_ENTRY_GRACE_PERIOD must be positive");
}

void WorkloadEntryController::Start() {
  WAVETANK_ASSERT(CheckGrace(options_.grace).ok(), options_.grace);
  LookAgain();
}

void WorkloadEntryController::LookAgain() {
  // Nothing else would happen between looks that are nanoseconds apart.
  After(std::max<Duration>(BetweenLooks(options_.grace), 1ms), [this] { LookAtAll(); });
}

void WorkloadEntryController::After(Duration delay, Callback fn) {
  host_.RunAfter(delay, [alive = std::weak_ptr(alive_), fn = std::move(fn)]() mutable {
    if (!alive.expired()) fn();
  });
}

bool WorkloadEntryController::Wants(const Proxy& proxy) const { return !AutoRegisteredName(proxy).empty(); }

kube::ObjectRef WorkloadEntryController::Find(const std::string& ns, const std::string& name) const {
  for (const kube::ObjectRef& object : objects_()) {
    if (object->kind == "WorkloadEntry" && object->meta.ns == ns && object->meta.name == name) return object;
  }
  return nullptr;
}

absl::Status WorkloadEntryController::MayControl(const Proxy& proxy, const std::string& ns, const json& spec) const {
  if (!options_.validate_identity) return absl::OkStatus();
  const absl::StatusOr<security::SpiffeIdentity> identity = security::ParseSpiffeIdentity(proxy.verified_identity);
  if (!identity.ok()) return absl::UnknownError("registration of WorkloadEntry requires a verified identity");
  if (identity->ns != ns) {
    return absl::UnknownError(
        fmt::format("registration of WorkloadEntry namespace mismatch: \"{}\" vs \"{}\"", identity->ns, ns));
  }
  const std::string account = Text(spec, "serviceAccount");
  if (!account.empty() && identity->service_account != account) {
    return absl::UnknownError(fmt::format("registration of WorkloadEntry service account mismatch: \"{}\" vs \"{}\"",
                                          identity->service_account, account));
  }
  return absl::OkStatus();
}

void WorkloadEntryController::Write(json entry, absl::AnyInvocable<void(absl::Status)> done) {
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(entry));
  if (!object.ok()) {
    return After(Duration::zero(), [done = std::move(done), why = object.status()]() mutable { done(why); });
  }
  client_.Apply(*std::move(object), [alive = std::weak_ptr(alive_),
                                     done = std::move(done)](const absl::StatusOr<kube::ObjectRef>& stored) mutable {
    if (!alive.expired()) done(stored.status());
  });
}

void WorkloadEntryController::Register(const Proxy& proxy, const ProxyLocality& locality, Time connected,
                                       absl::AnyInvocable<void(absl::Status)> done) {
  const std::string name = AutoRegisteredName(proxy), ns = proxy.metadata.ns;
  WAVETANK_ASSERT(!name.empty(), proxy.id);  // Wants() was asked
  ++streams_[StreamKey(proxy)];
  const auto later = [this](absl::Status status, absl::AnyInvocable<void(absl::Status)> then) {
    After(Duration::zero(), [status = std::move(status), then = std::move(then)]() mutable { then(status); });
  };
  if (const kube::ObjectRef entry = Find(ns, name)) {
    if (absl::Status may = MayControl(proxy, ns, At(entry->body, "spec")); !may.ok()) {
      return later(std::move(may), std::move(done));
    }
    // It has connected to another istiod since.
    const std::optional<Time> last = ReadNano(Annotation(*entry, kConnectedAnnotation));
    if (last && connected < *last) return later(absl::OkStatus(), std::move(done));
    json body = entry->body;
    json& annotations = body["metadata"]["annotations"];
    annotations[kControllerAnnotation] = options_.instance;
    annotations[kConnectedAnnotation] = NanoText(connected);
    annotations.erase(kDisconnectedAnnotation);
    body["metadata"].erase("resourceVersion");  // a merge patch names none
    return Write(std::move(body), std::move(done));
  }
  const kube::ListOptions only{ns, "", fmt::format("metadata.name={}", proxy.metadata.auto_register_group)};
  client_.List(kWorkloadGroupKind, only,
               [this, alive = std::weak_ptr(alive_), proxy, locality, connected,
                done = std::move(done)](absl::StatusOr<kube::ObjectList> groups) mutable {
                 if (alive.expired()) return;
                 if (!groups.ok()) return done(groups.status());
                 if (groups->items.empty()) {
                   return done(absl::FailedPreconditionError(
                       fmt::format("auto-registration WorkloadEntry of {} failed: cannot find WorkloadGroup {}/{}",
                                   proxy.id, proxy.metadata.ns, proxy.metadata.auto_register_group)));
                 }
                 Create(proxy, locality, connected, *groups->items.front(), std::move(done));
               });
}

void WorkloadEntryController::Create(const Proxy& proxy, const ProxyLocality& locality, Time connected,
                                     const kube::Object& group, absl::AnyInvocable<void(absl::Status)> done) {
  WAVETANK_ASSERT(!proxy.ip_addresses.empty(), proxy.id);
  const json& of_group = At(group.body, "spec");
  json spec = At(of_group, "template");
  if (!spec.is_object()) spec = json::object();
  spec["address"] = proxy.ip_addresses.front();
  // What the node says, before the group's metadata, before its template.
  json labels = json::object(), annotations = {{kGroupAnnotation, group.meta.name}};
  MergeTexts(At(spec, "labels"), labels);
  MergeTexts(At(of_group, {"metadata", "labels"}), labels);
  for (const auto& [key, value] : proxy.metadata.labels) labels[key] = value;
  MergeTexts(At(of_group, {"metadata", "annotations"}), annotations);
  if (!labels.empty()) spec["labels"] = labels;
  if (!proxy.metadata.network.empty()) spec["network"] = proxy.metadata.network.str();
  if (const std::string place = locality.Label(); !place.empty()) spec["locality"] = place;
  if (At(*proxy.metadata.raw, {"PROXY_CONFIG", "readinessProbe"}).is_object()) {
    annotations["proxy.istio.io/health-checks-enabled"] = "true";
  }
  if (absl::Status may = MayControl(proxy, proxy.metadata.ns, spec); !may.ok()) return done(may);
  annotations[kControllerAnnotation] = options_.instance;
  annotations[kConnectedAnnotation] = NanoText(connected);
  json meta = {{"name", AutoRegisteredName(proxy)},
               {"namespace", proxy.metadata.ns},
               {"annotations", std::move(annotations)},
               {"ownerReferences", json::array({{{"apiVersion", "networking.istio.io/v1alpha3"},
                                                 {"kind", "WorkloadGroup"},
                                                 {"name", group.meta.name},
                                                 {"uid", group.meta.uid},
                                                 {"controller", true}}})}};
  if (!labels.empty()) meta["labels"] = std::move(labels);
  Write({{"apiVersion", "networking.istio.io/v1alpha3"},
         {"kind", "WorkloadEntry"},
         {"metadata", std::move(meta)},
         {"spec", std::move(spec)}},
        [id = proxy.id, done = std::move(done)](const absl::Status& status) mutable {
          if (status.ok()) return done(status);
          done(absl::UnknownError(fmt::format(
              "auto-registration WorkloadEntry of {} failed: error creating WorkloadEntry: {}", id, Message(status))));
        });
}

void WorkloadEntryController::OnHealth(const Proxy& proxy, bool healthy, const std::string& why) {
  if (!options_.health_checks) return;
  WriteHealth({proxy.metadata.ns, AutoRegisteredName(proxy), healthy ? std::string() : why, healthy, host_.Now()}, 0);
}

void WorkloadEntryController::WriteHealth(const HealthReport& report, int tries) {
  const auto again = [this, report, tries] {
    if (tries >= kMaxTries) return;
    After(Duration(5ms) * (1 << tries), [=, this] { WriteHealth(report, tries + 1); });
  };
  const kube::ObjectRef entry = Find(report.ns, report.entry);
  if (entry == nullptr) return again();  // it was made just now
  // It has connected to another istiod since.
  if (Annotation(*entry, kControllerAnnotation) != options_.instance) return;
  json conditions = json::array();
  for (const json& condition : Items(At(entry->body, {"status", "conditions"}))) {
    if (Text(condition, "type") != kHealthyCondition) {
      conditions.push_back(condition);
    } else if (const auto seen = ReadNano(Text(condition, "lastProbeTime")); seen && *seen > report.at) {
      return;  // a newer report is there
    }
  }
  json healthy = {{"type", kHealthyCondition},
                  {"status", report.healthy ? "True" : "False"},
                  {"lastProbeTime", NanoText(report.at)},
                  {"lastTransitionTime", NanoText(report.at)}};
  if (!report.why.empty()) healthy["message"] = report.why;
  conditions.push_back(std::move(healthy));
  json body = entry->body;
  body["status"]["conditions"] = std::move(conditions);
  Write(std::move(body), [again](const absl::Status& status) {
    if (!status.ok()) again();
  });
}

void WorkloadEntryController::Unregister(const Proxy& proxy, Time connected) {
  const auto streams = streams_.find(StreamKey(proxy));
  WAVETANK_ASSERT(streams == streams_.end() || streams->second > 0, streams->second);
  if (streams != streams_.end() && streams->second > 1) {
    --streams->second;
    return;
  }
  if (streams != streams_.end()) streams_.erase(streams);
  Disconnected(proxy.metadata.ns, AutoRegisteredName(proxy), connected, host_.Now(), 0);
}

void WorkloadEntryController::Disconnected(const std::string& ns, const std::string& name, Time connected, Time at,
                                           int tries) {
  const auto again = [this, ns, name, connected, at, tries] {
    if (tries >= kMaxTries) return;
    After(Duration(5ms) * (1 << tries), [=, this] { Disconnected(ns, name, connected, at, tries + 1); });
  };
  const kube::ObjectRef entry = Find(ns, name);
  if (entry == nullptr) return again();  // deleted, or not known yet
  const std::optional<Time> last = ReadNano(Annotation(*entry, kConnectedAnnotation));
  // It has connected again meanwhile, here or to another istiod.
  if ((last && (*last > connected || at < *last)) || Annotation(*entry, kControllerAnnotation) != options_.instance) {
    return;
  }
  json body = entry->body;
  json& annotations = body["metadata"]["annotations"];
  annotations.erase(kConnectedAnnotation);
  annotations[kDisconnectedAnnotation] = NanoText(at);
  Write(std::move(body), [this, ns, name, again](const absl::Status& status) {
    if (!status.ok()) return again();
    After(std::max(options_.grace, Duration::zero()), [this, ns, name] {
      if (const kube::ObjectRef now = Find(ns, name); now != nullptr && IsOver(*now)) CleanUp(*now);
    });
  });
}

bool WorkloadEntryController::IsOver(const kube::Object& entry) const {
  if (Annotation(entry, kGroupAnnotation).empty() || !Annotation(entry, kConnectedAnnotation).empty()) return false;
  const std::string gone = Annotation(entry, kDisconnectedAnnotation);
  if (gone.empty()) return false;
  const std::optional<Time> at = ReadNano(gone);
  return !at || *at <= host_.Now() - std::max(options_.grace, Duration::zero());
}

void WorkloadEntryController::CleanUp(const kube::Object& entry) {
  // istiod: cleanupLimit, and the deletion names the version that was looked at.
  next_cleanup_ = std::max(next_cleanup_, host_.Now());
  const Duration wait = next_cleanup_ - host_.Now();
  WAVETANK_ASSERT(wait >= Duration::zero(), wait);
  next_cleanup_ += kBetweenCleanups;
  const auto clean_up = [this, ns = entry.meta.ns, name = entry.meta.name, version = entry.meta.resource_version] {
    const kube::ObjectRef now = Find(ns, name);
    if (now == nullptr || now->meta.resource_version != version) return;
    client_.Delete(kube::kinds::kWorkloadEntry, {ns, name}, [](const absl::Status&) {});
  };
  if (wait == Duration::zero()) return clean_up();
  After(wait, clean_up);
}

void WorkloadEntryController::LookAtAll() {
  for (const kube::ObjectRef& object : objects_()) {
    if (object->kind == "WorkloadEntry" && IsOver(*object)) CleanUp(*object);
  }
  LookAgain();
}

}  // namespace wavetank::pilot
