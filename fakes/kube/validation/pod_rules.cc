#include "fakes/kube/validation/pod_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/ascii.h"
#include "core/base/ip.h"
#include "core/base/json_access.h"
#include "core/base/text/kube_names.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

template <size_t N>
bool IsOneOf(std::string_view text, const std::string_view (&all)[N]) {
  return std::find(std::begin(all), std::end(all), text) != std::end(all);
}

// validateObjectFieldSelector() of an environment variable.
void CheckFieldRef(const json& ref, const std::string& at, FieldErrors* errors) {
  static constexpr std::string_view kOfVariables[] = {
      "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
      "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs"};
  static constexpr std::string_view kKnown[] = {"metadata.annotations", "metadata.labels",         "spec.host",
                                                "spec.hostNetwork",     "spec.restartPolicy",      "spec.schedulerName",
                                                "status.phase",         "status.nominatedNodeName"};
  const std::string path = Text(ref, "fieldPath");
  if (path.empty()) return errors->push_back(RequiredField(at + ".fieldPath"));
  if (IsOneOf(path, kOfVariables)) return;
  const bool subscripted = path.starts_with("metadata.annotations['") || path.starts_with("metadata.labels['");
  if (subscripted && path.ends_with("']")) return;
  if (!IsOneOf(path, kKnown)) {
    return errors->push_back(
        InvalidField(at + ".fieldPath", path, "error converting fieldPath: field label not supported: " + path));
  }
  errors->push_back(UnsupportedField(at + ".fieldPath", path,
                                     std::vector<std::string>(std::begin(kOfVariables), std::end(kOfVariables))));
}

