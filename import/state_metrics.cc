#include "import/state_metrics.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/json_access.h"
#include "fakes/kube/cluster.h"
#include "sim/world.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using Labels = std::map<std::string, std::string>;

std::string LabelOf(const Labels& labels, const std::string& name) {
  const auto it = labels.find(name);
  return it == labels.end() ? std::string() : it->second;
}

// A number of one object's, as kube-state-metrics documents it.
struct Field {
  std::string_view metric, kind, label;  // which label names the object
  std::vector<std::string_view> path;
  int64_t otherwise = 0;  // where the object does not say
};

const std::vector<Field>& Fields() {
  static const auto* const table = new std::vector<Field>{
      {"kube_deployment_spec_replicas", "Deployment", "deployment", {"spec", "replicas"}, 1},
      {"kube_deployment_status_replicas", "Deployment", "deployment", {"status", "replicas"}},
      {"kube_deployment_status_replicas_ready", "Deployment", "deployment", {"status", "readyReplicas"}},
      {"kube_deployment_status_replicas_available", "Deployment", "deployment", {"status", "availableReplicas"}},
      {"kube_statefulset_replicas", "StatefulSet", "statefulset", {"spec", "replicas"}, 1},
      {"kube_statefulset_status_replicas_ready", "StatefulSet", "statefulset", {"status", "readyReplicas"}},
      {"kube_daemonset_status_number_ready", "DaemonSet", "daemonset", {"status", "numberReady"}},
  };
  return *table;
}

// A condition is a series for each of its three statuses; one of them is 1.
std::optional<double> Condition(const json& status, const std::string& type, std::string_view value) {
  for (const json& condition : Items(At(status, "conditions"))) {
    if (Text(condition, "type") != type) continue;
    std::string now = Text(condition, "status");
    std::transform(now.begin(), now.end(), now.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return now == value ? 1 : 0;
  }
  return std::nullopt;
}

double ReadyAddresses(const fakekube::ApiServer& api, const std::string& ns, const std::string& service) {
  double out = 0;
  for (const kube::ObjectRef& slice : api.List("EndpointSlice", ns)) {
    const auto owner = slice->meta.labels.find("kubernetes.io/service-name");
    if (owner == slice->meta.labels.end() || owner->second != service) continue;
    for (const json& endpoint : Items(At(slice->body, "endpoints"))) {
      if (At(endpoint, {"conditions", "ready"}) != false)
        out += static_cast<double>(Items(At(endpoint, "addresses")).size());
    }
  }
  return out;
}

}  // namespace

std::optional<double> StateMetric(sim::World& world, const std::string& cluster, const std::string& metric,
                                  const Labels& labels) {
  const fakekube::ApiServer& api = world.cluster(cluster).api();
  const std::string ns = LabelOf(labels, "namespace");
  for (const Field& field : Fields()) {
    if (field.metric != metric) continue;
    const kube::ObjectRef object = api.Get(field.kind, {ns, LabelOf(labels, std::string(field.label))});
    if (object == nullptr) return std::nullopt;
    const json* at = &object->body;
    for (const std::string_view key : field.path) at = &At(*at, key);
    return static_cast<double>(NumberOf(*at, field.otherwise));
  }
  if (metric == "kube_pod_status_ready") {
    const kube::ObjectRef pod = api.Get("Pod", {ns, LabelOf(labels, "pod")});
    if (pod == nullptr) return std::nullopt;
    return Condition(At(pod->body, "status"), "Ready", LabelOf(labels, "condition"));
  }
  if (metric == "kube_endpoint_address_available") {
    const std::string service = LabelOf(labels, "endpoint");
    if (api.Get("Service", {ns, service}) == nullptr) return std::nullopt;
    return ReadyAddresses(api, ns, service);
  }
  const kube::ObjectRef node = api.Get("Node", {"", LabelOf(labels, "node")});
  if (node == nullptr) return std::nullopt;
  if (metric == "kube_node_spec_unschedulable") return At(node->body, {"spec", "unschedulable"}) == true ? 1 : 0;
  if (metric == "kube_node_status_condition") {
    return Condition(At(node->body, "status"), LabelOf(labels, "condition"), LabelOf(labels, "status"));
  }
  return std::nullopt;
}

}  // namespace wavetank::importing
