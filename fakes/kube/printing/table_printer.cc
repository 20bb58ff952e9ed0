#include "fakes/kube/printing/table_printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/kube/time_format.h"
#include "fakes/kube/objects/json_path.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr const char *kNone = "<none>", *kUnknown = "<unknown>", *kUnset = "<unset>";
constexpr size_t kShownEndpoints = 3;

struct Row {
  const kube::Object& object;
  const json& body;
  const json& spec;
  const json& status;
  int64_t now;

  std::string Since(const json& date) const {
    const auto seconds = kube::ParseRfc3339(TextOf(date));
    return seconds ? HumanDuration(now - *seconds) : kUnknown;
  }
  std::string Age() const { return Since(At(body, {"metadata", "creationTimestamp"})); }
};

std::string Joined(const std::vector<std::string>& texts, const char* separator = ",") {
  return fmt::format("{}", fmt::join(texts, separator));
}

std::string OrNone(std::string text) { return text.empty() ? kNone : std::move(text); }

std::string LabelsText(const json& labels) {
  std::vector<std::string> out;
  if (labels.is_object()) {
    for (const auto& [key, value] : labels.items()) out.push_back(key + "=" + TextOf(value));
  }
  return OrNone(Joined(out));
}

// A label selector as metav1.FormatLabelSelector writes it.
std::string SelectorText(const json& selector) {
  std::vector<std::string> out;
  if (const json& labels = At(selector, "matchLabels"); labels.is_object()) {
    for (const auto& [key, value] : labels.items()) out.push_back(key + "=" + TextOf(value));
  }
  for (const json& expression : Items(At(selector, "matchExpressions"))) {
    std::vector<std::string> values;
    for (const json& value : Items(At(expression, "values"))) values.push_back(TextOf(value));
    const std::string key = Text(expression, "key"), op = Text(expression, "operator");
    if (op == "Exists") out.push_back(key);
    if (op == "DoesNotExist") out.push_back("!" + key);
    if (op == "In") out.push_back(fmt::format("{} in ({})", key, Joined(values)));
    if (op == "NotIn") out.push_back(fmt::format("{} notin ({})", key, Joined(values)));
  }
  return OrNone(Joined(out));
}

std::string ContainerField(const json& pod_spec, const char* field) {
  std::vector<std::string> out;
  for (const json& container : Items(At(pod_spec, "containers"))) out.push_back(Text(container, field));
  return Joined(out);
}

const json& PodTemplateSpec(const Row& row) { return At(row.spec, {"template", "spec"}); }

void PushTemplate(const Row& row, bool selector, json* cells) {
  cells->push_back(ContainerField(PodTemplateSpec(row), "name"));
  cells->push_back(ContainerField(PodTemplateSpec(row), "image"));
  if (selector) cells->push_back(SelectorText(At(row.spec, "selector")));
}

bool ConditionIs(const json& status, std::string_view type, std::string_view wanted) {
  for (const json& condition : Items(At(status, "conditions"))) {
    if (Text(condition, "type") == type) return Text(condition, "status") == wanted;
  }
  return false;
}

