#include "fakes/kube/http/message/event_views.h"

#include <utility>

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, const char*> kNames[] = {
    // of core, of events.k8s.io
    {"message", "note"},
    {"involvedObject", "regarding"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
};

void Rename(json* object, const char* from, const char* to) {
  const auto it = object->find(from);
  if (it == object->end()) return;
  json value = std::move(*it);
  object->erase(it);
  if (!value.is_null()) (*object)[to] = std::move(value);
}

}  // namespace

json ToEventsGroup(json core) {
  if (!core.is_object()) return core;
  core["apiVersion"] = "events.k8s.io/v1";
  for (const auto& [of_core, of_group] : kNames) Rename(&core, of_core, of_group);
  return core;
}

json ToCoreEvent(json event) {
  if (!event.is_object()) return event;
  event["apiVersion"] = "v1";
  for (const auto& [of_core, of_group] : kNames) Rename(&event, of_group, of_core);
  return event;
}

}  // namespace wavetank::fakekube::http
