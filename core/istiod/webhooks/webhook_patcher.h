// Writes istiod's CA bundle into the injection webhooks of its revision, so that the API server trusts it
// (istiod: pkg/webhooks/webhookpatch.go).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/host.h"
#include "core/kube/informer.h"

namespace wavetank::pilot {

inline constexpr kube::ResourceKind kMutatingWebhookConfiguration{
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false};

class WebhookPatcher {
 public:
  // `client` and `host` must outlive it; `ca_bundle` gives PEM, empty when there is none yet.
  WebhookPatcher(kube::Client& client, Host& host, std::string revision, std::function<std::string()> ca_bundle);

  void Start() { configurations_.Start(); }
  void OnBundleChanged();
  bool Idle() const { return under_way_.empty(); }
  int64_t patches() const { return patches_; }

 private:
  void Reconcile(const std::string& name);
  void Retry(const std::string& name);

  kube::Client& client_;
  Host& host_;
  const std::string revision_;
  const std::function<std::string()> ca_bundle_;
  kube::Informer configurations_;
  struct State {
    bool again = false;  // changed since the write left
    int failures = 0;
  };
  std::map<std::string, State> under_way_;  // by configuration
  int64_t patches_ = 0;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::pilot