json PodCells(const Row& row) {
  size_t containers = Items(At(row.spec, "containers")).size();
  std::set<std::string> sidecars;  // init containers that go on (kubernetes: printPod, from 1.29 on)
  for (const json& container : Items(At(row.spec, "initContainers"))) {
    if (Text(container, "restartPolicy") == "Always") sidecars.insert(Text(container, "name"));
  }
  containers += sidecars.size();
  std::string reason = Text(row.status, "reason", Text(row.status, "phase"));
  int64_t restarts = 0, ready = 0;
  std::string last_restart;
  const auto count_restarts = [&](const json& status) {
    restarts += Number(status, "restartCount");
    last_restart = std::max(last_restart, TextOf(At(status, {"lastState", "terminated", "finishedAt"})));
  };

  bool initializing = false;
  const json& init = Items(At(row.status, "initContainerStatuses"));
  for (size_t i = 0; i < init.size(); ++i) {
    count_restarts(init[i]);
    const json &terminated = At(init[i], {"state", "terminated"}), &waiting = At(init[i], {"state", "waiting"});
    if (initializing || (terminated.is_object() && Number(terminated, "exitCode") == 0)) continue;
    if (sidecars.contains(Text(init[i], "name")) && At(init[i], "started") == true) {
      ready += At(init[i], "ready") == true ? 1 : 0;
      continue;
    }
    initializing = true;
    const std::string waits_for = Text(waiting, "reason");
    if (terminated.is_object()) {
      const std::string why = Text(terminated, "reason");
      reason = "Init:" + (why.empty() ? fmt::format("ExitCode:{}", Number(terminated, "exitCode")) : why);
    } else if (!waits_for.empty() && waits_for != "PodInitializing") {
      reason = "Init:" + waits_for;
    } else {
      reason = fmt::format("Init:{}/{}", i, Items(At(row.spec, "initContainers")).size());
    }
  }
  const json& statuses = Items(At(row.status, "containerStatuses"));
  bool running = false;
  if (!initializing) {
    restarts = 0;
    last_restart.clear();
    for (auto status = statuses.rbegin(); status != statuses.rend(); ++status) {
      count_restarts(*status);
      const std::string waits_for = TextOf(At(*status, {"state", "waiting", "reason"}));
      const json& terminated = At(*status, {"state", "terminated"});
      if (!waits_for.empty()) {
        reason = waits_for;
      } else if (terminated.is_object()) {
        const std::string why = Text(terminated, "reason");
        reason = why.empty() ? fmt::format("ExitCode:{}", Number(terminated, "exitCode")) : why;
      } else if (At(*status, "ready") == true && At(*status, {"state", "running"}).is_object()) {
        running = true;
        ++ready;
      }
    }
    if (reason == "Completed" && running) reason = ConditionIs(row.status, "Ready", "True") ? "Running" : "NotReady";
  }
  if (row.object.meta.deleting) reason = reason == "NodeLost" ? "Unknown" : "Terminating";

  std::vector<std::string> ips;
  for (const json& ip : Items(At(row.status, "podIPs"))) ips.push_back(Text(ip, "ip"));
  const std::string ip = ips.empty() ? Text(row.status, "podIP") : ips.front();
  const json& gates = Items(At(row.spec, "readinessGates"));
  int64_t passed = 0;
  for (const json& gate : gates) passed += ConditionIs(row.status, Text(gate, "conditionType"), "True") ? 1 : 0;
  return {row.object.meta.name,
          fmt::format("{}/{}", ready, containers),
          reason,
          last_restart.empty() || restarts == 0 ? std::to_string(restarts)
                                                : fmt::format("{} ({} ago)", restarts, row.Since(json(last_restart))),
          row.Age(),
          OrNone(ip),
          OrNone(Text(row.spec, "nodeName")),
          OrNone(Text(row.status, "nominatedNodeName")),
          gates.empty() ? kNone : fmt::format("{}/{}", passed, gates.size())};
}

std::string ExternalAddresses(const Row& row, const std::string& type) {
  std::vector<std::string> external;
  for (const json& ip : Items(At(row.spec, "externalIPs"))) external.push_back(TextOf(ip));
  if (type == "ExternalName") return Text(row.spec, "externalName");
  if (type != "LoadBalancer") return OrNone(Joined(external));
  std::set<std::string> balancers;
  for (const json& ingress : Items(At(row.status, {"loadBalancer", "ingress"}))) {
    const std::string ip = Text(ingress, "ip");
    balancers.insert(ip.empty() ? Text(ingress, "hostname") : ip);
  }
  std::vector<std::string> all(balancers.begin(), balancers.end());
  all.insert(all.end(), external.begin(), external.end());
  return all.empty() ? "<pending>" : Joined(all);
}

json ServiceCells(const Row& row) {
  const std::string type = Text(row.spec, "type");
  std::vector<std::string> ports;
  for (const json& port : Items(At(row.spec, "ports"))) {
    const int64_t node_port = Number(port, "nodePort");
    const std::string protocol = Text(port, "protocol", "TCP");
    ports.push_back(node_port > 0 ? fmt::format("{}:{}/{}", Number(port, "port"), node_port, protocol)
                                  : fmt::format("{}/{}", Number(port, "port"), protocol));
  }
  return {row.object.meta.name,  type,      OrNone(Text(row.spec, "clusterIP")), ExternalAddresses(row, type),
          OrNone(Joined(ports)), row.Age(), LabelsText(At(row.spec, "selector"))};
}

// "a,b,c + 2 more...".
std::string FirstOf(const std::vector<std::string>& all, const char* otherwise) {
  if (all.empty()) return otherwise;
  if (all.size() <= kShownEndpoints) return Joined(all);
  return fmt::format("{} + {} more...", fmt::join(all.begin(), all.begin() + kShownEndpoints, ","),
                     all.size() - kShownEndpoints);
}

json EndpointsCells(const Row& row) {
  std::vector<std::string> all;
  const json& subsets = Items(At(row.body, "subsets"));
  for (const json& subset : subsets) {
    const json& ports = Items(At(subset, "ports"));
    if (ports.empty()) {
      for (const json& address : Items(At(subset, "addresses"))) all.push_back(Text(address, "ip"));
    }
    for (const json& port : ports) {
      for (const json& address : Items(At(subset, "addresses")))
        all.push_back(fmt::format("{}:{}", Text(address, "ip"), Number(port, "port")));
    }
  }
  return {row.object.meta.name, FirstOf(all, subsets.empty() ? kNone : ""), row.Age()};
}

