#include "core/gen/eds/mtls_checker.h"

#include "core/gen/view/traffic_policy.h"
#include "core/model/selection.h"
#include "core/profile/changes.h"
#include "core/push/push_context.h"

namespace wavetank::pilot {

MtlsChecker::MtlsChecker(const PushContext& push, int service_port, const config::DestinationRule* rule,
                         std::string_view subset)
    : push_(push),
      service_port_(service_port),
      rule_(rule),
      by_cluster_(push.profile().Has(Change::kMtlsByClusterPolicy)) {
  if (rule_ == nullptr) return;
  if (!by_cluster_ || subset.empty()) {
    root_mode_ = ModeOfPolicy(rule_->traffic_policy);
  } else if (const config::Subset* own = FindSubset(rule_, subset)) {
    root_mode_ = ModeOfPolicy(own->traffic_policy);
  }
}

MtlsVerdict MtlsChecker::Check(const EndpointProfile& endpoint, uint32_t endpoint_port) const {
  if (by_cluster_ && root_mode_) {
    if (*root_mode_ == Mode::kIstioMutual) {
      return endpoint.tls_mode == kMutualTlsMode ? MtlsVerdict::kRuleAsksForIt : MtlsVerdict::kNoSidecar;
    }
    return *root_mode_ == Mode::kDisable ? MtlsVerdict::kRuleDisables : MtlsVerdict::kRuleIsSimple;
  }
  if (const auto mode = by_cluster_ ? std::nullopt : ModeOfRule(endpoint.labels)) {
    if (*mode == Mode::kDisable) return MtlsVerdict::kRuleDisables;
    // istio#46555; without the switch SIMPLE and MUTUAL say nothing here.
    if (*mode == Mode::kSimple && push_.profile().Has(Change::kTlsSimpleDropsCrossNetwork))
      return MtlsVerdict::kRuleIsSimple;
    // Whoever asks for ISTIO_MUTUAL gets it, whatever the endpoint and its policies say.
    if (*mode == Mode::kIstioMutual) return MtlsVerdict::kRuleAsksForIt;
  }
  if (endpoint.tls_mode != kMutualTlsMode) return MtlsVerdict::kNoSidecar;
  const MutualTlsMode policy = push_.authn().ComposeForWorkload(endpoint.ns, endpoint.labels).ForPort(endpoint_port);
  return policy == MutualTlsMode::kDisable ? MtlsVerdict::kPolicyDisables : MtlsVerdict::kPossible;
}

// Of the first subset whose labels match, if it has one.
std::optional<config::ClientTlsSettings::Mode> MtlsChecker::ModeOfRule(const Labels& labels) const {
  if (rule_ == nullptr) return root_mode_;
  for (const config::Subset& subset : rule_->subsets) {
    if (!Selects(subset.labels, labels)) continue;
    const auto mode = ModeOfPolicy(subset.traffic_policy);
    return mode ? mode : root_mode_;
  }
  return root_mode_;
}

// Unlike in a cluster's policy, a port's settings without TLS inherit here.
std::optional<config::ClientTlsSettings::Mode> MtlsChecker::ModeOfPolicy(
    const std::optional<config::TrafficPolicy>& policy) const {
  if (!policy) return std::nullopt;
  for (const config::PortTrafficPolicy& port : policy->port_level_settings) {
    if (static_cast<int64_t>(port.port) == service_port_ && port.tls) return port.tls->mode;
  }
  if (policy->tls) return policy->tls->mode;
  return std::nullopt;
}

}  // namespace wavetank::pilot
