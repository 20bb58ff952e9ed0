#include "sim/webhooks/foreign_webhook.h"

#include <algorithm>
#include <string_view>

#include "core/base/json/json_read.h"
#include "core/base/json_access.h"
#include "core/kube/label_selector.h"
#include "core/model/labels.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

std::string ServiceOf(const kube::Object& slice) {
  const auto of = slice.meta.labels.find(pilot::kServiceNameLabel);
  return of == slice.meta.labels.end() ? std::string() : of->second;
}

bool HasReadyEndpoint(const kube::Object& slice) {
  const json& endpoints = Items(At(slice.body, "endpoints"));
  return std::any_of(endpoints.begin(), endpoints.end(), [](const json& endpoint) {
    return At(endpoint, {"conditions", "ready"}) != false;
  });
}

// Some workload's pods are to stand behind it.
bool HasServers(const fakekube::ApiServer& api, const kube::Object& service) {
  const json& selector = At(service.body, {"spec", "selector"});
  if (!selector.is_object() || selector.empty()) return false;
  kube::Labels wanted;
  for (const auto& [name, value] : selector.items()) wanted[name] = TextOf(value);
  const kube::LabelSelector selects = kube::LabelSelector::FromLabels(wanted);
  for (const char* kind : {"Deployment", "StatefulSet", "DaemonSet", "Pod"}) {
    for (const kube::ObjectRef& object : api.List(kind, service.meta.ns)) {
      kube::Labels labels = object->meta.labels;
      if (std::string_view(kind) != "Pod") {
        labels.clear();
        for (const auto& [name, value] : Members(At(object->body, {"spec", "template", "metadata", "labels"})))
          labels[name] = TextOf(value);
      }
      if (selects.Matches(labels)) return true;
    }
  }
  return false;
}

}  // namespace

ForeignWebhooks::ForeignWebhooks(fakekube::ApiServer& api) : api_(api) {
  subscription_ = api.Observe("EndpointSlice", [this](const fakekube::Change& change) {
    const std::string service = ServiceOf(*change.object);
    if (change.type != kube::WatchEventType::kDeleted && !service.empty() && HasReadyEndpoint(*change.object))
      answered_.insert({change.object->meta.ns, service});
  });
}

absl::Status ForeignWebhooks::Ask(const pilot::WebhookTarget& target) const {
  if (target.service_name.empty()) return absl::OkStatus();
  const kube::NamespacedName name{target.service_namespace, target.service_name};
  const kube::ObjectRef service = api_.Get("Service", name);
  // apiserver: pkg/util/proxy/proxy.go, ResolveEndpoint(), ResolveCluster().
  const auto refuse = [&](std::string_view why) {
    return absl::UnavailableError(
        fmt::format("Post \"https://{}.{}.svc:{}{}\": {}", name.name, name.ns, target.port, target.path, why));
  };
  if (service == nullptr) return refuse(fmt::format("service \"{}\" not found", name.name));
  if (Text(At(service->body, "spec"), "type") == "ExternalName") return absl::OkStatus();
  for (const kube::ObjectRef& slice : api_.List("EndpointSlice", name.ns)) {
    if (ServiceOf(*slice) == name.name && HasReadyEndpoint(*slice)) return absl::OkStatus();
  }
  if (!answered_.contains(name) && HasServers(api_, *service)) return absl::OkStatus();
  return refuse(fmt::format("no endpoints available for service \"{}\"", name.name));
}

}  // namespace wavetank::sim