json EndpointSliceCells(const Row& row) {
  std::vector<std::string> ports, addresses;
  for (const json& port : Items(At(row.body, "ports"))) {
    const json& number = At(port, "port");
    ports.push_back(number.is_number_integer() ? JsonText(number) : Text(port, "name", "*"));
  }
  for (const json& endpoint : Items(At(row.body, "endpoints"))) {
    for (const json& address : Items(At(endpoint, "addresses"))) addresses.push_back(TextOf(address));
  }
  return {row.object.meta.name, Text(row.body, "addressType"), FirstOf(ports, kUnset), FirstOf(addresses, kUnset),
          row.Age()};
}

json NodeCells(const Row& row) {
  std::string state = kUnknown;
  for (const json& condition : Items(At(row.status, "conditions"))) {
    if (Text(condition, "type") == "Ready") state = Text(condition, "status") == "True" ? "Ready" : "NotReady";
  }
  if (state == kUnknown) state = "Unknown";
  if (At(row.spec, "unschedulable") == true) state += ",SchedulingDisabled";
  std::set<std::string> roles;
  constexpr std::string_view kRole = "node-role.kubernetes.io/";
  for (const auto& [key, value] : row.object.meta.labels) {
    if (key.starts_with(kRole) && key.size() > kRole.size()) roles.insert(key.substr(kRole.size()));
    if (key == "kubernetes.io/role" && !value.empty()) roles.insert(value);
  }
  const auto address = [&](std::string_view type) {
    for (const json& one : Items(At(row.status, "addresses"))) {
      if (Text(one, "type") == type) return Text(one, "address");
    }
    return std::string(kNone);
  };
  const json& info = At(row.status, "nodeInfo");
  const auto known = [&](const char* field) {
    const std::string text = Text(info, field);
    return text.empty() ? std::string(kUnknown) : text;
  };
  return {row.object.meta.name,
          state,
          OrNone(Joined({roles.begin(), roles.end()})),
          row.Age(),
          Text(info, "kubeletVersion"),
          address("InternalIP"),
          address("ExternalIP"),
          known("osImage"),
          known("kernelVersion"),
          known("containerRuntimeVersion")};
}

json DeploymentCells(const Row& row) {
  json cells = {row.object.meta.name,
                fmt::format("{}/{}", Number(row.status, "readyReplicas"), Number(row.spec, "replicas", 1)),
                Number(row.status, "updatedReplicas"), Number(row.status, "availableReplicas"), row.Age()};
  PushTemplate(row, true, &cells);
  return cells;
}

json ReplicaCells(const Row& row, std::string selector) {
  json cells = {row.object.meta.name, Number(row.spec, "replicas", 1), Number(row.status, "replicas"),
                Number(row.status, "readyReplicas"), row.Age()};
  PushTemplate(row, false, &cells);
  cells.push_back(std::move(selector));
  return cells;
}
json ReplicaSetCells(const Row& row) { return ReplicaCells(row, SelectorText(At(row.spec, "selector"))); }
// Its selector is nothing but labels.
json ReplicationControllerCells(const Row& row) { return ReplicaCells(row, LabelsText(At(row.spec, "selector"))); }

json StatefulSetCells(const Row& row) {
  json cells = {row.object.meta.name,
                fmt::format("{}/{}", Number(row.status, "readyReplicas"), Number(row.spec, "replicas", 1)), row.Age()};
  PushTemplate(row, false, &cells);
  return cells;
}

json DaemonSetCells(const Row& row) {
  json cells = {row.object.meta.name,
                Number(row.status, "desiredNumberScheduled"),
                Number(row.status, "currentNumberScheduled"),
                Number(row.status, "numberReady"),
                Number(row.status, "updatedNumberScheduled"),
                Number(row.status, "numberAvailable"),
                LabelsText(At(PodTemplateSpec(row), "nodeSelector")),
                row.Age()};
  PushTemplate(row, true, &cells);
  return cells;
}

json JobCells(const Row& row) {
  const int64_t done = Number(row.status, "succeeded");
  const json &completions = At(row.spec, "completions"), &start = At(row.status, "startTime"),
             &end = At(row.status, "completionTime");
  std::string duration;
  if (const auto from = kube::ParseRfc3339(TextOf(start))) {
    duration = HumanDuration(kube::ParseRfc3339(TextOf(end)).value_or(row.now) - *from);
  }
  const int64_t parallelism = Number(row.spec, "parallelism");
  const std::string of = completions.is_number_integer() ? JsonText(completions)
                         : parallelism > 1               ? fmt::format("1 of {}", parallelism)
                                                         : "1";
  json cells = {row.object.meta.name, fmt::format("{}/{}", done, of), duration, row.Age()};
  PushTemplate(row, true, &cells);
  return cells;
}