// validateEnvVarValueFrom().
void CheckVariable(const json& variable, const std::string& at, FieldErrors* errors) {
  const json& from = At(variable, "valueFrom");
  if (!from.is_object()) return;
  int sources = 0;
  for (const char* source : {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"}) {
    const json& ref = At(from, source);
    if (!ref.is_object()) continue;
    ++sources;
    const std::string field = fmt::format("{}.{}", at, source);
    if (std::string_view(source) == "fieldRef") {
      CheckFieldRef(ref, field, errors);
    } else if (std::string_view(source).ends_with("KeyRef")) {
      if (Text(ref, "name").empty()) errors->push_back(InvalidField(field + ".name", "", kDnsSubdomainSays));
      if (Text(ref, "key").empty()) errors->push_back(RequiredField(field + ".key"));
    }
  }
  if (sources == 0) {
    errors->push_back(InvalidField(
        at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"));
  } else if (!Text(variable, "value").empty()) {
    errors->push_back(InvalidField(at, "", "may not be specified when `value` is not empty"));
  } else if (sources > 1) {
    errors->push_back(InvalidField(at, "", "may not have more than one field specified at a time"));
  }
}

// validateContainerResourceName() and validateResourceName(); extended resources have a domain.
void CheckResourceNames(const json& resources, const std::string& at, FieldErrors* errors) {
  static constexpr std::string_view kStandard[] = {"cpu", "memory", "ephemeral-storage"};
  static constexpr std::string_view kOfQuotas[] = {"pods",    "services",   "replicationcontrollers", "resourcequotas",
                                                   "secrets", "configmaps", "persistentvolumeclaims", "storage"};
  for (const char* kind : {"limits", "requests"}) {
    const json& quantities = At(resources, kind);
    if (!quantities.is_object()) continue;
    for (const auto& [name, quantity] : quantities.items()) {
      if (name.find('/') != std::string::npos || name.starts_with("hugepages-") || IsOneOf(name, kStandard)) continue;
      const std::string field = fmt::format("{}.{}[{}]", at, kind, name);
      if (!IsOneOf(name, kOfQuotas))
        errors->push_back(InvalidField(field, name, "must be a standard resource type or fully qualified"));
      errors->push_back(InvalidField(field, name, "must be a standard resource for containers"));
    }
  }
}

// validateHandler() of lifecycle hooks.
void CheckHook(const json& hook, const std::string& at, FieldErrors* errors) {
  if (!hook.is_object()) return;
  int handlers = 0;
  for (const char* kind : {"exec", "httpGet", "tcpSocket", "sleep"}) {
    if (!At(hook, kind).is_object() || ++handlers < 2) continue;
    errors->push_back(ForbiddenField(fmt::format("{}.{}", at, kind), "may not specify more than 1 handler type"));
  }
  if (handlers == 0) errors->push_back(RequiredField(at, "must specify a handler type"));
}

// ValidateTolerations().
void CheckToleration(const json& toleration, const std::string& at, FieldErrors* errors) {
  const std::string op = Text(toleration, "operator"), effect = Text(toleration, "effect");
  if (Text(toleration, "key").empty() && op != "Exists")
    errors->push_back(InvalidField(at + ".operator", op,
                                   "operator must be Exists when `key` is empty, which means "
                                   "\"match all values and all keys\""));
  if (!At(toleration, "tolerationSeconds").is_null() && effect != "NoExecute")
    errors->push_back(
        InvalidField(at + ".effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  if (op == "Exists" && !Text(toleration, "value").empty()) {
    errors->push_back(InvalidField(at + ".operator", toleration, "value must be empty when `operator` is 'Exists'"));
  } else if (!op.empty() && op != "Exists" && op != "Equal") {
    errors->push_back(UnsupportedField(at + ".operator", op, {"Equal", "Exists"}));
  }
  if (!effect.empty() && effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute")
    errors->push_back(UnsupportedField(at + ".effect", effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"}));
}

// validateVolumeSource(): the second type that a volume has, and those after it, in its order.
void CheckVolume(const json& volume, const std::string& at, FieldErrors* errors) {
  int types = 0;
  for (const char* type :
       {"emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
        "persistentVolumeClaim", "downwardAPI", "configMap", "projected", "csi", "ephemeral"}) {
    if (!At(volume, type).is_object() || ++types < 2) continue;
    errors->push_back(ForbiddenField(fmt::format("{}.{}", at, type), "may not specify more than 1 volume type"));
  }
}

}  // namespace

void CheckContainerParts(const json& container, bool host_network, const std::string& at, FieldErrors* errors) {
  const std::string image = Text(container, "image");
  if (absl::StripAsciiWhitespace(image) != image)
    errors->push_back(InvalidField(at + ".image", image, "must not have leading or trailing whitespace"));
  const json& env = Items(At(container, "env"));
  for (size_t i = 0; i < env.size(); ++i) CheckVariable(env[i], fmt::format("{}.env[{}].valueFrom", at, i), errors);
  const json& mounts = Items(At(container, "volumeMounts"));
  for (size_t i = 0; i < mounts.size(); ++i) {
    CheckWord(At(mounts[i], "mountPropagation"), fmt::format("{}.volumeMounts[{}].mountPropagation", at, i),
              {"Bidirectional", "HostToContainer", "None"}, errors);
  }
  CheckResourceNames(At(container, "resources"), at + ".resources", errors);
  for (const char* hook : {"postStart", "preStop"})
    CheckHook(At(container, {"lifecycle", hook}), fmt::format("{}.lifecycle.{}", at, hook), errors);
  const json& security = At(container, "securityContext");
  if (At(security, "allowPrivilegeEscalation") == false && At(security, "privileged") == true) {
    errors->push_back(InvalidField(at + ".securityContext", security,
                                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
  }
  const json& ports = Items(At(container, "ports"));
  for (size_t i = 0; host_network && i < ports.size(); ++i) {
    const int64_t host = Number(ports[i], "hostPort");
    if (host == 0 || host == Number(ports[i], "containerPort")) continue;
    errors->push_back(InvalidField(fmt::format("{}.ports[{}].containerPort", at, i), At(ports[i], "containerPort"),
                                   "must match `hostPort` when `hostNetwork` is true"));
  }
}

void CheckPodParts(const json& spec, const std::string& at, FieldErrors* errors) {
  const auto each = [&](const char* list, auto check) {
    const json& items = Items(At(spec, list));
    for (size_t i = 0; i < items.size(); ++i) check(items[i], fmt::format("{}.{}[{}]", at, list, i));
  };
  each("volumes", [&](const json& volume, const std::string& field) { CheckVolume(volume, field, errors); });
  each("tolerations",
       [&](const json& toleration, const std::string& field) { CheckToleration(toleration, field, errors); });
  each("topologySpreadConstraints", [&](const json& spread, const std::string& field) {
    if (Number(spread, "maxSkew") <= 0)
      errors->push_back(InvalidField(field + ".maxSkew", Number(spread, "maxSkew"), "must be greater than zero"));
    if (Text(spread, "topologyKey").empty())
      errors->push_back(RequiredField(field + ".topologyKey", "can not be empty"));
    if (At(spread, "whenUnsatisfiable").is_null()) {
      errors->push_back(UnsupportedField(field + ".whenUnsatisfiable", "", {"DoNotSchedule", "ScheduleAnyway"}));
    } else {
      CheckWord(At(spread, "whenUnsatisfiable"), field + ".whenUnsatisfiable", {"DoNotSchedule", "ScheduleAnyway"},
                errors);
    }
  });
  each("hostAliases", [&](const json& alias, const std::string& field) {
    const std::string ip = Text(alias, "ip");
    if (!IpAddress::Parse(ip).ok()) errors->push_back(InvalidField(field + ".ip", ip, "must be valid IP address"));
  });
  CheckWord(At(spec, "dnsPolicy"), at + ".dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
            errors);
  if (At(spec, "dnsPolicy") != "None") return;
  if (!At(spec, "dnsConfig").is_object()) {
    errors->push_back(RequiredField(at + ".dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None"));
  } else if (Items(At(spec, {"dnsConfig", "nameservers"})).empty()) {
    errors->push_back(RequiredField(at + ".dnsConfig.nameservers",
                                    "must provide at least one DNS nameserver when `dnsPolicy` is None"));
  }
}

}  // namespace wavetank::fakekube
