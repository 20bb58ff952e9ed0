#include "core/registry/kube/endpoints_client.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/model/labels.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

using nlohmann::json;

std::string SliceName(const std::string& endpoints, size_t index) {
  return index == 0 ? endpoints : fmt::format("{}-{}", endpoints, index + 1);
}

void AddEndpoints(const json& addresses, bool ready, json* out) {
  for (const json& address : Items(addresses)) {
    json endpoint = {{"addresses", json::array({Text(address, "ip")})}, {"conditions", {{"ready", ready}}}};
    if (const json& target = At(address, "targetRef"); target.is_object()) endpoint["targetRef"] = target;
    if (const json& node = At(address, "nodeName"); node.is_string()) endpoint["nodeName"] = node;
    out->push_back(std::move(endpoint));
  }
}

kube::ObjectRef SliceOf(const kube::Object& endpoints, size_t index, const json& subset) {
  json all = json::array(), ports = json::array();
  AddEndpoints(At(subset, "addresses"), true, &all);
  AddEndpoints(At(subset, "notReadyAddresses"), false, &all);
  for (const json& port : Items(At(subset, "ports"))) {
    ports.push_back({{"name", Text(port, "name")}, {"port", Number(port, "port")}});
    if (const json& protocol = At(port, "protocol"); protocol.is_string()) ports.back()["protocol"] = protocol;
  }
  json body = {{"apiVersion", "discovery.k8s.io/v1"},
               {"kind", "EndpointSlice"},
               {"metadata",
                {{"name", SliceName(endpoints.meta.name, index)},
                 {"namespace", endpoints.meta.ns},
                 {"uid", endpoints.meta.uid},
                 {"resourceVersion", std::to_string(endpoints.meta.resource_version)},
                 {"labels", {{std::string(kServiceNameLabel), endpoints.meta.name}}}}},
               {"addressType", "IPv4"},
               {"ports", std::move(ports)},
               {"endpoints", std::move(all)}};
  absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
  return object.ok() ? *std::move(object) : nullptr;
}

// The slices that an event is about; what a smaller object has no more is deleted.
void Tell(const kube::WatchEvent& event, std::map<kube::NamespacedName, size_t>& counts,
          absl::AnyInvocable<void(const kube::WatchEvent&)>& tell) {
  if (event.type == kube::WatchEventType::kBookmark) return tell(event);
  const kube::NamespacedName name{event.object->meta.ns, event.object->meta.name};
  const std::vector<kube::ObjectRef> slices = SlicesOf(*event.object);
  const size_t before = counts[name];
  if (event.type == kube::WatchEventType::kDeleted) {
    counts.erase(name);
    for (size_t i = 0; i < std::max(before, slices.size()); ++i)
      tell({kube::WatchEventType::kDeleted, i < slices.size() ? slices[i] : SliceOf(*event.object, i, {})});
    return;
  }
  counts[name] = slices.size();
  for (size_t i = 0; i < slices.size(); ++i)
    tell({i < before ? kube::WatchEventType::kModified : kube::WatchEventType::kAdded, slices[i]});
  for (size_t i = slices.size(); i < before; ++i) tell({kube::WatchEventType::kDeleted, SliceOf(*event.object, i, {})});
}

}  // namespace

std::vector<kube::ObjectRef> SlicesOf(const kube::Object& endpoints) {
  std::vector<kube::ObjectRef> out;
  const auto add = [&](const json& subset) {
    if (kube::ObjectRef slice = SliceOf(endpoints, out.size(), subset)) out.push_back(std::move(slice));
  };
  for (const json& subset : Items(At(endpoints.body, "subsets"))) add(subset);
  if (out.empty()) add({});
  return out;
}

void EndpointsClient::List(const kube::ResourceKind& kind, const kube::ListOptions& options,
                           absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) {
  if (!(kind == kube::kinds::kEndpointSlice)) return client_.List(kind, options, std::move(done));
  client_.List(kube::kinds::kEndpoints, options,
               [counts = counts_, done = std::move(done)](absl::StatusOr<kube::ObjectList> found) mutable {
                 if (!found.ok()) return done(found.status());
                 counts->clear();
                 kube::ObjectList out;
                 out.resource_version = found->resource_version;
                 for (const kube::ObjectRef& endpoints : found->items) {
                   std::vector<kube::ObjectRef> slices = SlicesOf(*endpoints);
                   (*counts)[{endpoints->meta.ns, endpoints->meta.name}] = slices.size();
                   for (kube::ObjectRef& slice : slices) out.items.push_back(std::move(slice));
                 }
                 std::sort(out.items.begin(), out.items.end(), [](const auto& a, const auto& b) {
                   return std::pair(a->meta.ns, a->meta.name) < std::pair(b->meta.ns, b->meta.name);
                 });
                 done(std::move(out));
               });
}

std::unique_ptr<kube::Watch> EndpointsClient::StartWatch(const kube::ResourceKind& kind,
                                                         const kube::ListOptions& options, int64_t resource_version,
                                                         kube::WatchCallbacks callbacks) {
  if (!(kind == kube::kinds::kEndpointSlice))
    return client_.StartWatch(kind, options, resource_version, std::move(callbacks));
  kube::WatchCallbacks through;
  through.on_event = [counts = counts_, tell = std::move(callbacks.on_event)](const kube::WatchEvent& event) mutable {
    Tell(event, *counts, tell);
  };
  through.on_end = std::move(callbacks.on_end);
  return client_.StartWatch(kube::kinds::kEndpoints, options, resource_version, std::move(through));
}

}  // namespace wavetank::pilot