json CronJobCells(const Row& row) {
  const json& last = At(row.status, "lastScheduleTime");
  const json& pod = At(row.spec, {"jobTemplate", "spec", "template", "spec"});
  return {row.object.meta.name,
          Text(row.spec, "schedule"),
          At(row.spec, "suspend") == true ? "True" : "False",
          Items(At(row.status, "active")).size(),
          last.is_string() ? row.Since(last) : kNone,
          row.Age(),
          ContainerField(pod, "name"),
          ContainerField(pod, "image"),
          SelectorText(At(row.spec, {"jobTemplate", "spec", "selector"}))};
}

json EventCells(const Row& row) {
  const json& involved = At(row.body, "involvedObject");
  int64_t count = Number(row.body, "count");
  json first = At(row.body, "firstTimestamp"), last = At(row.body, "lastTimestamp");
  if (!first.is_string()) first = At(row.body, "eventTime");
  if (!last.is_string()) last = first;
  if (const json& series = At(row.body, "series"); series.is_object()) {
    count = Number(series, "count");
    last = At(series, "lastObservedTime");
  }
  std::string kind = Text(involved, "kind");
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::vector<std::string> source;
  for (const std::string& part : {Text(At(row.body, "source"), "component", Text(row.body, "reportingComponent")),
                                  Text(At(row.body, "source"), "host", Text(row.body, "reportingInstance"))}) {
    if (!part.empty()) source.push_back(part);
  }
  const std::string name = Text(involved, "name");
  std::string message = Text(row.body, "message");
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  return {row.Since(last),
          Text(row.body, "type"),
          Text(row.body, "reason"),
          name.empty() ? kind : kind + "/" + name,
          Text(involved, "fieldPath"),
          Joined(source, ", "),
          message,
          row.Since(first),
          std::max<int64_t>(count, 1),
          row.object.meta.name};
}

json BindingCells(const Row& row) {
  std::vector<std::string> users, groups, accounts;
  for (const json& subject : Items(At(row.body, "subjects"))) {
    const std::string kind = Text(subject, "kind"), name = Text(subject, "name");
    if (kind == "User") users.push_back(name);
    if (kind == "Group") groups.push_back(name);
    if (kind == "ServiceAccount") accounts.push_back(Text(subject, "namespace") + "/" + name);
  }
  const json& role = At(row.body, "roleRef");
  return {row.object.meta.name,
          Text(role, "kind") + "/" + Text(role, "name"),
          row.Age(),
          Joined(users, ", "),
          Joined(groups, ", "),
          Joined(accounts, ", ")};
}

json IngressCells(const Row& row) {
  std::vector<std::string> hosts;
  for (const json& rule : Items(At(row.spec, "rules"))) {
    const std::string host = Text(rule, "host");
    hosts.push_back(host.empty() ? "*" : host);
  }
  std::vector<std::string> addresses;
  for (const json& ingress : Items(At(row.status, {"loadBalancer", "ingress"}))) {
    const std::string ip = Text(ingress, "ip");
    addresses.push_back(ip.empty() ? Text(ingress, "hostname") : ip);
  }
  return {row.object.meta.name,
          OrNone(Text(row.spec, "ingressClassName")),
          hosts.empty() ? "*" : FirstOf(hosts, "*"),
          Joined(addresses),
          Items(At(row.spec, "tls")).empty() ? "80" : "80, 443",
          row.Age()};
}

json IngressClassCells(const Row& row) {
  const json& parameters = At(row.spec, "parameters");
  std::string text = kNone;
  if (parameters.is_object()) {
    const std::string group = Text(parameters, "apiGroup");
    text = Text(parameters, "kind") + (group.empty() ? "" : "." + group) + "/" + Text(parameters, "name");
  }
  return {row.object.meta.name, Text(row.spec, "controller"), text, row.Age()};
}

json DisruptionBudgetCells(const Row& row) {
  const auto shown = [&](const char* field) {
    const json& value = At(row.spec, field);
    return value.is_null() ? std::string("N/A") : value.is_string() ? value.get<std::string>() : JsonText(value);
  };
  return {row.object.meta.name, shown("minAvailable"), shown("maxUnavailable"),
          Number(row.status, "disruptionsAllowed"), row.Age()};
}

// One metric as "CURRENT/TARGET"; `field` of the metric's type holds its target, of its status what is.
std::string MetricText(const json& spec, const json& status) {
  static constexpr std::pair<const char*, const char*> kFields[] = {{"Resource", "resource"},
                                                                    {"ContainerResource", "containerResource"},
                                                                    {"Pods", "pods"},
                                                                    {"Object", "object"},
                                                                    {"External", "external"}};
  const std::string type = Text(spec, "type");
  const auto field =
      std::find_if(std::begin(kFields), std::end(kFields), [&](const auto& one) { return one.first == type; });
  if (field == std::end(kFields)) return "<unknown type>";
  const json& target = At(spec, {field->second, "target"});
  const json& current = At(status, {field->second, "current"});
  const auto shown = [&](const char* what, const char* unit) {
    const json &is = At(current, what), &wanted = At(target, what);
    const auto text = [](const json& value) { return value.is_string() ? TextOf(value) : JsonText(value); };
    return fmt::format("{}{}/{}{}", is.is_null() ? kUnknown : text(is), is.is_null() ? "" : unit, text(wanted), unit);
  };
  const bool average = At(target, "averageValue").is_string();
  if (type == "Object" || type == "External") {
    return average ? shown("averageValue", "") + " (avg)" : shown("value", "");
  }
  return average || type == "Pods" ? shown("averageValue", "") : shown("averageUtilization", "%");
}

