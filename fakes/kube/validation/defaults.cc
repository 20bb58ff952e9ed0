#include "fakes/kube/validation/defaults.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/json_access.h"
#include "core/kube/object.h"
#include "fakes/kube/objects/autoscaler_versions.h"
#include "fakes/kube/objects/base64.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/validation/pod_defaults.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

bool HasNull(const json& in) {
  return in.is_null() || (in.is_structured() && std::any_of(in.begin(), in.end(), HasNull));
}

// A condition's times are structs without a pointer, which Go writes as null where they are zero (apimachinery:
// pkg/apis/meta/v1/time.go, MarshalJSON()).
bool IsTimeOfCondition(std::string_view field) {
  static constexpr std::string_view kTimes[] = {"lastProbeTime", "lastTransitionTime", "lastHeartbeatTime",
                                                "lastUpdateTime"};
  return std::find(std::begin(kTimes), std::end(kTimes), field) != std::end(kTimes);
}

// A field that is null says nothing: Go reads it into the zero of its type, and the zero is not written again, but for
// times. Within a mapping of texts the key stays, with an empty text.
void DropNulls(json& in, bool texts) {
  if (in.is_array()) {
    for (json& item : in) DropNulls(item, false);
    return;
  }
  if (!in.is_object()) return;
  for (auto it = in.begin(); it != in.end();) {
    if (it->is_null()) {
      if (!texts && !IsTimeOfCondition(it.key())) {
        it = in.erase(it);
        continue;
      }
      if (texts) *it = "";
    } else {
      static constexpr std::string_view kTexts[] = {"labels",      "annotations",  "data",      "binaryData",
                                                    "matchLabels", "nodeSelector", "stringData"};
      DropNulls(*it, std::find(std::begin(kTexts), std::end(kTexts), it.key()) != std::end(kTexts));
    }
    ++it;
  }
}

void DefaultService(json& body) {
  json& spec = ObjectAt(body, "spec");
  Default(spec, "type", "ClusterIP");
  Default(spec, "sessionAffinity", "None");
  const std::string type = spec["type"].is_string() ? spec["type"].get<std::string>() : "";
  const bool exposed = type == "NodePort" || type == "LoadBalancer";
  if (spec.contains("ports") && spec["ports"].is_array()) {
    for (json& port : spec["ports"]) {
      if (!port.is_object()) continue;
      Default(port, "protocol", "TCP");
      // Typed clients send the zero of what they leave out (kubernetes: pkg/apis/core/v1/defaults.go).
      if (const json& target = At(port, "targetPort"); target == 0 || target == "") port.erase("targetPort");
      if (port.contains("port")) Default(port, "targetPort", port["port"]);
      // What the type has no use for is dropped, as when a Service changes its type.
      if (!exposed) port.erase("nodePort");
    }
  }
  if (type == "ExternalName") {
    spec.erase("clusterIP");
    spec.erase("clusterIPs");
    spec.erase("ipFamilies");
    return;
  }
  Default(spec, "internalTrafficPolicy", "Cluster");
  if (exposed) Default(spec, "externalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") Default(spec, "allocateLoadBalancerNodePorts", true);
  Default(spec, "ipFamilyPolicy", "SingleStack");  // its families are those of the cluster (store/service_allocator.h)
}

void DefaultTemplate(json& spec) { DefaultPodSpec(ObjectAt(ObjectAt(spec, "template"), "spec")); }

void DefaultDeployment(json& spec) {
  Default(spec, "replicas", 1);
  Default(spec, "progressDeadlineSeconds", 600);
  Default(spec, "revisionHistoryLimit", 10);
  json& strategy = ObjectAt(spec, "strategy");
  Default(strategy, "type", "RollingUpdate");
  if (strategy["type"] == "RollingUpdate") {
    json& rolling = ObjectAt(strategy, "rollingUpdate");
    Default(rolling, "maxSurge", "25%");
    Default(rolling, "maxUnavailable", "25%");
  }
}

void DefaultStatefulSet(json& spec) {
  Default(spec, "replicas", 1);
  Default(spec, "podManagementPolicy", "OrderedReady");
  Default(spec, "revisionHistoryLimit", 10);
  json& strategy = ObjectAt(spec, "updateStrategy");
  Default(strategy, "type", "RollingUpdate");
  if (strategy["type"] == "RollingUpdate") Default(ObjectAt(strategy, "rollingUpdate"), "partition", 0);
}

