#include "fakes/kube/control/quotas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/base/json_access.h"
#include "core/kube/quantity.h"
#include "fakes/kube/control/pod_template.h"

namespace wavetank::fakekube {
namespace {

using absl::int128;
using nlohmann::json;

constexpr const char* kQuotaKind = "ResourceQuota.";

struct CountedKind {
  std::string_view name, kind, group, plural;
};
// What a name without a group counts, and the plurals of count/PLURAL.GROUP.
constexpr CountedKind kCounted[] = {
    {"pods", "Pod", "", "pods"},
    {"services", "Service", "", "services"},
    {"secrets", "Secret", "", "secrets"},
    {"configmaps", "ConfigMap", "", "configmaps"},
    {"persistentvolumeclaims", "PersistentVolumeClaim", "", "persistentvolumeclaims"},
    {"replicationcontrollers", "ReplicationController", "", "replicationcontrollers"},
    {"resourcequotas", "ResourceQuota", "", "resourcequotas"},
    {"", "Deployment", "apps", "deployments"},
    {"", "ReplicaSet", "apps", "replicasets"},
    {"", "StatefulSet", "apps", "statefulsets"},
    {"", "DaemonSet", "apps", "daemonsets"},
    {"", "Job", "batch", "jobs"},
    {"", "CronJob", "batch", "cronjobs"},
    {"", "Ingress", "networking.k8s.io", "ingresses"},
    {"", "ServiceAccount", "", "serviceaccounts"},
};

// The kind that a quota's name counts objects of; null: it counts something else.
const CountedKind* KindOfCount(std::string_view name) {
  constexpr std::string_view kCount = "count/";
  const bool by_plural = name.starts_with(kCount);
  if (by_plural) name.remove_prefix(kCount.size());
  const auto found = std::find_if(std::begin(kCounted), std::end(kCounted), [&](const CountedKind& counted) {
    if (!by_plural) return counted.name == name && !name.empty();
    const std::string plural(counted.plural);
    return (counted.group.empty() ? plural : plural + "." + std::string(counted.group)) == name;
  });
  return found == std::end(kCounted) ? nullptr : &*found;
}

// "cpu" and "requests.cpu" are what a pod asks for, "limits.cpu" what it is limited to. Containers together, or the
// largest of those of initialization. nullopt: the name is none of these.
struct PodAmount {
  std::string section, resource;
};
std::optional<PodAmount> AmountOf(std::string_view name) {
  if (name == "cpu" || name == "memory" || name == "ephemeral-storage") return PodAmount{"requests", std::string(name)};
  for (const char* section : {"requests", "limits"}) {
    const std::string prefix = std::string(section) + ".";
    if (name.starts_with(prefix) && name != "requests.storage")
      return PodAmount{section, std::string(name.substr(prefix.size()))};
  }
  return std::nullopt;
}

int128 AmountIn(const json& container, const PodAmount& amount) {
  const json& resources = At(container, "resources");
  const json* value = &At(At(resources, amount.section), amount.resource);
  // What a container is limited to it asks for, too.
  if (value->is_null() && amount.section == "requests") value = &At(At(resources, "limits"), amount.resource);
  return kube::QuantityNanos(*value).value_or(0);
}

int128 PodUse(const json& pod, const PodAmount& amount) {
  int128 sum = 0, most = 0;
  for (const json& container : Items(At(pod, {"spec", "containers"}))) sum += AmountIn(container, amount);
  for (const json& container : Items(At(pod, {"spec", "initContainers"})))
    most = std::max(most, AmountIn(container, amount));
  return std::max(sum, most);
}

bool BestEffort(const json& pod) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& container : Items(At(pod, {"spec", list}))) {
      for (const char* section : {"requests", "limits"}) {
        const json& said = At(container, {"resources", section});
        if (!At(said, "cpu").is_null() || !At(said, "memory").is_null()) return false;
      }
    }
  }
  return true;
}

// Whether a quota's scopes take this pod.
bool InScopes(const json& quota_spec, const json& pod) {
  const bool ends = At(pod, {"spec", "activeDeadlineSeconds"}).is_number_integer(), best_effort = BestEffort(pod);
  const auto takes = [&](const std::string& scope, const json& expression) {
    if (scope == "Terminating") return ends;
    if (scope == "NotTerminating") return !ends;
    if (scope == "BestEffort") return best_effort;
    if (scope == "NotBestEffort") return !best_effort;
    if (scope != "PriorityClass") return false;
    const json &name = At(pod, {"spec", "priorityClassName"}), &values = Items(At(expression, "values"));
    const std::string op = Text(expression, "operator", "Exists");
    const bool among = std::find(values.begin(), values.end(), name) != values.end();
    return op == "In" ? among : op == "NotIn" ? !among : op == "Exists" ? name.is_string() : !name.is_string();
  };
  for (const json& scope : Items(At(quota_spec, "scopes"))) {
    if (!takes(TextOf(scope), json())) return false;
  }
  for (const json& expression : Items(At(quota_spec, {"scopeSelector", "matchExpressions"}))) {
    if (!takes(Text(expression, "scopeName"), expression)) return false;
  }
  return true;
}

bool IsOf(const json& object, std::string_view kind, std::string_view group) {
  return Text(object, "kind") == kind && GroupOf(Text(object, "apiVersion")) == group;
}