json AutoscalerCells(const Row& row) {
  constexpr size_t kShown = 2;
  const json& target = At(row.spec, "scaleTargetRef");
  const json& minimum = At(row.spec, "minReplicas");
  std::vector<std::string> metrics;
  // autoscaling/v1 knows but one.
  if (const json& percent = At(row.spec, "targetCPUUtilizationPercentage"); percent.is_number_integer()) {
    const json& is = At(row.status, "currentCPUUtilizationPercentage");
    metrics.push_back(fmt::format("{}/{}%", is.is_number_integer() ? JsonText(is) + "%" : kUnknown, JsonText(percent)));
  }
  const json &specs = Items(At(row.spec, "metrics")), &statuses = Items(At(row.status, "currentMetrics"));
  for (size_t i = 0; i < specs.size(); ++i)
    metrics.push_back(MetricText(specs[i], i < statuses.size() ? statuses[i] : json()));
  std::string shown = metrics.empty() ? kNone : "";
  for (size_t i = 0; i < std::min(metrics.size(), kShown); ++i) shown += (i > 0 ? ", " : "") + metrics[i];
  if (metrics.size() > kShown) shown += fmt::format(" + {} more...", metrics.size() - kShown);
  return {row.object.meta.name,
          Text(target, "kind") + "/" + Text(target, "name"),
          shown,
          minimum.is_number_integer() ? JsonText(minimum) : kUnset,
          Number(row.spec, "maxReplicas"),
          Number(row.status, "currentReplicas"),
          row.Age()};
}

json QuotaCells(const Row& row) {
  std::vector<std::string> requests, limits;
  if (const json& hard = At(row.status, "hard"); hard.is_object()) {
    for (const auto& [name, value] : hard.items()) {
      const std::string used = TextOf(At(At(row.status, "used"), name.c_str()));
      (name.starts_with("limits") ? limits : requests)
          .push_back(fmt::format("{}: {}/{}", name, used.empty() ? "0" : used, TextOf(value)));
    }
  }
  return {row.object.meta.name, row.Age(), Joined(requests, ", "), Joined(limits, ", ")};
}

