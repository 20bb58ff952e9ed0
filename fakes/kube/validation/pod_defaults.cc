#include "fakes/kube/validation/pod_defaults.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "core/base/json_access.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr int kFileMode = 0644;  // of what a volume shows

// The elements of a list that are objects.
template <class Fn>
void ForEach(json& in, const char* list, Fn fn) {
  const auto at = in.find(list);
  if (at == in.end() || !at->is_array()) return;
  for (json& item : *at) {
    if (item.is_object()) fn(item);
  }
}

template <class Fn>
void IfObject(json& in, const char* key, Fn fn) {
  if (const auto at = in.find(key); at != in.end() && at->is_object()) fn(*at);
}

void DefaultFieldRef(json& of) {
  IfObject(of, "fieldRef", [](json& ref) { Default(ref, "apiVersion", "v1"); });
}

void DefaultHttpGet(json& action) {
  IfObject(action, "httpGet", [](json& get) {
    Default(get, "path", "/");
    Default(get, "scheme", "HTTP");
  });
}

void DefaultProbe(json& probe) {
  DefaultNumber(probe, "timeoutSeconds", 1);
  DefaultNumber(probe, "periodSeconds", 10);
  DefaultNumber(probe, "successThreshold", 1);
  DefaultNumber(probe, "failureThreshold", 3);
  DefaultHttpGet(probe);
  IfObject(probe, "grpc", [](json& grpc) { Default(grpc, "service", ""); });
}

// Its tag is :latest, or it has neither a tag nor a digest.
bool IsLatest(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return false;
  const std::string_view name = image.substr(image.rfind('/') + 1);  // npos + 1 is 0
  const size_t colon = name.find(':');
  return colon == std::string_view::npos || name.substr(colon) == ":latest";
}

void DefaultContainer(json& container) {
  Default(container, "imagePullPolicy", IsLatest(Text(container, "image")) ? "Always" : "IfNotPresent");
  Default(container, "terminationMessagePath", "/dev/termination-log");
  Default(container, "terminationMessagePolicy", "File");
  Default(container, "resources", json::object());
  ForEach(container, "ports", [](json& port) { Default(port, "protocol", "TCP"); });
  ForEach(container, "env",
          [](json& variable) { IfObject(variable, "valueFrom", [](json& from) { DefaultFieldRef(from); }); });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    IfObject(container, probe, DefaultProbe);
  IfObject(container, "lifecycle", [](json& lifecycle) {
    for (const char* hook : {"postStart", "preStop"}) IfObject(lifecycle, hook, DefaultHttpGet);
  });
}

void DefaultVolume(json& volume) {
  for (const char* source : {"secret", "configMap", "downwardAPI", "projected"})
    IfObject(volume, source, [](json& of) { Default(of, "defaultMode", kFileMode); });
  IfObject(volume, "hostPath", [](json& of) { Default(of, "type", ""); });
  IfObject(volume, "downwardAPI", [](json& of) { ForEach(of, "items", DefaultFieldRef); });
  IfObject(volume, "projected", [](json& projected) {
    ForEach(projected, "sources", [](json& source) {
      IfObject(source, "serviceAccountToken", [](json& of) { Default(of, "expirationSeconds", 3600); });
      IfObject(source, "downwardAPI", [](json& of) { ForEach(of, "items", DefaultFieldRef); });
    });
  });
  if (volume.size() == 1 && volume.contains("name")) volume["emptyDir"] = json::object();
}

// What a container is limited to it asks for, too.
void DefaultRequests(json& container) {
  json& resources = ObjectAt(container, "resources");
  const auto limits = resources.find("limits");
  if (limits == resources.end() || !limits->is_object() || limits->empty()) return;
  const json copy = *limits;
  json& requests = ObjectAt(resources, "requests");
  for (const auto& [name, quantity] : copy.items()) Default(requests, name.c_str(), quantity);
}

// kubernetes: pkg/apis/core/v1/helper/qos.
std::string_view QosClass(const json& spec) {
  bool any = false, all = true;
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& container : Items(At(spec, list))) {
      const json &limits = At(container, {"resources", "limits"}), &requests = At(container, {"resources", "requests"});
      for (const char* name : {"cpu", "memory"}) {
        any = any || !At(limits, name).is_null() || !At(requests, name).is_null();
        all = all && !At(limits, name).is_null() && At(limits, name) == At(requests, name);
      }
    }
  }
  return !any ? "BestEffort" : all ? "Guaranteed" : "Burstable";
}

// For five minutes a pod stays on a node that is lost.
void DefaultTolerations(json& spec) {
  json& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = json::array();
  for (const char* taint : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const bool tolerated = std::any_of(tolerations.begin(), tolerations.end(), [&](const json& toleration) {
      const std::string key = Text(toleration, "key"), effect = Text(toleration, "effect");
      return (key == taint || key.empty()) && (effect == "NoExecute" || effect.empty());
    });
    if (tolerated) continue;
    tolerations.push_back(
        {{"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}});
  }
}

}  // namespace

void DefaultPodSpec(json& spec) {
  Default(spec, "restartPolicy", "Always");
  Default(spec, "dnsPolicy", "ClusterFirst");
  Default(spec, "terminationGracePeriodSeconds", 30);
  Default(spec, "schedulerName", "default-scheduler");
  Default(spec, "securityContext", json::object());
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"})
    ForEach(spec, list, DefaultContainer);
  ForEach(spec, "volumes", DefaultVolume);
}

void DefaultPod(json& pod) {
  json& spec = ObjectAt(pod, "spec");
  DefaultPodSpec(spec);
  Default(spec, "enableServiceLinks", true);
  // Of the older name alone it is taken over; an empty one is none (kubernetes: plugin/pkg/admission/serviceaccount).
  if (Text(spec, "serviceAccountName").empty()) {
    const std::string older = Text(spec, "serviceAccount");
    spec["serviceAccountName"] = older.empty() ? "default" : older;
  }
  spec["serviceAccount"] = spec["serviceAccountName"];  // the field's older name says the same
  if (!spec.contains("priorityClassName")) Default(spec, "priority", 0);
  Default(spec, "preemptionPolicy", "PreemptLowerPriority");
  DefaultTolerations(spec);
  for (const char* list : {"containers", "initContainers"}) ForEach(spec, list, DefaultRequests);
  json& status = ObjectAt(pod, "status");
  Default(status, "phase", "Pending");
  if (!status.contains("qosClass")) status["qosClass"] = QosClass(spec);
}

}  // namespace wavetank::fakekube
