#include "fakes/kube/validation/validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/kube_names.h"
#include "core/kube/quantity.h"
#include "fakes/kube/objects/annotations.h"
#include "fakes/kube/objects/api_error.h"
#include "fakes/kube/objects/base64.h"
#include "fakes/kube/validation/batch_rules.h"
#include "fakes/kube/validation/pod_rules.h"
#include "fakes/kube/validation/policy_rules.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;
using Errors = std::vector<FieldError>;

// apimachinery: pkg/util/validation/validation.go, as core/base/text/kube_names.h.
constexpr const char* kConfigKeyMessage =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

bool IsLabel(std::string_view text, size_t most = kLongestDnsLabel) {
  return text.size() <= most && ReadsAsDnsLabel(text);
}

bool IsSubdomain(std::string_view text) { return text.size() <= kLongestDnsSubdomain && ReadsAsDnsSubdomain(text); }

std::string Shown(const json& quantity) { return quantity.is_string() ? TextOf(quantity) : JsonText(quantity); }

// What is wrong with a label's or an annotation's key; empty if nothing is.
std::string QualifiedNameProblem(std::string_view key) {
  std::string_view name = key;
  if (const size_t slash = key.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = key.substr(0, slash);
    name = key.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return fmt::format(
          "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
          kQualifiedNameSays);
    }
    if (prefix.empty()) return "prefix part must be non-empty";
    if (!IsSubdomain(prefix)) return std::string("prefix part ") + kDnsSubdomainSays;
  }
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > 63) return "name part must be no more than 63 characters";
  return ReadsAsQualifiedPart(name) ? "" : std::string("name part ") + kQualifiedNameSays;
}

std::string LabelValueProblem(std::string_view value) {
  if (value.size() > 63) return "must be no more than 63 characters";
  return ReadsAsLabelValue(value) ? "" : kLabelValueSays;
}

void CheckLabels(const json& labels, const std::string& field, Errors* errors) {
  if (!labels.is_object()) return;
  for (const auto& [key, value] : labels.items()) {
    if (const std::string problem = QualifiedNameProblem(key); !problem.empty())
      errors->push_back(InvalidField(field, key, problem));
    if (const std::string problem = LabelValueProblem(TextOf(value)); !problem.empty())
      errors->push_back(InvalidField(field, value, problem));
  }
}

void CheckMetadata(const GroupKind& kind, const json& body, const kube::Object* previous, Errors* errors) {
  const json& metadata = At(body, "metadata");
  const std::string name = Text(metadata, "name");
  if (const std::string problem = NameProblem(kind, name); !problem.empty() && previous == nullptr) {
    errors->push_back(name.empty() ? RequiredField("metadata.name", "name or generateName is required")
                                   : InvalidField("metadata.name", name, problem));
  }
  CheckLabels(At(metadata, "labels"), "metadata.labels", errors);
  const json& annotations = At(metadata, "annotations");
  if (annotations.is_object()) {
    for (const auto& [key, _] : annotations.items()) {
      std::string lower = key;
      std::transform(lower.begin(), lower.end(), lower.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      if (const std::string problem = QualifiedNameProblem(lower); !problem.empty())
        errors->push_back(InvalidField("metadata.annotations", key, problem));
    }
  }
  if (AnnotationsBytes(annotations) > kMaxAnnotationsBytes)
    errors->push_back(TooLongField("metadata.annotations", kMaxAnnotationsBytes));
  for (const json& finalizer : Items(At(metadata, "finalizers"))) {
    if (const std::string problem = QualifiedNameProblem(TextOf(finalizer)); !problem.empty())
      errors->push_back(InvalidField("metadata.finalizers", finalizer, problem));
  }
  size_t i = 0, controllers = 0;
  for (const json& owner : Items(At(metadata, "ownerReferences"))) {
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (Text(owner, field).empty())
        errors->push_back(
            InvalidField(fmt::format("metadata.ownerReferences[{}].{}", i, field), "", "must not be empty"));
    }
    controllers += At(owner, "controller") == true ? 1 : 0;
    ++i;
  }
  if (controllers > 1) {
    errors->push_back(InvalidField("metadata.ownerReferences", At(metadata, "ownerReferences"),
                                   "Only one reference can have Controller set to true."));
  }
  if (previous == nullptr || !previous->meta.deleting) return;
  std::vector<std::string> added;
  const json& old = Items(At(previous->body, {"metadata", "finalizers"}));
  for (const json& finalizer : Items(At(metadata, "finalizers"))) {
    if (std::find(old.begin(), old.end(), finalizer) == old.end()) added.push_back(JsonText(finalizer));
  }
  if (!added.empty()) {
    errors->push_back(ForbiddenField(
        "metadata.finalizers",
        fmt::format(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            fmt::join(added, ", "))));
  }
}