std::string AccessModes(const json& modes) {
  static constexpr std::pair<const char*, const char*> kShort[] = {
      {"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}};
  std::vector<std::string> out;
  for (const auto& [mode, shown] : kShort) {
    const json& all = Items(modes);
    if (std::find(all.begin(), all.end(), json(mode)) != all.end()) out.emplace_back(shown);
  }
  return Joined(out);
}

std::string StorageClassOf(const Row& row) {
  const json& annotation = At(row.body, {"metadata", "annotations", "volume.beta.kubernetes.io/storage-class"});
  return annotation.is_string() ? TextOf(annotation) : Text(row.spec, "storageClassName");
}

json VolumeCells(const Row& row) {
  const json& claim = At(row.spec, "claimRef");
  return {row.object.meta.name,
          TextOf(At(row.spec, {"capacity", "storage"})),
          AccessModes(At(row.spec, "accessModes")),
          Text(row.spec, "persistentVolumeReclaimPolicy"),
          row.object.meta.deleting ? "Terminating" : Text(row.status, "phase"),
          claim.is_object() ? Text(claim, "namespace") + "/" + Text(claim, "name") : "",
          StorageClassOf(row),
          Text(row.status, "reason"),
          row.Age(),
          Text(row.spec, "volumeMode", kUnset)};
}

json ClaimCells(const Row& row) {
  const std::string volume = Text(row.spec, "volumeName");
  const bool bound = !volume.empty();
  return {row.object.meta.name,
          row.object.meta.deleting ? "Terminating" : Text(row.status, "phase"),
          volume,
          bound ? TextOf(At(row.status, {"capacity", "storage"})) : "",
          bound ? AccessModes(At(row.status, "accessModes")) : "",
          StorageClassOf(row),
          row.Age(),
          Text(row.spec, "volumeMode", kUnset)};
}

json StorageClassCells(const Row& row) {
  const json& annotations = At(row.body, {"metadata", "annotations"});
  bool by_default = false;
  for (const char* key :
       {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}) {
    by_default = by_default || At(annotations, key) == "true";
  }
  return {row.object.meta.name + (by_default ? " (default)" : ""),
          Text(row.body, "provisioner"),
          Text(row.body, "reclaimPolicy", "Delete"),
          Text(row.body, "volumeBindingMode", "Immediate"),
          At(row.body, "allowVolumeExpansion") == true,
          row.Age()};
}

json SigningRequestCells(const Row& row) {
  const json& seconds = At(row.spec, "expirationSeconds");
  std::string state = ConditionIs(row.status, "Denied", "True")     ? "Denied"
                      : ConditionIs(row.status, "Approved", "True") ? "Approved"
                                                                    : "Pending";
  if (ConditionIs(row.status, "Failed", "True")) state += ",Failed";
  if (!Text(row.status, "certificate").empty()) state += ",Issued";
  return {row.object.meta.name,
          row.Age(),
          OrNone(Text(row.spec, "signerName")),
          Text(row.spec, "username"),
          seconds.is_number_integer() ? HumanDuration(seconds.get<int64_t>()) : kNone,
          state};
}

json ControllerRevisionCells(const Row& row) {
  std::string controller = kNone;
  for (const json& owner : Items(At(row.body, {"metadata", "ownerReferences"}))) {
    if (At(owner, "controller") != true) continue;
    const std::string group(GroupOf(Text(owner, "apiVersion")));
    controller = Text(owner, "kind") + (group.empty() ? "" : "." + group);
    for (char& c : controller) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    controller += "/" + Text(owner, "name");
  }
  return {row.object.meta.name, controller, Number(row.body, "revision"), row.Age()};
}

json PodTemplateCells(const Row& row) {
  const json& spec = At(row.body, {"template", "spec"});
  return {row.object.meta.name, ContainerField(spec, "name"), ContainerField(spec, "image"),
          LabelsText(At(row.body, {"template", "metadata", "labels"}))};
}

json ApiServiceCells(const Row& row) {
  const json& service = At(row.spec, "service");
  std::string available = "Unknown";
  for (const json& condition : Items(At(row.status, "conditions"))) {
    if (Text(condition, "type") != "Available") continue;
    available = Text(condition, "status");
    if (available != "True") available += fmt::format(" ({})", Text(condition, "reason"));
  }
  return {row.object.meta.name,
          service.is_object() ? Text(service, "namespace") + "/" + Text(service, "name") : "Local", available,
          row.Age()};
}

size_t Entries(const json& in) { return in.is_object() ? in.size() : 0; }

struct Column {
  const char *name, *type;
  int priority = 0;
};

struct Printer {
  std::string_view kind;  // of Kubernetes' own
  std::vector<Column> columns;
  json (*cells)(const Row&);
};

const std::vector<Printer>& Printers() {
  constexpr Column kName{"Name", "string"}, kAge{"Age", "string"}, kContainers{"Containers", "string", 1},
      kImages{"Images", "string", 1}, kSelector{"Selector", "string", 1};
  const auto webhooks = +[](const Row& row) -> json {
    return {row.object.meta.name, Items(At(row.body, "webhooks")).size(), row.Age()};
  };
  const std::vector<Column> replicas = {
      kName,    {"Desired", "integer"}, {"Current", "integer"}, {"Ready", "integer"}, kAge, kContainers, kImages,
      kSelector};
  const std::vector<Column> binding = {kName,
                                       {"Role", "string"},
                                       kAge,
                                       {"Users", "string", 1},
                                       {"Groups", "string", 1},
                                       {"ServiceAccounts", "string", 1}};
  static const auto* const printers = new std::vector<Printer>{
      {"Pod",
       {kName,
        {"Ready", "string"},
        {"Status", "string"},
        {"Restarts", "string"},
        kAge,
        {"IP", "string", 1},
        {"Node", "string", 1},
        {"Nominated Node", "string", 1},
        {"Readiness Gates", "string", 1}},
       PodCells},
      {"Service",
       {kName,
        {"Type", "string"},
        {"Cluster-IP", "string"},
        {"External-IP", "string"},
        {"Port(s)", "string"},
        kAge,
        kSelector},
       ServiceCells},
      {"Deployment",
       {kName,
        {"Ready", "string"},
        {"Up-to-date", "integer"},
        {"Available", "integer"},
        kAge,
        kContainers,
        kImages,
        kSelector},
       DeploymentCells},
      {"ReplicaSet", replicas, ReplicaSetCells},
      {"StatefulSet", {kName, {"Ready", "string"}, kAge, kContainers, kImages}, StatefulSetCells},
      {"DaemonSet",
       {kName,
        {"Desired", "integer"},
        {"Current", "integer"},
        {"Ready", "integer"},
        {"Up-to-date", "integer"},
        {"Available", "integer"},
        {"Node Selector", "string"},
        kAge,
        kContainers,
        kImages,
        kSelector},
       DaemonSetCells},
      {"Job",
       {kName, {"Completions", "string"}, {"Duration", "string"}, kAge, kContainers, kImages, kSelector},
       JobCells},
      {"CronJob",
       {kName,
        {"Schedule", "string"},
        {"Suspend", "boolean"},
        {"Active", "integer"},
        {"Last Schedule", "string"},
        kAge,
        kContainers,
        kImages,
        kSelector},
       CronJobCells},
      {"Endpoints", {kName, {"Endpoints", "string"}, kAge}, EndpointsCells},
      {"EndpointSlice",
       {kName, {"AddressType", "string"}, {"Ports", "string"}, {"Endpoints", "string"}, kAge},
       EndpointSliceCells},
      {"Node",
       {kName,
        {"Status", "string"},
        {"Roles", "string"},
        kAge,
        {"Version", "string"},
        {"Internal-IP", "string", 1},
        {"External-IP", "string", 1},
        {"OS-Image", "string", 1},
        {"Kernel-Version", "string", 1},
        {"Container-Runtime", "string", 1}},
       NodeCells},
      {"Namespace",
       {kName, {"Status", "string"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, Text(row.status, "phase"), row.Age()};
       }},
      {"Secret",
       {kName, {"Type", "string"}, {"Data", "string"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, Text(row.body, "type"), Entries(At(row.body, "data")), row.Age()};
       }},
      {"ConfigMap",
       {kName, {"Data", "string"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, Entries(At(row.body, "data")) + Entries(At(row.body, "binaryData")), row.Age()};
       }},
      {"ServiceAccount",
       {kName, {"Secrets", "string"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, Items(At(row.body, "secrets")).size(), row.Age()};
       }},
      {"Event",
       {{"Last Seen", "string"},
        {"Type", "string"},
        {"Reason", "string"},
        {"Object", "string"},
        {"Subobject", "string", 1},
        {"Source", "string", 1},
        {"Message", "string"},
        {"First Seen", "string", 1},
        {"Count", "string", 1},
        {"Name", "string", 1}},
       EventCells},
      {"Lease",
       {kName, {"Holder", "string"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, Text(row.spec, "holderIdentity"), row.Age()};
       }},
      {"RoleBinding", binding, BindingCells},
      {"ClusterRoleBinding", binding, BindingCells},
      {"MutatingWebhookConfiguration", {kName, {"Webhooks", "integer"}, kAge}, webhooks},
      {"ValidatingWebhookConfiguration", {kName, {"Webhooks", "integer"}, kAge}, webhooks},
      {"Ingress",
       {kName, {"Class", "string"}, {"Hosts", "string"}, {"Address", "string"}, {"Ports", "string"}, kAge},
       IngressCells},
      {"IngressClass", {kName, {"Controller", "string"}, {"Parameters", "string"}, kAge}, IngressClassCells},
      {"NetworkPolicy",
       {kName, {"Pod-Selector", "string"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, SelectorText(At(row.spec, "podSelector")), row.Age()};
       }},
      {"PodDisruptionBudget",
       {kName, {"Min Available", "string"}, {"Max Unavailable", "string"}, {"Allowed Disruptions", "integer"}, kAge},
       DisruptionBudgetCells},
      {"HorizontalPodAutoscaler",
       {kName,
        {"Reference", "string"},
        {"Targets", "string"},
        {"MinPods", "string"},
        {"MaxPods", "string"},
        {"Replicas", "string"},
        kAge},
       AutoscalerCells},
      {"ResourceQuota", {kName, kAge, {"Request", "string"}, {"Limit", "string"}}, QuotaCells},
      {"PersistentVolume",
       {kName,
        {"Capacity", "string"},
        {"Access Modes", "string"},
        {"Reclaim Policy", "string"},
        {"Status", "string"},
        {"Claim", "string"},
        {"StorageClass", "string"},
        {"Reason", "string"},
        kAge,
        {"VolumeMode", "string", 1}},
       VolumeCells},
      {"PersistentVolumeClaim",
       {kName,
        {"Status", "string"},
        {"Volume", "string"},
        {"Capacity", "string"},
        {"Access Modes", "string"},
        {"StorageClass", "string"},
        kAge,
        {"VolumeMode", "string", 1}},
       ClaimCells},
      {"StorageClass",
       {kName,
        {"Provisioner", "string"},
        {"ReclaimPolicy", "string"},
        {"VolumeBindingMode", "string"},
        {"AllowVolumeExpansion", "string"},
        kAge},
       StorageClassCells},
      {"VolumeAttachment",
       {kName, {"Attacher", "string"}, {"PV", "string"}, {"Node", "string"}, {"Attached", "boolean"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name,
                 Text(row.spec, "attacher"),
                 TextOf(At(row.spec, {"source", "persistentVolumeName"})),
                 Text(row.spec, "nodeName"),
                 At(row.status, "attached") == true,
                 row.Age()};
       }},
      {"CertificateSigningRequest",
       {kName,
        kAge,
        {"SignerName", "string"},
        {"Requestor", "string"},
        {"RequestedDuration", "string"},
        {"Condition", "string"}},
       SigningRequestCells},
      {"ControllerRevision", {kName, {"Controller", "string"}, {"Revision", "integer"}, kAge}, ControllerRevisionCells},
      {"ReplicationController", replicas, ReplicationControllerCells},
      {"PodTemplate",
       {kName, {"Containers", "string"}, {"Images", "string"}, {"Pod Labels", "string"}},
       PodTemplateCells},
      {"APIService", {kName, {"Service", "string"}, {"Available", "string"}, kAge}, ApiServiceCells},
      {"PriorityClass",
       {kName, {"Value", "integer"}, {"Global-Default", "boolean"}, kAge},
       +[](const Row& row) -> json {
         return {row.object.meta.name, Number(row.body, "value"), At(row.body, "globalDefault") == true, row.Age()};
       }},
  };
  return *printers;
}

// Null: none.
const Printer* PrinterOf(const GroupKind& kind) {
  if (!KubernetesOwn(kind)) return nullptr;
  const std::vector<Printer>& all = Printers();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Printer& p) { return p.kind == kind.kind; });
  return it == all.end() ? nullptr : &*it;
}

