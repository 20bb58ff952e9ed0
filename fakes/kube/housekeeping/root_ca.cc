#include "fakes/kube/housekeeping/root_ca.h"

#include "core/base/json_access.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kName = "kube-root-ca.crt";
constexpr const char* kSource = "kube-system";

}  // namespace

RootCaPublisher::RootCaPublisher(ApiServer& api)
    : api_(api), pending_(api.host()), queue_(pending_, [this](const NamespacedName& name) { Publish(name.ns); }) {
  subscriptions_.Add(api_.Observe("Namespace", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kAdded) queue_.Add({change.object->meta.name, kName});
  }));
  subscriptions_.Add(api_.Observe("ConfigMap", [this](const Change& change) {
    if (change.object->meta.name != kName) return;
    if (change.object->meta.ns != kSource) return queue_.Add({change.object->meta.ns, kName});
    for (const ObjectRef& ns : api_.List("Namespace")) queue_.Add({ns->meta.name, kName});
  }));
}

void RootCaPublisher::Publish(const std::string& ns) {
  const ObjectRef source = api_.Get("ConfigMap", {kSource, kName}), there = api_.Get("ConfigMap", {ns, kName}),
                  in = api_.Get("Namespace", {"", ns});
  if (source == nullptr || in == nullptr || in->meta.deleting || ns == kSource) return;
  const json& data = At(source->body, "data");
  if (there != nullptr && At(there->body, "data") == data) return;
  json body =
      there == nullptr
          ? json{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", kName}, {"namespace", ns}}}}
          : there->body;
  constexpr const char* kDescription = "kubernetes.io/description";
  if (const json& text = At(source->body, {"metadata", "annotations", kDescription}); text.is_string())
    body["metadata"]["annotations"][kDescription] = text;
  body["data"] = data;
  api_.Apply(std::move(body), {.namespace_must_exist = true}).IgnoreError();
}

}  // namespace wavetank::fakekube