void CheckPortNumber(const json& port, const std::string& field, Errors* errors) {
  if (port.is_null()) return errors->push_back(RequiredField(field));
  const int64_t number = NumberOf(port, -1);
  if (number < 1 || number > 65535)
    errors->push_back(InvalidField(field, port, "must be between 1 and 65535, inclusive"));
}

// A port's name as IANA_SVC_NAME.
std::string PortNameProblem(std::string_view name) {
  if (name.size() > 15) return "must be no more than 15 characters";
  if (!IsLabel(name, 15)) return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
  if (name.find("--") != std::string_view::npos) return "must not contain consecutive hyphens";
  if (std::none_of(name.begin(), name.end(), IsLowerLetter)) return "must contain at least one letter (a-z)";
  return {};
}

void CheckTargetPort(const json& target, const std::string& field, Errors* errors) {
  if (target.is_null()) return;
  if (target.is_number()) return CheckPortNumber(target, field, errors);
  if (const std::string problem = PortNameProblem(TextOf(target)); !problem.empty())
    errors->push_back(InvalidField(field, target, problem));
}

void CheckOneOf(const json& value, const std::string& field, std::vector<std::string> supported, Errors* errors) {
  if (value.is_null()) return errors->push_back(RequiredField(field));
  if (std::find(supported.begin(), supported.end(), TextOf(value)) == supported.end())
    errors->push_back(UnsupportedField(field, value, std::move(supported)));
}