json Definition(const std::string& name, const std::string& type, const std::string& format, int64_t priority,
                const std::string& description = {}) {
  return {{"name", name}, {"type", type}, {"format", format}, {"description", description}, {"priority", priority}};
}

const json& CustomColumns(const json& custom) {
  static const auto* const age =
      new json(json::array({{{"name", "Age"}, {"type", "date"}, {"jsonPath", ".metadata.creationTimestamp"}}}));
  return custom.is_array() && !custom.empty() ? custom : *age;
}

json CustomCell(const Row& row, const json& column) {
  const std::vector<const json*> found = FindJsonPath(row.body, Text(column, "jsonPath"));
  if (found.empty()) return nullptr;
  const json& value = *found.front();
  const std::string type = Text(column, "type");
  if (type == "string") return value.is_string() ? value : json(JsonText(value));
  if (type == "date") {
    const auto seconds = kube::ParseRfc3339(TextOf(value));
    return seconds ? HumanDuration(row.now - *seconds) : "<invalid>";
  }
  if (type == "boolean") return value.is_boolean() ? value : json();
  if (type == "integer") return value.is_number_integer() ? value : json();
  if (type == "number") return value.is_number() ? value : json();
  return nullptr;
}

}  // namespace

std::string HumanDuration(int64_t seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 24 * kHour, kYear = 365 * kDay;
  const auto two = [](int64_t major, char unit, int64_t minor, char minor_unit) {
    return minor == 0 ? fmt::format("{}{}", major, unit) : fmt::format("{}{}{}{}", major, unit, minor, minor_unit);
  };
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * kMinute) return fmt::format("{}s", seconds);
  if (seconds < 10 * kMinute) return two(seconds / kMinute, 'm', seconds % kMinute, 's');
  if (seconds < 3 * kHour) return fmt::format("{}m", seconds / kMinute);
  if (seconds < 8 * kHour) return two(seconds / kHour, 'h', seconds % kHour / kMinute, 'm');
  if (seconds < 2 * kDay) return fmt::format("{}h", seconds / kHour);
  if (seconds < 8 * kDay) return two(seconds / kDay, 'd', seconds % kDay / kHour, 'h');
  if (seconds < 2 * kYear) return fmt::format("{}d", seconds / kDay);
  if (seconds < 8 * kYear) return two(seconds / kYear, 'y', seconds % kYear / kDay, 'd');
  return fmt::format("{}y", seconds / kYear);
}