// How much of `name` one object uses.
int128 UseOf(const std::string& name, const json& quota_spec, const json& object) {
  const int128 one = kube::kNanosPerUnit;
  const bool pod = IsOf(object, "Pod", "");
  if (pod && !name.starts_with("count/") && (HasEnded(object) || !InScopes(quota_spec, object))) return 0;
  if (const CountedKind* counted = KindOfCount(name); counted != nullptr)
    return IsOf(object, counted->kind, counted->group) ? one : 0;
  if (IsOf(object, "Service", "")) {
    const std::string type = Text(At(object, "spec"), "type");
    const int128 ports = static_cast<int64_t>(Items(At(object, {"spec", "ports"})).size()) * one;
    if (name == "services.loadbalancers") return type == "LoadBalancer" ? one : 0;
    if (name == "services.nodeports") return type == "NodePort" || type == "LoadBalancer" ? ports : 0;
  }
  if (name == "requests.storage" && IsOf(object, "PersistentVolumeClaim", ""))
    return kube::QuantityNanos(At(object, {"spec", "resources", "requests", "storage"})).value_or(0);
  const std::optional<PodAmount> amount = pod ? AmountOf(name) : std::nullopt;
  return amount ? PodUse(object, *amount) : 0;
}

// As apimachinery writes quantities: the largest suffix that leaves a whole number; powers of two where `like` has
// them.
std::string Shown(int128 nanos, const json& like) {
  if (nanos % kube::kNanosPerUnit != 0)
    return fmt::format("{}m", static_cast<int64_t>(nanos / (kube::kNanosPerUnit / 1000)));
  auto units = static_cast<int64_t>(nanos / kube::kNanosPerUnit);
  const std::string text = like.is_string() ? TextOf(like) : std::string();
  const bool binary = text.ends_with("i");
  const int64_t base = binary ? 1024 : 1000;
  size_t suffix = 0;
  for (; suffix < 6 && units != 0 && units % base == 0; ++suffix) units /= base;
  constexpr std::string_view kSuffixes[] = {"", "k", "M", "G", "T", "P", "E"};
  return fmt::format("{}{}{}", units, binary && suffix == 1 ? "K" : kSuffixes[suffix], binary && suffix > 0 ? "i" : "");
}

int128 UseIn(const ApiServer& api, const std::string& ns, const std::string& name, const json& quota_spec) {
  std::string kind = "Pod.";
  if (const CountedKind* counted = KindOfCount(name); counted != nullptr)
    kind = fmt::format("{}.{}", counted->kind, counted->group);
  if (name.starts_with("services.")) kind = "Service.";
  if (name == "requests.storage") kind = "PersistentVolumeClaim.";
  int128 sum = 0;
  for (const ObjectRef& object : api.List(kind, ns)) sum += UseOf(name, quota_spec, object->body);
  return sum;
}

}  // namespace

std::vector<std::string> CountedKinds() {
  std::vector<std::string> out;
  for (const CountedKind& counted : kCounted) out.push_back(fmt::format("{}.{}", counted.kind, counted.group));
  return out;
}

json QuotaUse(const ApiServer& api, const std::string& ns, const json& quota_spec) {
  json out = json::object();
  const json& hard = At(quota_spec, "hard");
  if (!hard.is_object()) return out;
  for (const auto& [name, most] : hard.items()) out[name] = Shown(UseIn(api, ns, name, quota_spec), most);
  return out;
}

absl::Status CheckQuotas(const ApiServer& api, const json& object) {
  const std::string ns = TextOf(At(object, {"metadata", "namespace"}));
  if (ns.empty()) return absl::OkStatus();
  for (const ObjectRef& quota : api.List(kQuotaKind, ns)) {
    const json &spec = At(quota->body, "spec"), &hard = At(spec, "hard");
    if (!hard.is_object()) continue;
    std::vector<std::string> requested, used, limited, missing;
    for (const auto& [name, most] : hard.items()) {
      const std::optional<PodAmount> amount = IsOf(object, "Pod", "") ? AmountOf(name) : std::nullopt;
      const int128 more = UseOf(name, spec, object);
      if (amount && more == 0 && InScopes(spec, object)) missing.push_back(name);
      if (more == 0) continue;
      const int128 now = UseIn(api, ns, name, spec);
      if (now + more <= kube::QuantityNanos(most).value_or(0)) continue;
      requested.push_back(name + "=" + Shown(more, most));
      used.push_back(name + "=" + Shown(now, most));
      limited.push_back(name + "=" + kube::QuantityText(most));
    }
    if (!missing.empty()) {
      const std::string container =
          Text(Items(At(object, {"spec", "containers"})).empty() ? Null()
                                                                 : Items(At(object, {"spec", "containers"})).front(),
               "name");
      std::vector<std::string> said;
      for (const std::string& name : missing) said.push_back(fmt::format("{} for: {}", name, container));
      return absl::PermissionDeniedError(
          fmt::format("failed quota: {}: must specify {}", quota->meta.name, fmt::join(said, "; ")));
    }
    if (requested.empty()) continue;
    return absl::PermissionDeniedError(fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                                                   quota->meta.name, fmt::join(requested, ","), fmt::join(used, ","),
                                                   fmt::join(limited, ",")));
  }
  return absl::OkStatus();
}

}  // namespace wavetank::fakekube