void DefaultDaemonSet(json& spec) {
  Default(spec, "revisionHistoryLimit", 10);
  json& strategy = ObjectAt(spec, "updateStrategy");
  Default(strategy, "type", "RollingUpdate");
  if (strategy["type"] == "RollingUpdate") {
    json& rolling = ObjectAt(strategy, "rollingUpdate");
    Default(rolling, "maxSurge", 0);
    Default(rolling, "maxUnavailable", 1);
  }
}

void DefaultJob(json& spec) {
  // Without a number of successes, one is enough; with neither, one pod runs (kubernetes: pkg/apis/batch/v1).
  if (!spec.contains("parallelism")) Default(spec, "completions", 1);
  Default(spec, "parallelism", 1);
  Default(spec, "backoffLimit", 6);
  Default(spec, "completionMode", "NonIndexed");
  Default(spec, "suspend", false);
}

void DefaultCronJob(json& spec) {
  Default(spec, "concurrencyPolicy", "Allow");
  Default(spec, "suspend", false);
  Default(spec, "successfulJobsHistoryLimit", 3);
  Default(spec, "failedJobsHistoryLimit", 1);
  DefaultTemplate(ObjectAt(ObjectAt(spec, "jobTemplate"), "spec"));
}

// What selects and labels are made of, where one of them says nothing (kubernetes: pkg/apis/core/v1).
void DefaultReplicationController(json& body) {
  json& spec = ObjectAt(body, "spec");
  const json labels = At(spec, {"template", "metadata", "labels"});
  if (labels.is_object() && !labels.empty()) {
    if (At(spec, "selector").empty()) spec["selector"] = labels;
    json& own = ObjectAt(ObjectAt(body, "metadata"), "labels");
    if (own.empty()) own = labels;
  }
  Default(spec, "replicas", 1);
  DefaultTemplate(spec);
}

void DefaultSecret(json& body) {
  Default(body, "type", "Opaque");
  const auto plain = body.find("stringData");
  if (plain == body.end() || !plain->is_object()) return;
  json& data = ObjectAt(body, "data");
  for (const auto& [key, value] : plain->items()) {
    if (value.is_string()) data[key] = Base64Encode(value.get_ref<const std::string&>());
  }
  body.erase("stringData");
}

// A definition is served as soon as it is stored: nothing here can take its names away.
void DefaultDefinition(json& body, const json& metadata) {
  json& spec = ObjectAt(body, "spec");
  json& names = ObjectAt(spec, "names");
  const std::string kind = Text(names, "kind");
  std::string singular = kind;
  for (char& c : singular) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (!kind.empty()) {
    Default(names, "singular", singular);
    Default(names, "listKind", kind + "List");
  }
  Default(ObjectAt(spec, "conversion"), "strategy", "None");
  json& status = ObjectAt(body, "status");
  status["acceptedNames"] = names;
  if (!status["conditions"].is_array() || status["conditions"].empty()) {
    const std::string since = Text(metadata, "creationTimestamp");
    status["conditions"] = json::array({{{"type", "NamesAccepted"},
                                         {"status", "True"},
                                         {"reason", "NoConflicts"},
                                         {"message", "no conflicts found"},
                                         {"lastTransitionTime", since}},
                                        {{"type", "Established"},
                                         {"status", "True"},
                                         {"reason", "InitialNamesAccepted"},
                                         {"message", "the initial names have been accepted"},
                                         {"lastTransitionTime", since}}});
  }
  for (const json& version : Items(At(spec, "versions"))) {
    if (At(version, "storage") == true) status["storedVersions"] = json::array({Text(version, "name")});
  }
}

// Kubernetes: pkg/apis/autoscaling. One store for both versions: that of version 2.
// kubernetes: pkg/apis/core/v1/defaults.go, SetDefaults_LimitRangeItem: of containers a maximum is the limit by
// default, and that, or a minimum, the request.
void DefaultLimitRange(json& body) {
  json& limits = ObjectAt(body, "spec")["limits"];
  if (!limits.is_array()) return;
  for (json& limit : limits) {
    if (!limit.is_object() || Text(limit, "type") != "Container") continue;
    for (const auto& [from, to] :
         {std::pair("max", "default"), std::pair("default", "defaultRequest"), std::pair("min", "defaultRequest")}) {
      const json source = At(limit, from);
      if (!source.is_object() || source.empty()) continue;
      json& target = ObjectAt(limit, to);
      for (const auto& [name, quantity] : source.items()) {
        if (!target.contains(name)) target[name] = quantity;
      }
    }
  }
}

