#include "core/istiod/webhooks/webhook_patcher.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"

namespace wavetank::pilot {
namespace {

constexpr std::string_view kWebhookName = "sidecar-injector.istio.io";
// Five quick attempts, then slow ones, for ever: somebody else may be writing another bundle.
constexpr int kQuickRetries = 5;
constexpr Duration kQuickRetry = 100ms, kSlowRetry = 1min;

}  // namespace

WebhookPatcher::WebhookPatcher(kube::Client& client, Host& host, std::string revision,
                               std::function<std::string()> ca_bundle)
    : client_(client),
      host_(host),
      revision_(std::move(revision)),
      ca_bundle_(std::move(ca_bundle)),
      configurations_(client, host, kMutatingWebhookConfiguration) {
  const auto on = [this](const kube::ObjectRef& object) { Reconcile(object->meta.name); };
  configurations_.AddHandler({.on_add = on, .on_update = [on](const auto&, const auto& now) { on(now); }});
}

void WebhookPatcher::OnBundleChanged() {
  std::vector<std::string> names;
  for (const kube::ObjectRef& object : configurations_.List()) names.push_back(object->meta.name);
  for (const std::string& name : names) Reconcile(name);
}

void WebhookPatcher::Reconcile(const std::string& name) {
  if (const auto it = under_way_.find(name); it != under_way_.end()) {
    it->second.again = true;
    return;
  }
  const kube::ObjectRef object = configurations_.Get("", name);
  if (object == nullptr) return;
  const auto revision = object->meta.labels.find("istio.io/rev");
  if (revision == object->meta.labels.end() || revision->second != revision_) return;
  const std::string bundle = ca_bundle_();
  if (bundle.empty()) return;
  const std::string encoded = absl::Base64Escape(bundle);

  nlohmann::json body = object->body;
  bool updated = false;
  const auto webhooks = body.find("webhooks");
  if (webhooks == body.end() || !webhooks->is_array()) return;
  for (nlohmann::json& webhook : *webhooks) {
    if (!webhook.is_object()) continue;
    const nlohmann::json webhook_name = webhook.value("name", nlohmann::json());
    if (!webhook_name.is_string() || !webhook_name.get_ref<const std::string&>().ends_with(kWebhookName)) continue;
    nlohmann::json& config = webhook["clientConfig"];
    if (config.is_object() && config.value("caBundle", nlohmann::json()) == encoded) continue;
    config["caBundle"] = encoded;
    updated = true;
  }
  if (!updated) return;
  absl::StatusOr<kube::ObjectRef> patched = kube::Object::FromJson(std::move(body));
  if (!patched.ok()) return;
  under_way_.emplace(name, State{});
  client_.Apply(*std::move(patched), [this, name, alive = std::weak_ptr<char>(alive_)](const auto& result) {
    if (alive.expired()) return;
    if (!result.ok()) return Retry(name);
    ++patches_;
    const bool again = under_way_[name].again;
    under_way_.erase(name);
    if (again) Reconcile(name);
  });
}

void WebhookPatcher::Retry(const std::string& name) {
  State& state = under_way_[name];
  const Duration delay = state.failures++ < kQuickRetries ? kQuickRetry : kSlowRetry;
  host_.RunAfter(delay, [this, name, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    const int failures = under_way_[name].failures;
    under_way_.erase(name);
    Reconcile(name);
    if (const auto it = under_way_.find(name); it != under_way_.end()) it->second.failures = failures;
  });
}

}  // namespace wavetank::pilot