void CheckService(const json& body, const kube::Object* previous, Errors* errors) {
  const json& spec = At(body, "spec");
  CheckOneOf(At(spec, "type"), "spec.type", {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, errors);
  CheckOneOf(At(spec, "sessionAffinity"), "spec.sessionAffinity", {"ClientIP", "None"}, errors);
  if (const json& seconds = At(spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
      seconds.is_number_integer() && (NumberOf(seconds) <= 0 || NumberOf(seconds) > 86400)) {
    errors->push_back(InvalidField("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds,
                                   "must be greater than 0 and less than 86400"));
  }
  const json& outside = At(spec, "externalTrafficPolicy");
  const bool exposed = At(spec, "type") == "NodePort" || At(spec, "type") == "LoadBalancer" ||
                       (At(spec, "type") == "ClusterIP" && !Items(At(spec, "externalIPs")).empty());
  if (previous == nullptr && !exposed && !TextOf(outside).empty()) {
    errors->push_back(
        InvalidField("spec.externalTrafficPolicy", outside, "may only be set for externally-accessible services"));
  }
  const std::string type = Text(spec, "type");
  const json& ports = Items(At(spec, "ports"));
  const bool headless = Text(spec, "clusterIP") == "None";
  if (ports.empty() && !headless && type != "ExternalName") errors->push_back(RequiredField("spec.ports"));
  if (headless && (type == "LoadBalancer" || type == "NodePort")) {
    errors->push_back(
        InvalidField("spec.clusterIPs[0]", "None", fmt::format("may not be set to 'None' for {} services", type)));
  }
  if (type == "ExternalName" && Text(spec, "externalName").empty())
    errors->push_back(RequiredField("spec.externalName"));
  std::set<std::string> names, numbers;
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string at = fmt::format("spec.ports[{}]", i), name = Text(ports[i], "name");
    if (name.empty()) {
      if (ports.size() > 1) errors->push_back(RequiredField(at + ".name"));
    } else if (!IsLabel(name)) {
      errors->push_back(InvalidField(at + ".name", name, kDnsLabelSays));
    } else if (!names.insert(name).second) {
      errors->push_back(DuplicateField(at + ".name", name));
    }
    CheckPortNumber(At(ports[i], "port"), at + ".port", errors);
    CheckOneOf(At(ports[i], "protocol"), at + ".protocol", {"SCTP", "TCP", "UDP"}, errors);
    CheckTargetPort(At(ports[i], "targetPort"), at + ".targetPort", errors);
    const std::string key = Text(ports[i], "protocol") + "/" + JsonText(At(ports[i], "port"));
    if (!numbers.insert(key).second) {
      errors->push_back(DuplicateField(at, {{"port", At(ports[i], "port")}, {"protocol", Text(ports[i], "protocol")}}));
    }
  }
  CheckLabels(At(spec, "selector"), "spec.selector", errors);
  if (previous == nullptr || type == "ExternalName") return;
  const json& before = At(previous->body, "spec");
  const std::string old = Text(before, "clusterIP"), now = Text(spec, "clusterIP");
  if (Text(before, "type") != "ExternalName" && !old.empty() && old != now) {
    errors->push_back({"FieldValueInvalid", "spec.clusterIPs[0]",
                       fmt::format("Invalid value: []string{{\"{}\"}}: may not change once set", now)});
  }
}

// Kubernetes: ValidateResourceRequirements(), of what is below zero or more than its limit.
void CheckResources(const json& resources, const std::string& at, Errors* errors) {
  const json& limits = At(resources, "limits");
  for (const char* which : {"limits", "requests"}) {
    const json& quantities = At(resources, which);
    if (!quantities.is_object()) continue;
    for (const auto& [name, value] : quantities.items()) {
      const auto amount = kube::QuantityNanos(value), limit = kube::QuantityNanos(At(limits, name));
      if (amount && *amount < 0) {
        errors->push_back(InvalidField(fmt::format("{}.{}[{}]", at, which, name), Shown(value),
                                       "must be greater than or equal to 0"));
      } else if (amount && limit && *amount > *limit) {
        errors->push_back(
            InvalidField(fmt::format("{}.{}", at, which), Shown(value),
                         fmt::format("must be less than or equal to {} limit of {}", name, Shown(At(limits, name)))));
      }
    }
  }
}

void CheckContainers(const json& spec, const char* list, const std::string& at, const std::set<std::string>& volumes,
                     std::set<std::string>* names, Errors* errors) {
  const json& containers = Items(At(spec, list));
  for (size_t i = 0; i < containers.size(); ++i) {
    const json& container = containers[i];
    const std::string field = fmt::format("{}.{}[{}]", at, list, i), name = Text(container, "name");
    if (name.empty()) {
      errors->push_back(RequiredField(field + ".name"));
    } else if (!IsLabel(name)) {
      errors->push_back(InvalidField(field + ".name", name, kDnsLabelSays));
    } else if (!names->insert(name).second) {
      errors->push_back(DuplicateField(field + ".name", name));
    }
    if (Text(container, "image").empty()) errors->push_back(RequiredField(field + ".image"));
    // Not defaulted here: nothing is pulled.
    if (container.contains("imagePullPolicy")) {
      CheckOneOf(At(container, "imagePullPolicy"), field + ".imagePullPolicy", {"Always", "IfNotPresent", "Never"},
                 errors);
    }
    CheckResources(At(container, "resources"), field + ".resources", errors);
    CheckProbes(container, field, errors);
    CheckContainerParts(container, At(spec, "hostNetwork") == true, field, errors);
    const json& ports = Items(At(container, "ports"));
    std::set<std::string> port_names;
    for (size_t p = 0; p < ports.size(); ++p) {
      const std::string port = fmt::format("{}.ports[{}]", field, p), port_name = Text(ports[p], "name");
      CheckPortNumber(At(ports[p], "containerPort"), port + ".containerPort", errors);
      CheckOneOf(At(ports[p], "protocol"), port + ".protocol", {"SCTP", "TCP", "UDP"}, errors);
      if (port_name.empty()) continue;
      if (const std::string problem = PortNameProblem(port_name); !problem.empty()) {
        errors->push_back(InvalidField(port + ".name", port_name, problem));
      } else if (!port_names.insert(port_name).second) {
        errors->push_back(DuplicateField(port + ".name", port_name));
      }
    }
    const json& env = Items(At(container, "env"));
    for (size_t e = 0; e < env.size(); ++e) {
      if (Text(env[e], "name").empty()) errors->push_back(RequiredField(fmt::format("{}.env[{}].name", field, e)));
    }
    const json& mounts = Items(At(container, "volumeMounts"));
    std::set<std::string> paths;
    for (size_t m = 0; m < mounts.size(); ++m) {
      const std::string mount = fmt::format("{}.volumeMounts[{}]", field, m), volume = Text(mounts[m], "name");
      if (volumes.count(volume) == 0)
        errors->push_back({"FieldValueNotFound", mount + ".name", fmt::format("Not found: \"{}\"", volume)});
      const std::string path = Text(mounts[m], "mountPath");
      if (path.empty()) {
        errors->push_back(RequiredField(mount + ".mountPath"));
      } else if (!paths.insert(path).second) {
        errors->push_back(InvalidField(mount + ".mountPath", path, "must be unique"));
      }
    }
  }
}

// `claims`: names of volumes that the pod gets besides its own, or instead of them.
void CheckPodSpec(const json& spec, const std::string& at, Errors* errors, const std::set<std::string>& claims = {}) {
  std::set<std::string> volumes, names;
  const json& volume_list = Items(At(spec, "volumes"));
  for (size_t i = 0; i < volume_list.size(); ++i) {
    const std::string field = fmt::format("{}.volumes[{}].name", at, i), name = Text(volume_list[i], "name");
    if (name.empty()) {
      errors->push_back(RequiredField(field));
    } else if (!IsLabel(name)) {
      errors->push_back(InvalidField(field, name, kDnsLabelSays));
    } else if (!volumes.insert(name).second) {
      errors->push_back(DuplicateField(field, name));
    }
  }
  volumes.insert(claims.begin(), claims.end());
  if (Items(At(spec, "containers")).empty()) errors->push_back(RequiredField(at + ".containers"));
  CheckContainers(spec, "containers", at, volumes, &names, errors);
  CheckContainers(spec, "initContainers", at, volumes, &names, errors);
  CheckOneOf(At(spec, "restartPolicy"), at + ".restartPolicy", {"Always", "Never", "OnFailure"}, errors);
  CheckAffinity(At(spec, "affinity"), at + ".affinity", errors);
  CheckPodParts(spec, at, errors);
  if (const json& grace = At(spec, "terminationGracePeriodSeconds"); NumberOf(grace) < 0) {
    errors->push_back(InvalidField(at + ".terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"));
  }
}

void CheckPod(const json& body, const kube::Object* previous, Errors* errors) {
  const json& spec = At(body, "spec");
  CheckPodSpec(spec, "spec", errors);
  if (previous == nullptr) return;
  // What may change is made equal; then nothing may differ. (The scheduler binds by writing nodeName here.)
  json old = At(previous->body, "spec"), now = spec;
  for (json* one : {&old, &now}) {
    for (const char* list : {"containers", "initContainers"}) {
      if (const auto it = one->find(list); it != one->end() && it->is_array()) {
        for (json& container : *it) {
          if (container.is_object()) container.erase("image");
        }
      }
    }
    // Ephemeral containers come by a subresource of their own, which sees to them.
    for (const char* field :
         {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "ephemeralContainers"})
      one->erase(field);
  }
  if (Text(old, "nodeName").empty()) old["nodeName"] = At(now, "nodeName");
  if (!now.contains("nodeName")) now["nodeName"] = nullptr;
  if (old != now) {
    errors->push_back(ForbiddenField(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
        "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"));
  }
}

// Go's %#v of a metav1.LabelSelector, as far as users meet it.
std::string GoSelector(const json& selector) {
  std::string labels = "map[string]string(nil)";
  if (const json& match = At(selector, "matchLabels"); match.is_object()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : match.items()) pairs.push_back(fmt::format("\"{}\":\"{}\"", key, TextOf(value)));
    labels = fmt::format("map[string]string{{{}}}", fmt::join(pairs, ", "));
  }
  std::string expressions = "[]v1.LabelSelectorRequirement(nil)";
  if (!Items(At(selector, "matchExpressions")).empty()) {
    std::vector<std::string> all;
    for (const json& one : Items(At(selector, "matchExpressions"))) {
      std::vector<std::string> values;
      for (const json& value : Items(At(one, "values"))) values.push_back(JsonText(value));
      all.push_back(fmt::format("v1.LabelSelectorRequirement{{Key:\"{}\", Operator:\"{}\", Values:[]string{{{}}}}}",
                                Text(one, "key"), Text(one, "operator"), fmt::join(values, ", ")));
    }
    expressions = fmt::format("[]v1.LabelSelectorRequirement{{{}}}", fmt::join(all, ", "));
  }
  return fmt::format("v1.LabelSelector{{MatchLabels:{}, MatchExpressions:{}}}", labels, expressions);
}

