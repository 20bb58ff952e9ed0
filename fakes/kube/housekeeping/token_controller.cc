#include "fakes/kube/housekeeping/token_controller.h"

#include <utility>

#include "core/base/json_access.h"
#include "fakes/kube/objects/base64.h"

namespace wavetank::fakekube {
namespace {

using nlohmann::json;

constexpr std::string_view kType = "kubernetes.io/service-account-token";
constexpr const char *kAccount = "kubernetes.io/service-account.name",
                     *kAccountUid = "kubernetes.io/service-account.uid";

// "" for any other Secret.
std::string AccountOf(const kube::Object& secret) {
  if (Text(secret.body, "type") != kType) return {};
  const auto it = secret.meta.annotations.find(kAccount);
  return it == secret.meta.annotations.end() ? std::string() : it->second;
}

}  // namespace

TokenController::TokenController(ApiServer& api, const ClusterOptions& options)
    : api_(api),
      options_(options),
      pending_(api.host()),
      queue_(pending_, [this](const NamespacedName& secret) { Sync(secret); }) {
  subscriptions_.Add(api_.Observe("Secret", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kDeleted || AccountOf(*change.object).empty()) return;
    queue_.Add({change.object->meta.ns, change.object->meta.name});
  }));
  subscriptions_.Add(api_.Observe("ServiceAccount", [this](const Change& change) {
    if (change.type == kube::WatchEventType::kModified) return;
    for (const ObjectRef& secret : api_.List("Secret", change.object->meta.ns)) {
      if (AccountOf(*secret) == change.object->meta.name) queue_.Add({secret->meta.ns, secret->meta.name});
    }
  }));
}

void TokenController::Sync(const NamespacedName& name) {
  const ObjectRef secret = api_.Get("Secret", name);
  if (secret == nullptr || secret->meta.deleting) return;
  const std::string account_name = AccountOf(*secret);
  if (account_name.empty()) return;
  const ObjectRef account = api_.Get("ServiceAccount", {name.ns, account_name});
  const auto named = secret->meta.annotations.find(kAccountUid);
  const bool of_another =
      named != secret->meta.annotations.end() && account != nullptr && named->second != account->meta.uid;
  if (account == nullptr || of_another) {
    // One that was never filled may be waiting for its account.
    if (named != secret->meta.annotations.end()) api_.Delete("Secret", name).IgnoreError();
    return;
  }
  json data = json::object();
  const auto fill = [&](const char* key, const std::string& value) {
    if (!At(secret->body, {"data", key}).is_string() && !value.empty()) data[key] = Base64Encode(value);
  };
  if (!At(secret->body, {"data", "token"}).is_string()) fill("token", options_.issue_token(name.ns, account_name));
  fill("ca.crt", options_.ca_pem);
  fill("namespace", name.ns);
  json patch = {{"metadata", {{"annotations", {{kAccountUid, account->meta.uid}}}}}};
  if (!data.empty()) patch["data"] = std::move(data);
  api_.Patch("Secret", name, patch).IgnoreError();
}

}  // namespace wavetank::fakekube
