// Secrets that clusters and listeners wait for, by SDS or over ADS.
#include <algorithm>
#include <utility>

#include "fakes/envoy/envoy_impl.h"

namespace wavetank::envoysim {

namespace {

// Istio's names of Secrets in Kubernetes; all others are the agent's.
bool OverAds(std::string_view secret) {
  return secret.starts_with("kubernetes://") || secret.starts_with("kubernetes-gateway://");
}

}  // namespace

const Envoy::Impl::SecretState* Envoy::Impl::FindSecret(std::string_view name) const {
  if (name.empty()) return nullptr;
  for (const SecretState& s : secrets_) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// Requests for secrets wait while clusters or listeners are taken in, and go out after those for endpoints and routes.
// Envoy: cds_api_helper.cc, lds_api.cc: the order of the types that are paused is that in which they go on.
void Envoy::Impl::AskForSecrets() {
  if (!std::exchange(more_secrets_over_ads_, false)) return;
  auto wanted = std::make_shared<std::vector<std::string>>();
  for (const SecretState& s : secrets_) {
    if (OverAds(s.name)) wanted->push_back(s.name);
  }
  std::sort(wanted->begin(), wanted->end());
  ads_->Subscribe(XdsType::kSds, std::move(wanted));
}

void Envoy::Impl::NeedSecrets(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (FindSecret(name) != nullptr) continue;
    secrets_.push_back({name, {}, false});
    if (ads_ != nullptr && OverAds(name)) {
      more_secrets_over_ads_ = true;
      continue;
    }
    const std::weak_ptr<Life> life = life_;
    context_.secrets().Subscribe(name, [life, name](absl::StatusOr<Secret> secret) {
      const std::shared_ptr<Life> alive = life.lock();
      if (alive == nullptr || !secret.ok()) return;  // the last good one stays
      Impl* self = alive->envoy;
      self->host_.RunAfter(self->Draw(self->plane_.options().latencies.apply_sds),
                           [life, name, value = *std::move(secret)]() mutable {
                             const std::shared_ptr<Life> still = life.lock();
                             if (still != nullptr) still->envoy->OnSecret(name, std::move(value));
                           });
    });
  }
}

bool Envoy::Impl::SecretsReady(const std::vector<std::string>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const std::string& n) {
    const SecretState* s = FindSecret(n);
    return s != nullptr && s->ready;
  });
}

void Envoy::Impl::OnSecret(const std::string& name, absl::StatusOr<Secret> secret) {
  for (SecretState& s : secrets_) {
    if (s.name != name) continue;
    s.secret = *std::move(secret);
    s.ready = true;
  }
  ++secrets_epoch_;
  Trace(TraceKind::kXdsApplied, XdsType::kSds, 1);
  PromoteClusters();
  ClustersMayBeWarm();
  PromoteListeners();
  CheckLive();
}

}  // namespace wavetank::envoysim