json TableColumns(const GroupKind& kind, const json& custom) {
  json out = json::array();
  out.push_back(Definition("Name", "string", "name", 0));
  if (const Printer* printer = PrinterOf(kind)) {
    out.clear();
    for (const Column& column : printer->columns) {
      const std::string name = column.name;
      out.push_back(Definition(name, column.type, name == "Name" ? "name" : "", column.priority));
    }
  } else if (KubernetesOwn(kind)) {
    out.push_back(Definition("Created At", "date", "", 0));
  } else {
    for (const json& column : CustomColumns(custom)) {
      out.push_back(Definition(Text(column, "name"), Text(column, "type"), Text(column, "format"),
                               Number(column, "priority"), Text(column, "description")));
    }
  }
  return out;
}

json TableCells(const GroupKind& kind, const json& custom, const kube::Object& object, int64_t now_unix_seconds) {
  const Row row{object, object.body, At(object.body, "spec"), At(object.body, "status"), now_unix_seconds};
  if (const Printer* printer = PrinterOf(kind)) return printer->cells(row);
  json cells = json::array({object.meta.name});
  if (KubernetesOwn(kind)) {
    cells.push_back(At(object.body, {"metadata", "creationTimestamp"}));
  } else {
    for (const json& column : CustomColumns(custom)) cells.push_back(CustomCell(row, column));
  }
  return cells;
}

}  // namespace wavetank::fakekube
