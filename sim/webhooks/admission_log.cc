#include "sim/webhooks/admission_log.h"

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/inject/webhook_configuration.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

std::string AskedName(const nlohmann::json& pod) {
  const nlohmann::json& meta = At(pod, "metadata");
  return Text(meta, "name", Text(meta, "generateName"));
}

std::string AskedKey(const nlohmann::json& pod) {
  return fmt::format("{}/{}", Text(At(pod, "metadata"), "namespace"), AskedName(pod));
}

// By the labels that the webhooks of Istio's charts select by, whether or not any is installed.
bool AsksForSidecar(const kube::Labels& ns, const kube::Labels& pod) {
  const auto value = [](const kube::Labels& labels, std::string_view name) {
    const auto it = labels.find(name);
    return it == labels.end() ? std::string_view() : std::string_view(it->second);
  };
  const std::string_view of_pod = value(pod, "sidecar.istio.io/inject"), of_ns = value(ns, "istio-injection");
  if (of_pod == "false" || of_ns == "disabled") return false;
  return of_pod == "true" || of_ns == "enabled" || ns.contains("istio.io/rev") || pod.contains("istio.io/rev");
}

// How a pod is made anew: what stands behind it, which a Deployment does through a ReplicaSet.
std::string RemedyFor(const kube::Object& pod, const fakekube::ApiServer& api) {
  const nlohmann::json* owner = &At(At(pod.body, "metadata"), "ownerReferences");
  if (!owner->is_array() || owner->empty()) return "delete it and apply it again";
  std::string kind = Text(owner->front(), "kind"), name = Text(owner->front(), "name");
  if (kind == "ReplicaSet") {
    const kube::ObjectRef set = api.Get(kind, {pod.meta.ns, name});
    const nlohmann::json& above = set == nullptr ? Null() : At(At(set->body, "metadata"), "ownerReferences");
    if (!above.is_array() || above.empty()) return "delete the pod, which its ReplicaSet makes anew";
    kind = Text(above.front(), "kind");
    name = Text(above.front(), "name");
  }
  return fmt::format("kubectl rollout restart {}/{} -n {}", absl::AsciiStrToLower(kind), name, pod.meta.ns);
}

}  // namespace

void AdmissionLog::Injected(const nlohmann::json& pod) {
  const std::string key = AskedKey(pod);
  refused_.erase(key);
  bypassed_.erase(key);
  left_out_.erase(key);
}

void AdmissionLog::LeftOut(const nlohmann::json& pod) {
  Injected(pod);
  left_out_[AskedKey(pod)] = true;
}

void AdmissionLog::Bypassed(const nlohmann::json& pod, const std::string& webhook, const std::string& why) {
  Injected(pod);
  bypassed_[AskedKey(pod)] =
      fmt::format("failed calling webhook \"{}\" ({}), whose failurePolicy is Ignore", webhook, why);
}

void AdmissionLog::Refused(const nlohmann::json& pod, const std::string& webhook, const std::string& why, bool again) {
  Refusal& refusal = refused_[AskedKey(pod)];
  // kube-apiserver: apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go. Without a webhook: istiod was asked,
  // and `why` is what it answered.
  if (webhook.empty()) refusal.why = fmt::format("pod {} was not admitted: {}", AskedName(pod), why);
  if (!webhook.empty())
    refusal.why = fmt::format("pod {} was not admitted: failed calling webhook \"{}\": {}{}", AskedName(pod), webhook,
                              why, again ? "" : "; nothing makes this pod again: apply it once the webhook answers");
  RememberOwner(pod, &refusal);
}

void AdmissionLog::RememberOwner(const nlohmann::json& pod, Refusal* refusal) {
  const nlohmann::json& meta = At(pod, "metadata");
  for (const nlohmann::json& owner : Items(At(meta, "ownerReferences"))) {
    if (Text(owner, "kind") == "ReplicaSet") refusal->replica_set = {Text(meta, "namespace"), Text(owner, "name")};
  }
}

void AdmissionLog::NotStored(const nlohmann::json& pod, const std::string& why) {
  Refusal& refusal = refused_[AskedKey(pod)];
  refusal.why = fmt::format("pod {} was not stored: {}", AskedName(pod), why);
  RememberOwner(pod, &refusal);
}

std::vector<std::string> AdmissionLog::Refusals(const fakekube::ApiServer& api) const {
  std::vector<std::string> out;
  for (const auto& [pod, refusal] : refused_) {
    const size_t slash = pod.find('/');
    if (api.Get("Pod", {pod.substr(0, slash), pod.substr(slash + 1)}) != nullptr) continue;  // by another write
    if (!refusal.replica_set.name.empty()) {  // it may be gone, want none any more, or have made another
      const kube::ObjectRef owner = api.Get("ReplicaSet", refusal.replica_set);
      if (owner == nullptr) continue;
      const int64_t wanted = NumberOf(At(owner->body, {"spec", "replicas"}), 1);
      if (NumberOf(At(owner->body, {"status", "readyReplicas"})) >= wanted) continue;
    }
    out.push_back(refusal.why);
  }
  return out;
}

std::string AdmissionLog::WhyWithoutSidecar(const kube::Object& pod, const fakekube::ApiServer& api) const {
  const std::string generate = Text(At(pod.body, "metadata"), "generateName");
  const std::string keys[] = {fmt::format("{}/{}", pod.meta.ns, pod.meta.name),
                              fmt::format("{}/{}", pod.meta.ns, generate)};
  for (const std::string& key : keys) {
    if (const auto it = bypassed_.find(key); it != bypassed_.end()) {
      return fmt::format("created when the API server {}; {}", it->second, RemedyFor(pod, api));
    }
    if (left_out_.contains(key)) {
      for (const auto* said : {&pod.meta.labels, &pod.meta.annotations}) {
        const auto it = said->find("sidecar.istio.io/inject");
        if (it == said->end()) continue;
        return fmt::format("istiod's webhook was asked and left it out, as its {} sidecar.istio.io/inject={} says",
                           said == &pod.meta.labels ? "label" : "annotation", it->second);
      }
      return "istiod's webhook was asked and left it out (policy or selectors of its injection, or hostNetwork)";
    }
  }
  const kube::ObjectRef ns = api.Get("Namespace", {"", pod.meta.ns});
  kube::Labels ns_labels = ns == nullptr ? kube::Labels() : ns->meta.labels;
  ns_labels.emplace("kubernetes.io/metadata.name", pod.meta.ns);
  for (const kube::ObjectRef& configuration : api.List("MutatingWebhookConfiguration")) {
    const auto target = pilot::SelectWebhook(configuration->body, ns_labels, pod.meta.labels);
    if (!target.ok() || !target->has_value()) continue;
    return fmt::format(
        "created before MutatingWebhookConfiguration/{}, or the label that selects it, was there, so that no istiod "
        "was "
        "asked; {}",
        configuration->meta.name, RemedyFor(pod, api));
  }
  if (!AsksForSidecar(ns_labels, pod.meta.labels)) return "";
  return fmt::format(
      "labelled for injection, but no MutatingWebhookConfiguration selects it; install that of its revision, then {}",
      RemedyFor(pod, api));
}

}  // namespace wavetank::sim