bool SelectorMatches(const json& selector, const json& labels) {
  if (const json& match = At(selector, "matchLabels"); match.is_object()) {
    for (const auto& [key, value] : match.items()) {
      if (At(labels, key) != value) return false;
    }
  }
  for (const json& one : Items(At(selector, "matchExpressions"))) {
    const std::string op = Text(one, "operator");
    const json& value = At(labels, Text(one, "key"));
    const json& values = Items(At(one, "values"));
    const bool among = std::find(values.begin(), values.end(), value) != values.end();
    if (op == "In"       ? value.is_null() || !among
        : op == "NotIn"  ? !value.is_null() && among
        : op == "Exists" ? value.is_null()
                         : !value.is_null())
      return false;
  }
  return true;
}

// kubernetes: pkg/apis/apps/validation, ValidateDeploymentStrategy(). An update may come as a patch that says the new
// type alone, of which kubectl takes the rest away (patchStrategy retainKeys).
void CheckStrategy(const json& strategy, bool fresh, Errors* errors) {
  CheckOneOf(At(strategy, "type"), "spec.strategy.type", {"Recreate", "RollingUpdate"}, errors);
  const json& rolling = At(strategy, "rollingUpdate");
  if (At(strategy, "type") == "Recreate") {
    if (fresh && rolling.is_object())
      errors->push_back(
          ForbiddenField("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"));
    return;
  }
  const auto none = [&](const char* name) { return At(rolling, name) == 0 || At(rolling, name) == "0%"; };
  if (none("maxUnavailable") && none("maxSurge")) {
    errors->push_back(InvalidField("spec.strategy.rollingUpdate.maxUnavailable", At(rolling, "maxUnavailable"),
                                   "may not be 0 when `maxSurge` is 0"));
  }
}

