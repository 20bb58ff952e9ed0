#include "fakes/kube/control/node_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/json_access.h"
#include "core/kube/label_selector.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

bool Tolerates(const json& pod_spec, const json& taint) {
  const std::string effect = Text(taint, "effect"), key = Text(taint, "key"), value = Text(taint, "value");
  const json& tolerations = Items(At(pod_spec, "tolerations"));
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const json& toleration) {
    const std::string of_key = Text(toleration, "key"), of_effect = Text(toleration, "effect");
    if (!of_effect.empty() && of_effect != effect) return false;
    return Text(toleration, "operator") == "Exists" ? of_key.empty() || of_key == key
                                                    : of_key == key && Text(toleration, "value") == value;
  });
}

bool TermMatches(const json& term, const kube::Object& node) {
  for (const json& field : Items(At(term, "matchFields"))) {
    const json& values = Items(At(field, "values"));
    const bool among = std::find(values.begin(), values.end(), node.meta.name) != values.end();
    if (Text(field, "key") != "metadata.name" || among != (Text(field, "operator") == "In")) return false;
  }
  // kubernetes: component-helpers, scheduling/corev1/nodeaffinity: a term that cannot be read, or is empty, takes none.
  if (Items(At(term, "matchFields")).empty() && Items(At(term, "matchExpressions")).empty()) return false;
  const auto labels = kube::LabelSelector::FromNodeExpressions(At(term, "matchExpressions"));
  return labels.ok() && labels->Matches(node.meta.labels);
}

bool Selected(const kube::Object& node, const json& pod_spec) {
  if (const json& selector = At(pod_spec, "nodeSelector"); selector.is_object()) {
    for (const auto& [key, value] : selector.items()) {
      const auto label = node.meta.labels.find(key);
      if (label == node.meta.labels.end() || value != label->second) return false;
    }
  }
  const json& required = At(pod_spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  const json& terms = Items(At(required, "nodeSelectorTerms"));
  return terms.empty() ||
         std::any_of(terms.begin(), terms.end(), [&](const json& term) { return TermMatches(term, node); });
}

}  // namespace

std::string NodeRefuses(const kube::Object& node, const json& pod_spec, bool daemon) {
  constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
  const json closed = {{"key", kUnschedulable}, {"effect", "NoSchedule"}};
  if (At(node.body, {"spec", "unschedulable"}) == true && !daemon && !Tolerates(pod_spec, closed))
    return "node(s) were unschedulable";
  for (const json& taint : Items(At(node.body, {"spec", "taints"}))) {
    const std::string key = Text(taint, "key");
    if (Text(taint, "effect") == "PreferNoSchedule" || Tolerates(pod_spec, taint)) continue;
    // kubernetes: pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
    if (daemon && key.starts_with("node.kubernetes.io/")) continue;
    return fmt::format("node(s) had untolerated taint {{{}: {}}}", key, Text(taint, "value"));
  }
  return Selected(node, pod_spec) ? "" : "node(s) didn't match Pod's node affinity/selector";
}

}  // namespace wavetank::fakekube
