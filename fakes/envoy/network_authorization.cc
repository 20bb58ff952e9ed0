// The network filters that decide whether a connection is served: RBAC at once, ext_authz after asking an authorizer.
// Envoy: source/extensions/filters/network/rbac/rbac_filter.cc, filters/network/ext_authz/ext_authz.cc
#include <string>
#include <utility>

#include "fakes/envoy/downstream.h"
#include "fakes/envoy/envoy_impl.h"

namespace wavetank::envoysim {

RbacSubject DownstreamConnection::Subject() const {
  RbacSubject out;
  out.metadata = &notes_;
  out.tls = tls_;
  if (client_verified_) out.identity = client_identity_;
  if (chain_->istio_authn) out.peer_principal = out.identity;
  out.direct_source = out.source = source_ip();
  out.destination = original_destination().ip;
  out.port = original_destination().port;
  // The inspector's finding, not the handshake's.
  if (flight_ != nullptr && listener_->tls_inspector && !listener_->tls_inspector_disabled.Matches(out.port)) {
    out.server_name = flight_->sni;
  }
  return out;
}

RbacRules::Verdict DownstreamConnection::Authorize(const RbacFilter& filter, const RbacSubject& subject,
                                                   std::string_view* shadow_policy) {
  if (filter.shadow) {
    const RbacRules::Verdict verdict = filter.shadow->Decide(subject);
    ++envoy_.Counter(verdict.allowed ? filter.shadow_allowed : filter.shadow_denied);
    if (shadow_policy != nullptr) *shadow_policy = verdict.policy;
  }
  if (!filter.rules) return {};
  const RbacRules::Verdict verdict = filter.rules->Decide(subject);
  ++envoy_.Counter(verdict.allowed ? filter.allowed : filter.denied);
  return verdict;
}

DownstreamConnection::Admission DownstreamConnection::Admit() {
  if (check_ != kNoStream) return Admission::kAsking;
  const std::vector<NetworkAuthorizationFilter>& filters = chain_->authorization;
  while (next_authorization_ < filters.size()) {
    const NetworkAuthorizationFilter& filter = filters[next_authorization_++];
    if (const auto* rbac = std::get_if<RbacFilter>(&filter)) {
      std::string_view shadow;
      const RbacRules::Verdict verdict = Authorize(*rbac, Subject(), &shadow);
      if (!shadow.empty()) notes_.push_back({"envoy.filters.network.rbac", rbac->shadow_policy_key, shadow, nullptr});
      if (!verdict.allowed) {
        if (log_ != nullptr) log_->termination = RbacDenial(verdict.policy);
        return Admission::kRefused;
      }
      continue;
    }
    const auto& authorizer = std::get<ExtAuthzFilter>(filter);
    if (!authorizer.AsksAbout(notes_)) {
      ++envoy_.Counter(authorizer.counters + "disabled");
      continue;
    }
    ++envoy_.Counter(authorizer.counters + "total");
    check_passed_.reset();
    const StreamId check = envoy_.plane().router().AskAbout(*this, authorizer);
    if (!check_passed_.has_value()) {
      check_ = check;
      return Admission::kAsking;
    }
    if (!*check_passed_) return Admission::kRefused;
  }
  return Admission::kAdmitted;
}

void DownstreamConnection::Checked(const ExtAuthzFilter& authorizer, const Reply& reply) {
  using Result = ExtAuthzFilter::Result;
  const Result result = authorizer.ResultOf(reply);
  const auto count = [&](std::string_view what) { ++envoy_.Counter(authorizer.counters + std::string(what)); };
  count(result == Result::kAllowed ? "ok" : result == Result::kDenied ? "denied" : "error");
  bool passed = result == Result::kAllowed;
  if (result == Result::kError && authorizer.failure_mode_allow) {
    count("failure_mode_allowed");
    passed = true;
  }
  if (!passed) count("cx_closed");
  if (!passed && log_ != nullptr) {
    log_->flags |= kUnauthorizedExternalService;
    log_->details = result == Result::kError ? "ext_authz_error" : "ext_authz_denied";
  }
  check_passed_ = passed;
  if (std::exchange(check_, kNoStream) == kNoStream) return;  // answered within Admit()
  passed ? Proceed() : CloseNow(CloseKind::kReset);
}

void DownstreamConnection::Proceed() {
  switch (Admit()) {
    case Admission::kRefused:
      return CloseNow(CloseKind::kReset);
    case Admission::kAsking:
      return;
    case Admission::kAdmitted:
      break;
  }
  if (chain_->tcp.has_value()) return Splice();
  Fabric& fabric = envoy_.fabric();
  const ConnectionId id = id_;
  for (const auto& [exchange, spec] : std::exchange(unadmitted_, {})) {
    if (fabric.state(id) != Fabric::State::kConnected) return;  // a request has ended it, and this with it
    envoy_.plane().router().Begin(*this, exchange, *spec, Duration::zero());
  }
}

}  // namespace wavetank::envoysim