// Deployments, ReplicaSets, StatefulSets, DaemonSets.
void CheckWorkload(std::string_view kind, const json& body, const kube::Object* previous, Errors* errors) {
  const json& spec = At(body, "spec");
  const json& replicas = At(spec, "replicas");
  if (NumberOf(replicas) < 0)
    errors->push_back(InvalidField("spec.replicas", replicas, "must be greater than or equal to 0"));
  CheckReplicasAreFew(spec, "replicas", "spec", errors);
  const json &selector = At(spec, "selector"), &labels = At(spec, {"template", "metadata", "labels"});
  const bool selects = !At(selector, "matchLabels").empty() || !Items(At(selector, "matchExpressions")).empty();
  const size_t before = errors->size();
  CheckSelector(selector, "spec.selector", errors);
  if (errors->size() > before) {
    errors->push_back({"FieldValueInvalid", "spec.selector",
                       fmt::format("Invalid value: {}: invalid label selector", GoSelector(selector))});
  } else if (!selector.is_object()) {
    errors->push_back(RequiredField("spec.selector"));
  } else if (!selects) {
    errors->push_back({"FieldValueInvalid", "spec.selector",
                       fmt::format("Invalid value: {}: empty selector is invalid for {}", GoSelector(selector),
                                   kind == "Deployment" ? "deployment" : std::string(kind))});
  } else if (!SelectorMatches(selector, labels)) {
    std::vector<std::string> pairs;
    if (labels.is_object()) {
      for (const auto& [key, value] : labels.items()) pairs.push_back(fmt::format("\"{}\":\"{}\"", key, TextOf(value)));
    }
    errors->push_back(
        {"FieldValueInvalid", "spec.template.metadata.labels",
         fmt::format("Invalid value: map[string]string{{{}}}: `selector` does not match template `labels`",
                     fmt::join(pairs, ", "))});
  }
  CheckLabels(labels, "spec.template.labels", errors);
  const json& pod = At(spec, {"template", "spec"});
  std::set<std::string> claims;
  for (const json& claim : Items(At(spec, "volumeClaimTemplates"))) claims.insert(Text(At(claim, "metadata"), "name"));
  CheckPodSpec(pod, "spec.template.spec", errors, claims);
  if (const json& restart = At(pod, "restartPolicy"); restart == "Never" || restart == "OnFailure")
    errors->push_back(UnsupportedField("spec.template.spec.restartPolicy", restart, {"Always"}));
  // kubernetes: pkg/apis/apps/validation, ValidateDeploymentSpec, ValidateDaemonSetSpec.
  if (kind == "Deployment" || kind == "DaemonSet") CheckNotNegative(spec, "revisionHistoryLimit", "spec", errors);
  if (kind == "Deployment") CheckStrategy(At(spec, "strategy"), previous == nullptr, errors);
  if (previous != nullptr && At(previous->body, {"spec", "selector"}) != selector) {
    errors->push_back({"FieldValueInvalid", "spec.selector",
                       fmt::format("Invalid value: {}: field is immutable", GoSelector(selector))});
  }
}

// Its selector is a mapping of labels, and may be left out.
void CheckReplicationController(const json& body, Errors* errors) {
  const json &spec = At(body, "spec"), &selector = At(spec, "selector");
  CheckNotNegative(spec, "replicas", "spec", errors);
  CheckReplicasAreFew(spec, "replicas", "spec", errors);
  if (!selector.is_object() || selector.empty()) {
    errors->push_back(RequiredField("spec.selector"));
  } else if (!SelectorMatches({{"matchLabels", selector}}, At(spec, {"template", "metadata", "labels"}))) {
    errors->push_back(InvalidField("spec.template.metadata.labels", At(spec, {"template", "metadata", "labels"}),
                                   "`selector` does not match template `labels`"));
  }
  CheckPodSpec(At(spec, {"template", "spec"}), "spec.template.spec", errors);
}

void CheckData(const json& body, const kube::Object* previous, Errors* errors) {
  for (const char* section : {"data", "binaryData"}) {
    const json& data = At(body, section);
    if (!data.is_object()) continue;
    for (const auto& [key, value] : data.items()) {
      const bool good = !key.empty() && key.size() <= 253 && key != "." && key != ".." &&
                        std::all_of(key.begin(), key.end(),
                                    [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; });
      if (!good) errors->push_back(InvalidField(fmt::format("{}[{}]", section, key), key, kConfigKeyMessage));
    }
  }
  // kubernetes: pkg/apis/core/validation, ValidateConfigMap and ValidateSecret (MaxSecretSize). Base64 carries three
  // bytes in four.
  constexpr size_t kMost = size_t{1} << 20;
  const bool secret = Text(body, "kind") == "Secret";
  size_t bytes = 0;
  for (const char* section : {"data", "binaryData"}) {
    const bool encoded = secret || section != std::string_view("data");
    for (const json& value : At(body, section)) {
      if (!value.is_string()) continue;
      const std::string& text = value.get_ref<const std::string&>();
      const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
      bytes += encoded ? text.size() / 4 * 3 - std::min(padding, text.size()) : text.size();
    }
  }
  if (bytes > kMost)
    errors->push_back(
        {"FieldValueTooLong", secret ? "data" : "[]", fmt::format("Too long: must have at most {} bytes", kMost)});
  if (previous == nullptr || At(previous->body, "immutable") != true) return;
  if (At(body, "immutable") != true)
    errors->push_back(ForbiddenField("immutable", "field is immutable when `immutable` is set"));
  for (const char* section : {"data", "binaryData"}) {
    if (At(body, section) != At(previous->body, section))
      errors->push_back(ForbiddenField(section, "field is immutable when `immutable` is set"));
  }
}

