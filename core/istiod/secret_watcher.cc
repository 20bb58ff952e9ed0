#include "core/istiod/secret_watcher.h"

#include <utility>

namespace wavetank::pilot {
namespace {

// istiod leaves these out by field selector.
bool Ignored(const kube::Object& secret) {
  const auto it = secret.body.find("type");
  return it != secret.body.end() && (*it == "helm.sh/release.v1" || *it == "kubernetes.io/service-account-token");
}

}  // namespace

SecretWatcher::SecretWatcher(kube::Client& client, Host& host, Handler handler)
    : secrets_(client, host, kube::kinds::kSecret) {
  const auto on = [handler = std::move(handler)](const kube::ObjectRef& secret) {
    if (!Ignored(*secret)) handler(secret->meta.name, secret->meta.ns);
  };
  secrets_.AddHandler({.on_add = on, .on_update = [on](const auto&, const auto& now) { on(now); }, .on_delete = on});
}

kube::ObjectRef SecretWatcher::Get(std::string_view ns, std::string_view name) const {
  kube::ObjectRef secret = secrets_.Get(ns, name);
  return secret == nullptr || Ignored(*secret) ? nullptr : secret;
}

}  // namespace wavetank::pilot
