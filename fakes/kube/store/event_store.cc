#include "fakes/kube/store/event_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/kube/time_format.h"
#include "fakes/kube/objects/one_more.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr Duration kLife = 3600s;
// client-go: tools/record/events_cache.go.
constexpr size_t kMostSimilar = 10;
constexpr Duration kSimilarWithin = 600s;
constexpr double kBurst = 25;
constexpr Duration kRefill = 300s;  // of one token
// client-go: tools/events/event_broadcaster.go, finishTime.
constexpr Duration kSeriesEnds = 360s;
constexpr size_t kFew = 4096;

ApiServer::Options OwnOptions(const ApiServer& of) {
  ApiServer::Options out;
  out.name = of.name();
  out.first_resource_version = of.resource_version();
  out.events_of = &of;
  return out;
}

NamespacedName EventName(const kube::Object& object) { return {object.meta.ns, object.meta.name}; }

std::string SourceKey(const kube::Object& about, const Telling& telling) {
  return fmt::format("{}|{}|{}|{}|{}|{}", telling.component, telling.host, about.Key(), about.meta.uid,
                     about.api_version, telling.field_path);
}

}  // namespace

EventStore::EventStore(ApiServer& of) : of_(of), objects_(of.host(), OwnOptions(of)) {
  subscriptions_.Add(objects_.Observe("Event", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted) return;
    written_.push_back({of_.host().Now(), EventName(*change.object), change.resource_version});
  }));
}

ApiServer& EventStore::objects() {
  Expire();
  return objects_;
}

void EventStore::Expire() {
  const Time now = of_.host().Now();
  while (!written_.empty() && written_.front().at + kLife <= now) {
    const Written oldest = written_.front();
    written_.pop_front();
    WAVETANK_ASSERT(written_.empty() || oldest.at <= written_.front().at, oldest.at);  // in the order of their writing
    const ObjectRef event = objects_.Get("Event", oldest.name);
    if (event != nullptr && event->meta.resource_version == oldest.version)
      objects_.Finalize("Event", oldest.name).IgnoreError();
  }
}

void EventStore::RemoveNamespace(const std::string& ns) {
  for (const ObjectRef& event : objects_.List("Event", ns)) objects_.Finalize("Event", EventName(*event)).IgnoreError();
}

bool EventStore::Spam(const std::string& source) {
  const Time now = of_.host().Now();
  const auto [entry, fresh] = tokens_.try_emplace(source, Tokens{kBurst, now});
  Tokens& tokens = entry->second;
  const double refilled = static_cast<double>((now - tokens.last).count()) / static_cast<double>(kRefill.count());
  tokens = {std::min(kBurst, tokens.left + refilled), now};
  if (tokens.left < 1) return true;
  tokens.left -= 1;
  return false;
}

std::string EventStore::Combine(const kube::Object& about, Telling* telling, bool* combined) {
  const std::string alike = fmt::format("{}|{}|{}", SourceKey(about, *telling), telling->warning, telling->reason);
  const Time now = of_.host().Now();
  Similar& similar = similar_[alike];
  if (now - similar.last > kSimilarWithin) similar.messages.clear();
  similar.last = now;
  similar.messages.insert(telling->message);
  if (similar.messages.size() < kMostSimilar) return alike + "|" + telling->message;
  // Room for words that have not been counted yet.
  similar.messages.erase(similar.messages.begin());
  telling->message = "(combined from similar events): " + telling->message;
  *combined = true;
  return alike;
}

std::string EventStore::MicroNow() const {
  const int64_t micros = (of_.host().Now().time_since_epoch() % std::chrono::seconds(1)) / std::chrono::microseconds(1);
  std::string out = kube::FormatRfc3339(of_.UnixNow());
  out.pop_back();
  return fmt::format("{}.{:06}Z", out, micros);
}

