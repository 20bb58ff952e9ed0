#include "sim/webhooks/istio_webhook.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/kube/label_selector.h"
#include "core/validation/istio_object.h"
#include "fakes/kube/store/api_server.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

constexpr const char* kDefaultName = "rev.validation.istio.io";

bool Holds(const json& list, std::initializer_list<std::string_view> any_of) {
  for (const json& item : Items(list)) {
    const std::string text = TextOf(item);
    if (std::find(any_of.begin(), any_of.end(), text) != any_of.end()) return true;
  }
  return false;
}

// The resource of one of Istio's kinds.
std::string PluralOf(const std::string& kind) {
  std::string out = absl::AsciiStrToLower(kind);
  if (!out.ends_with('y') || out.ends_with("ay")) return out + "s";
  out.pop_back();
  return out + "ies";
}

// A webhook without rules is none in Kubernetes; manifests that leave them out mean all of Istio's.
bool RulesTake(const json& rules, const std::string& group, const std::string& kind) {
  if (!rules.is_array() || rules.empty()) return true;
  const std::string plural = PluralOf(kind);
  return std::any_of(rules.begin(), rules.end(), [&](const json& rule) {
    // Whatever its version, it is the same object (matchPolicy: Equivalent, the default).
    return Holds(At(rule, "apiGroups"), {"*", group}) && Holds(At(rule, "resources"), {"*", "*/*", plural}) &&
           Holds(At(rule, "operations"), {"*", "CREATE", "UPDATE"});
  });
}

bool Selects(const json& selector, const kube::Labels& labels) {
  const absl::StatusOr<kube::LabelSelector> read = kube::LabelSelector::FromJson(selector);
  return read.ok() && read->Matches(labels);
}

kube::Labels LabelsOf(const json& object) {
  kube::Labels out;
  const json& labels = At(At(object, "metadata"), "labels");
  if (!labels.is_object()) return out;
  for (const auto& [name, value] : labels.items()) out[name] = TextOf(value);
  return out;
}

// The name of the webhook of an istiod that is asked; nullopt: none is.
std::optional<std::string> WebhookFor(const fakekube::ApiServer& cluster, const json& object) {
  const std::string api_version = Text(object, "apiVersion");
  const size_t slash = api_version.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const std::string group = api_version.substr(0, slash);
  const std::string ns = Text(At(object, "metadata"), "namespace");
  const kube::Labels labels = LabelsOf(object);
  bool any = false;
  for (const kube::ObjectRef& configuration : cluster.List("ValidatingWebhookConfiguration")) {
    any = true;
    for (const json& webhook : Items(At(configuration->body, "webhooks"))) {
      if (!Text(At(webhook, {"clientConfig", "service"}), "name").starts_with("istiod")) continue;
      if (!RulesTake(At(webhook, "rules"), group, Text(object, "kind"))) continue;
      if (!Selects(At(webhook, "objectSelector"), labels)) continue;
      if (const json& selector = At(webhook, "namespaceSelector"); selector.is_object() && !selector.empty()) {
        const kube::ObjectRef found = cluster.Get("Namespace.", {"", ns});
        if (found != nullptr && !Selects(selector, found->meta.labels)) continue;
      }
      return Text(webhook, "name", kDefaultName);
    }
  }
  if (any) return std::nullopt;
  return kDefaultName;
}

}  // namespace

fakekube::http::WebhookVerdict JudgeByIstio(const fakekube::ApiServer& cluster, const json& object) {
  const std::string version = Text(object, "apiVersion");
  if (version.find(".istio.io/") == std::string::npos) return {};
  const std::optional<std::string> webhook = WebhookFor(cluster, object);
  if (!webhook.has_value()) return {};
  validation::Verdict verdict = validation::Judge(object);
  fakekube::http::WebhookVerdict out;
  if (!verdict.denied.empty()) {
    out.denied = fmt::format("admission webhook \"{}\" denied the request: {}", *webhook, verdict.denied);
  }
  out.warnings = std::move(verdict.warnings);
  return out;
}

}  // namespace wavetank::sim
