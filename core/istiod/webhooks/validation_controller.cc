#include "core/istiod/webhooks/validation_controller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "core/base/assert.h"
#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/kinds/typed_config.h"
#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

constexpr kube::ResourceKind kValidatingWebhookConfiguration{
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false};
// client-go: workqueue.NewItemExponentialFailureRateLimiter(100*time.Millisecond, 1*time.Minute)
constexpr Duration kFirstRetry = 100ms, kLastRetry = 1min;
constexpr Duration kSoon = 5s;  // a mesh that waits for what comes later than that would wait for ever

Duration DelayAfter(int failures) {
  Duration out = kFirstRetry;
  for (int i = 0; i < failures && out < kLastRetry; ++i) out *= 2;
  return std::min<Duration>(out, kLastRetry);
}

kube::ListOptions OfRevision(const std::string& revision) {
  kube::ListOptions out;
  out.label_selector = fmt::format("istio.io/rev={}", revision);
  return out;
}

}  // namespace

ValidationController::ValidationController(kube::Client& client, Host& host, Options options)
    : client_(client),
      host_(host),
      options_(std::move(options)),
      configurations_(client, host, kValidatingWebhookConfiguration, OfRevision(options_.revision)) {
  const auto on = [this](const kube::ObjectRef& object) { Add(object->meta.name); };
  configurations_.AddHandler(
      {.on_add = on, .on_update = [on](const auto&, const auto& now) { on(now); }, .on_delete = on});
}

bool ValidationController::Idle() const { return !busy_ && queue_.empty() && waiting_ == 0; }

void ValidationController::Say(std::string_view level, std::string text, std::string_view scope) const {
  if (options_.log) options_.log({level, scope, std::move(text)});
}

void ValidationController::Add(const std::string& name) {
  if (std::find(queue_.begin(), queue_.end(), name) == queue_.end()) queue_.push_back(name);
  if (std::exchange(busy_, true)) return;
  Go();
}

void ValidationController::Go() {
  host_.Post([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) Next();
  });
}

void ValidationController::SyncAll() {
  std::vector<std::string> names;
  for (const kube::ObjectRef& object : configurations_.List()) names.push_back(object->meta.name);
  for (const std::string& name : names) Add(name);
}

void ValidationController::Next() {
  WAVETANK_ASSERT(busy_);
  WAVETANK_ASSERT(!queue_.empty());
  const std::string name = queue_.front();
  queue_.pop_front();
  Reconcile(name);
}

void ValidationController::Done() {
  WAVETANK_ASSERT(busy_);
  busy_ = !queue_.empty();
  if (busy_) Go();
}

void ValidationController::Reconcile(const std::string& name) {
  if (configurations_.Get("", name) == nullptr) {
    Say("info", fmt::format("Skip patching webhook, not found\twebhook={}", name));
    failures_.erase(name);
    return Done();
  }
  if (options_.ca_bundle().empty()) {
    Say("error", fmt::format("Failed to load CA bundle: could not decode pem\twebhook={}", name));
    failures_.erase(name);
    return Done();
  }
  rejected_ ? Update(name, true) : TryInvalid(name);
}

void ValidationController::TryInvalid(const std::string& name) {
  nlohmann::json gateway = {{"apiVersion", "networking.istio.io/v1alpha3"},
                            {"kind", "Gateway"},
                            {"metadata",
                             {{"name", "invalid-gateway"},
                              {"namespace", options_.system_namespace},
                              {"labels", {{"istio.io/rev", options_.revision}}}}},
                            {"spec", nlohmann::json::object()}};
  // The way to the API server and back, with whatever may happen there; what it would say is judged at its end.
  kube::ListOptions that_one;
  that_one.ns = options_.system_namespace;
  that_one.field_selector = "metadata.name=invalid-gateway";
  client_.List(config::ResourceKindOf(config::Kind::kGateway), that_one,
               [this, name, gateway = std::move(gateway), alive = std::weak_ptr<char>(alive_)](const auto& list) {
                 if (alive.expired()) return;
                 const absl::Status answer = list.ok() ? options_.dry_run(gateway) : list.status();
                 std::string why;
                 if (answer.ok()) {
                   why = "dummy invalid config not rejected";
                 } else if (!absl::StrContains(answer.message(), "denied the request")) {
                   why = fmt::format("dummy invalid rejected for the wrong reason: {}", Message(answer));
                 }
                 if (!why.empty()) {
                   Say("info", fmt::format("Not ready to switch validation to fail-closed: {}", why));
                   return Update(name, false);
                 }
                 Say("info", "Endpoint successfully rejected invalid config. Switching to fail-close.");
                 rejected_ = true;
                 SyncAll();
                 Update(name, true);
               });
}

void ValidationController::Update(const std::string& name, bool ready) {
  const kube::ObjectRef current = configurations_.Get("", name);
  if (current == nullptr) return Done();  // gone meanwhile: its event comes
  const std::string policy = ready ? "Fail" : "Ignore";
  const std::string bundle = absl::Base64Escape(options_.ca_bundle());
  nlohmann::json body = current->body;
  bool dirty = false;
  if (const auto webhooks = body.find("webhooks"); webhooks != body.end() && webhooks->is_array()) {
    for (nlohmann::json& webhook : *webhooks) {
      if (!webhook.is_object()) continue;
      dirty = dirty || Text(At(webhook, "clientConfig"), "caBundle") != bundle ||
              (webhook.contains("failurePolicy") && Text(webhook, "failurePolicy") != policy);
      webhook["clientConfig"]["caBundle"] = bundle;
      webhook["failurePolicy"] = policy;
    }
  }
  const std::string what = fmt::format("validatingwebhookconfiguration {} (failurePolicy={}", name, policy);
  const auto after = [this, name, ready] {
    if (!ready) return Retry(name, "webhook is not ready, retry");
    failures_.erase(name);
    Done();
  };
  if (!dirty) {
    Say("info", fmt::format("{}, resourceVersion={}) is up-to-date. No change required.", what,
                            current->meta.resource_version));
    return after();
  }
  absl::StatusOr<kube::ObjectRef> updated = kube::Object::FromJson(std::move(body));
  if (!updated.ok()) return Retry(name, fmt::format("fail to update webhook: {}", Message(updated.status())));
  const int64_t version = current->meta.resource_version;
  client_.Apply(
      *std::move(updated), [this, name, what, version, after, alive = std::weak_ptr<char>(alive_)](const auto& result) {
        if (alive.expired()) return;
        if (!result.ok()) {
          Say("error",
              fmt::format("Failed to update {}, resourceVersion={}): {}", what, version, Message(result.status())));
          return Retry(name, fmt::format("fail to update webhook: {}", Message(result.status())));
        }
        Say("info", fmt::format("Successfully updated {},resourceVersion={})", what, (*result)->meta.resource_version));
        after();
      });
}

void ValidationController::Retry(const std::string& name, const std::string& why) {
  const int failures = failures_[name]++;
  Say("error",
      fmt::format("error handling /{}, retrying (retry count: {}): {}\tcontroller=validation", name, failures + 1, why),
      "controllers");
  const Duration delay = DelayAfter(failures);
  const bool soon = delay < kSoon;
  waiting_ += soon ? 1 : 0;
  host_.RunAfter(delay, [this, name, soon, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    WAVETANK_ASSERT(!soon || waiting_ > 0, waiting_);
    waiting_ -= soon ? 1 : 0;
    Add(name);
  });
  Done();
}

}  // namespace wavetank::pilot
