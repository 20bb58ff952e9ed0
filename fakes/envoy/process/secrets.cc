#include "fakes/envoy/process/secrets.h"

#include <algorithm>
#include <utility>

namespace wavetank::envoysim {
namespace {

// Istio's names of Secrets in Kubernetes; all others are the agent's.
bool OverAds(std::string_view secret) {
  return secret.starts_with("kubernetes://") || secret.starts_with("kubernetes-gateway://");
}

}  // namespace

void Secrets::Begin() {
  life_ = std::make_shared<Life>(Life{this});
  asks_agent_ = false;
}

void Secrets::End() {
  life_.reset();
  secrets_.clear();
  ++epoch_;
}

const Secrets::State* Secrets::Find(std::string_view name) const {
  if (name.empty()) return nullptr;
  for (const State& s : secrets_) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

ResourceNames Secrets::NewOverAds() {
  if (!std::exchange(more_over_ads_, false)) return nullptr;
  auto wanted = std::make_shared<std::vector<std::string>>();
  for (const State& s : secrets_) {
    if (OverAds(s.name)) wanted->push_back(s.name);
  }
  std::sort(wanted->begin(), wanted->end());
  return wanted;
}

void Secrets::Need(const std::vector<std::string>& names, bool has_ads) {
  for (const std::string& name : names) {
    if (Find(name) != nullptr) continue;
    secrets_.push_back({name, {}, false});
    if (has_ads && OverAds(name)) {
      more_over_ads_ = true;
      continue;
    }
    const std::weak_ptr<Life> life = life_;
    if (!std::exchange(asks_agent_, true)) process_.NewConnection();  // one for all
    process_.context().secrets().Subscribe(name, [life, name](absl::StatusOr<Secret> secret) {
      const std::shared_ptr<Life> alive = life.lock();
      if (alive == nullptr || !secret.ok()) return;  // the last good one stays
      Process& process = alive->secrets->process_;
      process.host().RunAfter(process.Draw(process.latencies().apply_sds),
                              [life, name, value = *std::move(secret)]() mutable {
                                const std::shared_ptr<Life> still = life.lock();
                                if (still != nullptr) still->secrets->Take(name, std::move(value));
                              });
    });
  }
}

bool Secrets::Ready(const std::vector<std::string>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const std::string& n) {
    const State* s = Find(n);
    return s != nullptr && s->ready;
  });
}

void Secrets::Take(const std::string& name, Secret secret) {
  for (State& s : secrets_) {
    if (s.name != name) continue;
    s.secret = std::move(secret);
    s.ready = true;
    break;  // names are unique
  }
  ++epoch_;
  process_.host().Emit(
      {TraceKind::kXdsApplied, process_.trace_name(), process_.host().Intern(XdsTypeName(XdsType::kSds)), 1});
  on_change_();
}

TlsParty Secrets::Party(const std::shared_ptr<const TlsContext>& context) const {
  TlsParty party;
  party.context = context;
  party.certificate = context->certificate;
  party.trusted_ca = context->trusted_ca;
  if (const State* s = Find(context->certificate_secret)) party.certificate = s->secret.certificate;
  if (const State* s = Find(context->validation_secret)) {
    party.trusted_ca = s->secret.trusted_ca;
    party.peer_of_secret = s->secret.peer;
  }
  return party;
}

}  // namespace wavetank::envoysim