void CheckSecret(const json& body, const kube::Object* previous, Errors* errors) {
  CheckData(body, previous, errors);
  const std::string type = Text(body, "type");
  if (type == "kubernetes.io/tls") {
    for (const char* key : {"tls.crt", "tls.key"}) {
      if (!At(body, {"data", key}).is_string()) errors->push_back(RequiredField(fmt::format("data[{}]", key)));
    }
  } else if (type == "kubernetes.io/service-account-token") {
    if (TextOf(At(body, {"metadata", "annotations", "kubernetes.io/service-account.name"})).empty())
      errors->push_back(RequiredField("metadata.annotations[kubernetes.io/service-account.name]"));
  } else if (type == "kubernetes.io/dockerconfigjson") {
    if (!At(body, {"data", ".dockerconfigjson"}).is_string())
      errors->push_back(RequiredField("data[.dockerconfigjson]"));
  }
  if (previous != nullptr && Text(previous->body, "type") != type)
    errors->push_back(InvalidField("type", type, "field is immutable"));
}

void CheckBinding(const json& body, const kube::Object* previous, Errors* errors) {
  const json& role = At(body, "roleRef");
  if (Text(role, "name").empty()) errors->push_back(RequiredField("roleRef.name"));
  CheckOneOf(At(role, "kind"), "roleRef.kind",
             Text(body, "kind") == "RoleBinding" ? std::vector<std::string>{"Role", "ClusterRole"}
                                                 : std::vector<std::string>{"ClusterRole"},
             errors);
  const json& subjects = Items(At(body, "subjects"));
  for (size_t i = 0; i < subjects.size(); ++i) {
    const std::string field = fmt::format("subjects[{}]", i);
    if (Text(subjects[i], "name").empty()) errors->push_back(RequiredField(field + ".name"));
    // Of a RoleBinding it is the binding's own (kubernetes: pkg/apis/rbac/validation, ValidateRoleBindingSubject()).
    if (Text(body, "kind") == "ClusterRoleBinding" && Text(subjects[i], "kind") == "ServiceAccount" &&
        Text(subjects[i], "namespace").empty())
      errors->push_back(RequiredField(field + ".namespace"));
  }
  if (previous != nullptr && At(previous->body, "roleRef") != role) {
    errors->push_back(
        {"FieldValueInvalid", "roleRef",
         fmt::format("Invalid value: rbac.RoleRef{{APIGroup:\"{}\", Kind:\"{}\", Name:\"{}\"}}: cannot change roleRef",
                     Text(role, "apiGroup"), Text(role, "kind"), Text(role, "name"))});
  }
}