void DefaultAutoscaler(json& body) {
  ToAutoscalingV2(body);
  json& spec = ObjectAt(body, "spec");
  Default(spec, "minReplicas", 1);
  if (!Items(At(spec, "metrics")).empty()) return;
  constexpr int kPercent = 80;
  json target = {{"type", "Utilization"}, {"averageUtilization", kPercent}};
  json resource = {{"name", "cpu"}, {"target", std::move(target)}};
  spec["metrics"] = json::array({{{"type", "Resource"}, {"resource", std::move(resource)}}});
}

}  // namespace

void SelectJobsPods(json& body, const std::string& uid) {
  json& spec = ObjectAt(body, "spec");
  if (At(spec, "manualSelector") == true) return;
  json& labels = ObjectAt(ObjectAt(ObjectAt(spec, "template"), "metadata"), "labels");
  const std::string name = TextOf(At(body, {"metadata", "name"}));
  for (const char* prefix : {"", "batch.kubernetes.io/"}) {
    labels[std::string(prefix) + "controller-uid"] = uid;
    labels[std::string(prefix) + "job-name"] = name;
  }
  ObjectAt(ObjectAt(spec, "selector"), "matchLabels")["batch.kubernetes.io/controller-uid"] = uid;
}

void SetDefaults(json& body) {
  // Kubernetes' own kinds only: another group's Service is none of these.
  const std::string name = Text(body, "kind"), api_version = Text(body, "apiVersion");
  const GroupKind own = ParseGroupKind(name);
  const std::string_view kind = own.group == GroupOf(api_version) ? own.kind : std::string_view();
  json& metadata = ObjectAt(body, "metadata");
  if (json& dropped = kind.empty() ? metadata : body; HasNull(dropped)) DropNulls(dropped, false);
  if (kind == "Namespace") {
    // The immutable label that selectors of webhooks rely on.
    ObjectAt(metadata, "labels")["kubernetes.io/metadata.name"] = Text(metadata, "name");
    // Once it is going, an empty list says that nothing holds it any more.
    if (!At(metadata, "deletionTimestamp").is_string()) {
      Default(ObjectAt(body, "spec"), "finalizers", json::array({"kubernetes"}));
    }
    Default(ObjectAt(body, "status"), "phase", "Active");
  } else if (kind == "Service") {
    DefaultService(body);
  } else if (kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet" || kind == "DaemonSet" ||
             kind == "Job") {
    json& spec = ObjectAt(body, "spec");
    if (kind == "Deployment") DefaultDeployment(spec);
    if (kind == "ReplicaSet") Default(spec, "replicas", 1);
    if (kind == "StatefulSet") DefaultStatefulSet(spec);
    if (kind == "DaemonSet") DefaultDaemonSet(spec);
    if (kind == "Job") DefaultJob(spec);
    DefaultTemplate(spec);
  } else if (kind == "CronJob") {
    DefaultCronJob(ObjectAt(body, "spec"));
  } else if (kind == "ReplicationController") {
    DefaultReplicationController(body);
  } else if (kind == "PodTemplate") {
    DefaultPodSpec(ObjectAt(ObjectAt(body, "template"), "spec"));
  } else if (kind == "Pod") {
    DefaultPod(body);
  } else if (kind == "Secret") {
    DefaultSecret(body);
  } else if (kind == "PersistentVolume" || kind == "PersistentVolumeClaim") {
    if (kind == "PersistentVolume") Default(ObjectAt(body, "spec"), "persistentVolumeReclaimPolicy", "Retain");
    Default(ObjectAt(body, "spec"), "volumeMode", "Filesystem");
    Default(ObjectAt(body, "status"), "phase", "Pending");
  } else if (kind == "LimitRange") {
    DefaultLimitRange(body);
  } else if (kind == "HorizontalPodAutoscaler") {
    DefaultAutoscaler(body);
  } else if (kind == "CustomResourceDefinition") {
    DefaultDefinition(body, metadata);
  }
}

}  // namespace wavetank::fakekube
