#include "sim/webhooks/istio_webhook.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
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

// A webhook without rules is none in Kubernetes; manifests that leave them out mean all of Istio's.
bool RulesTake(const json& rules, const std::string& group, const std::string& kind) {
  if (!rules.is_array() || rules.empty()) return true;
  const std::string plural = fakekube::PluralOf(kind);
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

// Of an istiod: its Service, or what istioctl's base.validationURL says.
bool LeadsToIstiod(const json& webhook) {
  if (Text(At(webhook, {"clientConfig", "service"}), "name").starts_with("istiod")) return true;
  return At(webhook, {"clientConfig", "url"}).is_string() && Text(webhook, "name").ends_with("validation.istio.io");
}

bool Takes(const fakekube::ApiServer& cluster, const json& webhook, const json& object) {
  const std::string api_version = Text(object, "apiVersion");
  const size_t slash = api_version.find('/');
  if (slash == std::string::npos || !LeadsToIstiod(webhook)) return false;
  if (!RulesTake(At(webhook, "rules"), api_version.substr(0, slash), Text(object, "kind"))) return false;
  if (!Selects(At(webhook, "objectSelector"), LabelsOf(object))) return false;
  const json& selector = At(webhook, "namespaceSelector");
  if (!selector.is_object() || selector.empty()) return true;
  const kube::ObjectRef ns = cluster.Get("Namespace.", {"", Text(At(object, "metadata"), "namespace")});
  return ns == nullptr || Selects(selector, ns->meta.labels);
}

}  // namespace

fakekube::http::WebhookVerdict JudgeByIstio(const fakekube::ApiServer& cluster, const json& object,
                                            const ReachWebhook& reach, bool by_default, const pilot::Profile& profile) {
  const std::string version = Text(object, "apiVersion");
  if (version.find(".istio.io/") == std::string::npos) return {};
  fakekube::http::WebhookVerdict out;
  std::optional<validation::Verdict> verdict;  // the same of every istiod
  const auto ask = [&](const std::string& webhook) {
    if (!verdict) verdict = validation::Judge(object, profile);
    if (!verdict->denied.empty() && !out.denied) {
      out.denied = fmt::format("admission webhook \"{}\" denied the request: {}", webhook, verdict->denied);
    }
    out.warnings = verdict->warnings;
  };
  bool any = false;
  for (const kube::ObjectRef& configuration : cluster.List("ValidatingWebhookConfiguration")) {
    any = true;
    for (const json& webhook : Items(At(configuration->body, "webhooks"))) {
      if (!Takes(cluster, webhook, object)) continue;
      const std::string name = Text(webhook, "name", kDefaultName);
      const absl::Status reached = reach(webhook);
      if (reached.ok()) {
        ask(name);
      } else if (Text(webhook, "failurePolicy", "Fail") != "Ignore" && !out.denied) {
        // apiserver: pkg/admission/plugin/webhook/errors/statuserror.go, ToStatusErr(); the client's is a 500.
        out.failed = true;
        out.denied = fmt::format("Internal error occurred: failed calling webhook \"{}\": failed to call webhook: {}",
                                 name, Message(reached));
      }
    }
  }
  if (!any && by_default) ask(kDefaultName);
  return out;
}

}  // namespace wavetank::sim