void CheckDefinition(const json& body, const kube::Object* previous, Errors* errors) {
  const json &spec = At(body, "spec"), &names = At(spec, "names");
  const std::string group = Text(spec, "group"), plural = Text(names, "plural");
  const std::string name = TextOf(At(body, {"metadata", "name"}));
  if (name != plural + "." + group)
    errors->push_back(InvalidField("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
  if (group.empty()) errors->push_back(RequiredField("spec.group"));
  CheckOneOf(At(spec, "scope"), "spec.scope", {"Cluster", "Namespaced"}, errors);
  for (const char* field : {"plural", "kind"}) {
    if (Text(names, field).empty()) errors->push_back(RequiredField(std::string("spec.names.") + field));
  }
  size_t storage = 0;
  const json& versions = Items(At(spec, "versions"));
  for (size_t i = 0; i < versions.size(); ++i) {
    if (At(versions[i], "storage") == true) ++storage;
    if (!IsLabel(Text(versions[i], "name")))
      errors->push_back(
          InvalidField(fmt::format("spec.versions[{}].name", i), Text(versions[i], "name"), kDns1035LabelSays));
    if (!At(versions[i], {"schema", "openAPIV3Schema"}).is_object()) {
      errors->push_back(
          RequiredField(fmt::format("spec.versions[{}].schema.openAPIV3Schema", i), "schemas are required"));
    }
  }
  if (storage != 1)
    errors->push_back({"FieldValueInvalid", "spec.versions",
                       "Invalid value: must have exactly one version marked as storage version"});
  if (previous == nullptr) return;
  for (const char* field : {"group", "scope"}) {
    if (At(previous->body, {"spec", field}) != At(spec, field))
      errors->push_back(InvalidField(std::string("spec.") + field, At(spec, field), "field is immutable"));
  }
  if (At(previous->body, {"spec", "names", "kind"}) != At(names, "kind"))
    errors->push_back(InvalidField("spec.names.kind", At(names, "kind"), "field is immutable"));
}

// A field that Go could not read into its type. "": all can be read.
std::string WrongType(std::string_view kind, const json& body) {
  struct Typed {
    std::vector<std::string_view> kinds;
    std::vector<std::string_view> path;
    json::value_t type;
    const char* go;  // the struct's field and its type
  };
  static const auto* const fields = new std::vector<Typed>{
      {{"Deployment", "ReplicaSet", "StatefulSet"}, {"spec", "replicas"}, json::value_t::number_integer, "int32"},
      {{"Service", "Deployment", "ReplicaSet", "Pod", "StatefulSet", "DaemonSet", "Ingress"},
       {"spec"},
       json::value_t::object,
       "Spec"},
      {{"Service"}, {"spec", "ports"}, json::value_t::array, "[]v1.ServicePort"},
      {{"Service"}, {"spec", "selector"}, json::value_t::object, "map[string]string"},
      {{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"},
       {"spec", "template"},
       json::value_t::object,
       "v1.PodTemplateSpec"},
      {{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"},
       {"spec", "template", "spec", "containers"},
       json::value_t::array,
       "[]v1.Container"},
      {{"Pod"}, {"spec", "containers"}, json::value_t::array, "[]v1.Container"},
      {{"ConfigMap", "Secret"}, {"data"}, json::value_t::object, "map[string]string"},
      {{}, {"metadata", "finalizers"}, json::value_t::array, "[]string"},
      {{}, {"metadata", "ownerReferences"}, json::value_t::array, "[]v1.OwnerReference"},
      {{}, {"metadata", "labels"}, json::value_t::object, "map[string]string"},
      {{}, {"metadata", "annotations"}, json::value_t::object, "map[string]string"},
  };
  const auto go_name = [](const json& value) -> std::string { return value.is_boolean() ? "bool" : value.type_name(); };
  // The struct whose field it is, as Go names it.
  const auto owner = [&](const std::vector<std::string_view>& path) -> std::string {
    if (path.size() == 1) return std::string(kind);
    if (path.front() == "metadata") return "ObjectMeta";
    return path.size() > 2 ? "PodSpec" : std::string(kind) + "Spec";
  };
  const auto unreadable = [&](const json& value, const std::vector<std::string_view>& path, std::string_view type) {
    return fmt::format("json: cannot unmarshal {} into Go struct field {}.{} of type {}", go_name(value), owner(path),
                       fmt::join(path, "."), type);
  };
  for (const Typed& field : *fields) {
    if (!field.kinds.empty() && std::find(field.kinds.begin(), field.kinds.end(), kind) == field.kinds.end()) continue;
    const json* at = &body;
    for (const std::string_view key : field.path) at = &At(*at, key);
    const bool good = at->is_null() || at->type() == field.type ||
                      (field.type == json::value_t::number_integer && at->is_number_integer());
    const std::string go = std::string_view(field.go) == "Spec" ? fmt::format("v1.{}Spec", kind) : field.go;
    if (!good) return unreadable(*at, field.path, go);
    if (go != "map[string]string") continue;
    for (const auto& [key, value] : at->items()) {
      if (!value.is_string()) return unreadable(value, field.path, "string");
    }
  }
  return {};
}

Errors Check(const GroupKind& kind, bool own, const json& body, const kube::Object* previous) {
  Errors errors;
  CheckMetadata(kind, body, previous, &errors);
  if (!own) return errors;
  const std::string_view name = kind.kind;
  if (name == "Service") CheckService(body, previous, &errors);
  if (name == "Pod") CheckPod(body, previous, &errors);
  if (name == "Deployment" || name == "ReplicaSet" || name == "StatefulSet" || name == "DaemonSet")
    CheckWorkload(name, body, previous, &errors);
  if (name == "Job") {
    CheckJob(body, previous, &errors);
    CheckPodSpec(At(body, {"spec", "template", "spec"}), "spec.template.spec", &errors);
  }
  if (name == "CronJob") {
    CheckCronJob(body, previous, &errors);
    CheckPodSpec(At(body, {"spec", "jobTemplate", "spec", "template", "spec"}), "spec.jobTemplate.spec.template.spec",
                 &errors);
  }
  // It would ask for them again and again.
  if (name == "HorizontalPodAutoscaler") {
    CheckReplicasAreFew(At(body, "spec"), "minReplicas", "spec", &errors);
    CheckAutoscaler(body, &errors);
  }
  if (name == "PodDisruptionBudget") CheckDisruptionBudget(body, &errors);
  if (name == "PersistentVolumeClaim" && Items(At(body, {"spec", "accessModes"})).empty())
    errors.push_back(RequiredField("spec.accessModes", "at least 1 access mode is required"));
  if (name == "NetworkPolicy") CheckNetworkPolicy(body, &errors);
  if (name == "Ingress") CheckIngress(body, &errors);
  if (name == "Endpoints") CheckEndpoints(body, &errors);
  if (name == "LimitRange") CheckLimitRange(body, &errors);
  if (name == "ResourceQuota") CheckResourceQuota(body, &errors);
  if (name == "ReplicationController") CheckReplicationController(body, &errors);
  if (name == "ConfigMap") CheckData(body, previous, &errors);
  if (name == "Secret") CheckSecret(body, previous, &errors);
  if (name == "RoleBinding" || name == "ClusterRoleBinding") CheckBinding(body, previous, &errors);
  if (name == "CustomResourceDefinition") CheckDefinition(body, previous, &errors);
  return errors;
}

}  // namespace

std::string NameProblem(const GroupKind& kind, std::string_view name) {
  if (name.empty()) return "name or generateName is required";
  if (kind.group == "rbac.authorization.k8s.io") {
    if (name == "." || name == "..") return fmt::format("may not be '{}'", name);
    for (const char forbidden : {'/', '%'}) {
      if (name.find(forbidden) != std::string_view::npos) return fmt::format("may not contain '{}'", forbidden);
    }
    return {};
  }
  if (kind.Is("Service")) {
    if (name.size() > 63) return "must be no more than 63 characters";
    return IsLabel(name) && IsLowerLetter(name.front()) ? "" : kDns1035LabelSays;
  }
  if (kind.Is("Namespace")) {
    if (name.size() > 63) return "must be no more than 63 characters";
    return IsLabel(name) ? "" : kDnsLabelSays;
  }
  if (name.size() > 253) return "must be no more than 253 characters";
  return IsSubdomain(name) ? "" : kDnsSubdomainSays;
}

absl::Status Validate(const json& body, const kube::Object* previous) {
  const std::string kind_name = Text(body, "kind"), api_version = Text(body, "apiVersion");
  const GroupKind kind{kind_name, GroupOf(api_version)};
  const std::string_view version = api_version.find('/') == std::string::npos
                                       ? std::string_view(api_version)
                                       : std::string_view(api_version).substr(api_version.find('/') + 1);
  const bool own = KubernetesOwn(kind);
  if (!VersionServed(kind, version))
    return BadRequest(fmt::format("no matches for kind \"{}\" in version \"{}\"", kind_name, api_version));
  const auto cannot_handle = [&](std::string_view why) {
    return BadRequest(
        fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", kind_name, version, kind_name, why));
  };
  if (const std::string wrong = WrongType(own ? kind.kind : std::string_view("ObjectMeta"), body); !wrong.empty())
    return cannot_handle(wrong);
  if (own && kind_name == "Secret" && At(body, "data").is_object()) {
    for (const auto& [key, value] : At(body, "data").items()) {
      if (!Base64Decode(TextOf(value))) return cannot_handle("illegal base64 data at input byte 0");
    }
  }
  Errors errors = Check(kind, own, body, previous);
  if (!errors.empty() && previous != nullptr) {
    // What was stored without being judged does not stand in the way of other changes.
    const Errors before = Check(kind, own, previous->body, nullptr);
    std::erase_if(errors, [&](const FieldError& error) {
      return std::any_of(before.begin(), before.end(), [&](const FieldError& old) {
        return old.field == error.field && old.message == error.message;
      });
    });
  }
  if (errors.empty()) return absl::OkStatus();
  return InvalidObject(kind, TextOf(At(body, {"metadata", "name"})), errors);
}

absl::Status CheckSize(const json& body) {
  constexpr size_t kMost = 3 << 19;
  // Most objects are far from it: their texts alone decide, and only what may be too large is written out.
  const std::function<size_t(const json&)> texts = [&](const json& in) -> size_t {
    if (in.is_string()) return in.get_ref<const std::string&>().size() + 2;
    if (!in.is_structured()) return 8;
    size_t sum = 2;
    if (in.is_object()) {
      for (const auto& [key, value] : in.items()) sum += key.size() + 4 + texts(value);
    } else {
      for (const json& item : in) sum += 1 + texts(item);
    }
    return sum;
  };
  if (texts(body) <= kMost) return absl::OkStatus();
  return MakeApiError({500, "", "etcdserver: request is too large", nullptr});
}

}  // namespace wavetank::fakekube
