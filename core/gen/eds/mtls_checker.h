// Whether a client would speak mTLS to an endpoint (istiod: pilot/pkg/xds/mtls_checker.go).
#pragma once

#include <optional>
#include <string_view>

#include "core/config/kinds/destination_rule.h"
#include "core/gen/eds/endpoint_decision.h"
#include "core/model/endpoint.h"

namespace wavetank::pilot {

class PushContext;

class MtlsChecker {
 public:
  // `rule`: that applies to the service, may be null. Both must outlive the checker. `subset`: of the cluster.
  MtlsChecker(const PushContext& push, int service_port, const config::DestinationRule* rule, std::string_view subset);

  // Disabled for endpoints without a sidecar, and where a DestinationRule or a PeerAuthentication switches mTLS off.
  // The same for all endpoints of one profile and port; not cached here.
  MtlsVerdict Check(const EndpointProfile& endpoint, uint32_t endpoint_port) const;

 private:
  using Mode = config::ClientTlsSettings::Mode;
  std::optional<Mode> ModeOfRule(const Labels& labels) const;
  std::optional<Mode> ModeOfPolicy(const std::optional<config::TrafficPolicy>& policy) const;

  const PushContext& push_;
  int service_port_;
  const config::DestinationRule* rule_;
  const bool by_cluster_;  // the cluster's own policy decides, not that of the subset that an endpoint belongs to
  std::optional<Mode> root_mode_;  // or the subset's
};

}  // namespace wavetank::pilot
