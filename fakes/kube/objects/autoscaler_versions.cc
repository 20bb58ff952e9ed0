#include "fakes/kube/objects/autoscaler_versions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char* kV1 = "autoscaling/v1";
constexpr const char* kV2 = "autoscaling/v2";
constexpr const char* kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr const char* kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr const char* kTarget = "targetCPUUtilizationPercentage";
constexpr const char* kCurrent = "currentCPUUtilizationPercentage";

// The source that a metric of either version is of: "resource", "pods", ... ; empty if there is none.
std::string SourceOf(const json& metric) {
  for (const char* source : {"resource", "containerResource", "pods", "object", "external"}) {
    if (At(metric, source).is_object()) return source;
  }
  return {};
}

bool IsCpuUtilization(const json& metric) {
  const json& resource = At(metric, "resource");
  return Text(metric, "type") == "Resource" && Text(resource, "name") == "cpu" &&
         At(resource, {"target", "averageUtilization"}).is_number_integer();
}

void Move(json& from, const char* name, json& to, const char* as) {
  const auto it = from.find(name);
  if (it == from.end()) return;
  to[as] = *it;
  from.erase(it);
}

// Version 2 has {metric: {name, selector}, target: {type, value, averageValue, averageUtilization}, describedObject},
// version 1 the same fields side by side.
json MetricToV1(json metric) {
  const std::string source = SourceOf(metric);
  if (source.empty()) return metric;
  json& of = metric[source];
  const bool external = source == "external";
  if (auto named = of.find("metric"); named != of.end() && named->is_object()) {
    json inner = std::move(*named);
    of.erase(named);
    Move(inner, "name", of, "metricName");
    Move(inner, "selector", of, external ? "metricSelector" : "selector");
  }
  if (auto target = of.find("target"); target != of.end() && target->is_object()) {
    json inner = std::move(*target);
    of.erase(target);
    Move(inner, "value", of, "targetValue");
    Move(inner, "averageValue", of, source == "object" ? "averageValue" : "targetAverageValue");
    Move(inner, "averageUtilization", of, "targetAverageUtilization");
  }
  Move(of, "describedObject", of, "target");
  return metric;
}

json MetricToV2(json metric) {
  const std::string source = SourceOf(metric);
  if (source.empty()) return metric;
  json& of = metric[source];
  Move(of, "target", of, "describedObject");
  json named = json::object(), target = json::object();
  Move(of, "metricName", named, "name");
  Move(of, "metricSelector", named, "selector");
  Move(of, "selector", named, "selector");
  Move(of, "targetValue", target, "value");
  Move(of, "targetAverageValue", target, "averageValue");
  Move(of, "averageValue", target, "averageValue");
  Move(of, "targetAverageUtilization", target, "averageUtilization");
  target["type"] = target.contains("averageUtilization") ? "Utilization"
                   : target.contains("averageValue")     ? "AverageValue"
                                                         : "Value";
  if (!named.empty()) of["metric"] = std::move(named);
  of["target"] = std::move(target);
  return metric;
}

json ParsedAnnotation(json& object, const char* name) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  const auto annotations = metadata->find("annotations");
  if (annotations == metadata->end() || !annotations->is_object() || !At(*annotations, name).is_string()) return {};
  json parsed = ParseJson(Text(*annotations, name));
  if (parsed.is_discarded()) return {};
  annotations->erase(name);
  if (annotations->empty()) metadata->erase("annotations");
  return parsed;
}

}  // namespace

void ToAutoscalingV1(json& object) {
  if (Text(object, "apiVersion") != kV2) return;
  object["apiVersion"] = kV1;
  if (auto spec = object.find("spec"); spec != object.end() && spec->is_object()) {
    json others = json::array();
    for (const json& metric : Items(At(*spec, "metrics"))) {
      if (IsCpuUtilization(metric) && !spec->contains(kTarget)) {
        (*spec)[kTarget] = metric["resource"]["target"]["averageUtilization"];
      } else {
        others.push_back(MetricToV1(metric));
      }
    }
    spec->erase("metrics");
    if (!others.empty()) object["metadata"]["annotations"][kMetrics] = JsonText(others);
    if (const json& behavior = At(*spec, "behavior"); behavior.is_object()) {
      object["metadata"]["annotations"][kBehavior] = JsonText(behavior);
      spec->erase("behavior");
    }
  }
  if (auto status = object.find("status"); status != object.end() && status->is_object()) {
    for (const json& metric : Items(At(*status, "currentMetrics"))) {
      const json& percent = At(metric, {"resource", "current", "averageUtilization"});
      if (Text(At(metric, "resource"), "name") == "cpu" && percent.is_number_integer()) (*status)[kCurrent] = percent;
    }
    status->erase("currentMetrics");
  }
}

void ToAutoscalingV2(json& object) {
  if (Text(object, "apiVersion") != kV1) return;
  object["apiVersion"] = kV2;
  const json metrics = ParsedAnnotation(object, kMetrics), behavior = ParsedAnnotation(object, kBehavior);
  if (auto spec = object.find("spec"); spec != object.end() && spec->is_object()) {
    json all = json::array();
    for (const json& metric : Items(metrics)) all.push_back(MetricToV2(metric));
    if (const json percent = At(*spec, kTarget); percent.is_number_integer()) {
      json target = {{"type", "Utilization"}, {"averageUtilization", percent}};
      json resource = {{"name", "cpu"}, {"target", std::move(target)}};
      all.insert(all.begin(), json{{"type", "Resource"}, {"resource", std::move(resource)}});
    }
    spec->erase(kTarget);
    if (!all.empty()) (*spec)["metrics"] = std::move(all);
    if (behavior.is_object()) (*spec)["behavior"] = behavior;
  }
  if (auto status = object.find("status"); status != object.end() && status->is_object()) {
    if (const json percent = At(*status, kCurrent); percent.is_number_integer()) {
      json resource = {{"name", "cpu"}, {"current", {{"averageUtilization", percent}}}};
      (*status)["currentMetrics"] = json::array({{{"type", "Resource"}, {"resource", std::move(resource)}}});
    }
    status->erase(kCurrent);
  }
}

}  // namespace wavetank::fakekube