json EventStore::NewEvent(const kube::Object& about, const Telling& telling) {
  const std::string ns = about.meta.ns.empty() ? "default" : about.meta.ns;
  // Named by the instant; what is told at the same one counts on.
  const int64_t second = std::chrono::nanoseconds(std::chrono::seconds(1)).count();
  int64_t instant =
      of_.UnixNow() * second +
      std::chrono::duration_cast<std::chrono::nanoseconds>(of_.host().Now().time_since_epoch()).count() % second;
  std::string name;
  do {
    name = fmt::format("{}.{:x}", about.meta.name, instant++);
  } while (objects_.Get("Event", {ns, name}) != nullptr);
  json involved = {{"kind", about.kind},
                   {"name", about.meta.name},
                   {"uid", about.meta.uid},
                   {"apiVersion", about.api_version},
                   {"resourceVersion", std::to_string(about.meta.resource_version)}};
  if (!about.meta.ns.empty()) involved["namespace"] = about.meta.ns;
  if (!telling.field_path.empty()) involved["fieldPath"] = telling.field_path;
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", std::move(name)}, {"namespace", ns}}},
          {"involvedObject", std::move(involved)},
          {"type", telling.warning ? "Warning" : "Normal"},
          {"reason", telling.reason},
          {"message", telling.message}};
}

ObjectRef EventStore::Known(const std::string& key) {
  const auto known = known_.find(key);
  return known == known_.end() ? nullptr : objects_.Get("Event", known->second);
}

void EventStore::Keep(const std::string& key, json event) {
  // A namespace that is going takes no Event, and nobody tries again.
  const absl::StatusOr<ObjectRef> made = objects_.Create(std::move(event));
  if (!made.ok()) return;
  known_[key] = EventName(**made);
  if (known_.size() < 2 * swept_ + kFew) return;
  std::erase_if(known_, [&](const auto& each) { return objects_.Get("Event", each.second) == nullptr; });
  const Time now = of_.host().Now();
  std::erase_if(similar_, [&](const auto& each) { return now - each.second.last > kSimilarWithin; });
  std::erase_if(tokens_, [&](const auto& each) { return now - each.second.last > kRefill * static_cast<int>(kBurst); });
  swept_ = known_.size();
}

void EventStore::Tell(const kube::Object& about, Telling telling) {
  if (!listening_) return;
  Expire();
  bool combined = false;
  const std::string key = Combine(about, &telling, &combined);
  if (Spam(SourceKey(about, telling))) return;
  const std::string now = of_.DateNow();
  if (const ObjectRef known = Known(key); known != nullptr) {
    json patch = {{"count", OneMore(Number(known->body, "count", 1))}, {"lastTimestamp", now}};
    if (combined) patch["message"] = telling.message;
    objects_.Patch("Event", EventName(*known), std::move(patch)).IgnoreError();
    return;
  }
  json event = NewEvent(about, telling);
  event["source"] = {{"component", telling.component}};
  if (!telling.host.empty()) event["source"]["host"] = telling.host;
  event["firstTimestamp"] = event["lastTimestamp"] = now;
  event["count"] = 1;
  event["eventTime"] = nullptr;
  event["reportingComponent"] = event["reportingInstance"] = "";
  Keep(key, std::move(event));
}

void EventStore::TellSeries(const kube::Object& about, Telling telling) {
  if (!listening_) return;
  Expire();
  const std::string key =
      fmt::format("series|{}|{}|{}|{}", SourceKey(about, telling), telling.warning, telling.reason, telling.action);
  const std::string now = MicroNow();
  if (const ObjectRef known = Known(key); known != nullptr) {
    const auto last = std::find_if(written_.rbegin(), written_.rend(),
                                   [&](const Written& each) { return each.version == known->meta.resource_version; });
    if (last != written_.rend() && of_.host().Now() - last->at < kSeriesEnds) {
      const int64_t count = OneMore(Number(At(known->body, "series"), "count", 1));
      objects_.Patch("Event", EventName(*known), {{"series", {{"count", count}, {"lastObservedTime", now}}}})
          .IgnoreError();
      return;
    }
  }
  json event = NewEvent(about, telling);
  event["action"] = telling.action;
  event["eventTime"] = now;
  event["reportingComponent"] = telling.component;
  event["reportingInstance"] = fmt::format("{}-{}", telling.component, of_.name());
  event["source"] = json::object();
  event["firstTimestamp"] = event["lastTimestamp"] = nullptr;
  Keep(key, std::move(event));
}

}  // namespace wavetank::fakekube
