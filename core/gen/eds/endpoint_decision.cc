#include "core/gen/eds/endpoint_decision.h"

namespace wavetank::pilot {

std::string_view FilterName(EndpointFilter filter) {
  switch (filter) {
    case EndpointFilter::kClusterLocal:
      return "cluster-local";
    case EndpointFilter::kNodeLocal:
      return "node-local";
    case EndpointFilter::kDiscoverability:
      return "discoverability";
    case EndpointFilter::kPort:
      return "port";
    case EndpointFilter::kSubset:
      return "subset";
    case EndpointFilter::kHealth:
      return "health";
    case EndpointFilter::kDraining:
      return "draining";
    case EndpointFilter::kAddress:
      return "address";
    case EndpointFilter::kNetworkView:
      return "network-view";
    case EndpointFilter::kGatewayFamily:
      return "gateway-family";
    case EndpointFilter::kMtls:
      return "mtls";
    case EndpointFilter::kLocality:
      return "locality";
    case EndpointFilter::kPassed:
      break;
  }
  return "passed";
}

std::string_view VerdictText(MtlsVerdict verdict) {
  switch (verdict) {
    case MtlsVerdict::kPossible:
      return "possible";
    case MtlsVerdict::kRuleAsksForIt:
      return "ISTIO_MUTUAL by DestinationRule";
    case MtlsVerdict::kRuleDisables:
      return "DISABLE by DestinationRule";
    case MtlsVerdict::kRuleIsSimple:
      return "SIMPLE or MUTUAL by DestinationRule";
    case MtlsVerdict::kNoSidecar:
      return "no sidecar";
    case MtlsVerdict::kPolicyDisables:
      return "DISABLE by PeerAuthentication";
  }
  return "";
}

std::string_view ModeName(LocalityLbMode mode) {
  switch (mode) {
    case LocalityLbMode::kOff:
      return "off";
    case LocalityLbMode::kDistribute:
      return "distribute";
    case LocalityLbMode::kFailover:
      return "failover";
    case LocalityLbMode::kFailoverPriority:
      return "failoverPriority";
  }
  return "";
}

std::string_view RefusalText(AssignmentRefusal refusal) {
  switch (refusal) {
    case AssignmentRefusal::kNone:
      return "";
    case AssignmentRefusal::kServiceUnknown:
      return "the proxy does not see the service";
    case AssignmentRefusal::kNotEds:
      return "its endpoints are resolved by DNS, not sent by EDS";
    case AssignmentRefusal::kNoSuchPort:
      return "the service has no such port";
    case AssignmentRefusal::kNoShards:
      return "no registry has endpoints of it";
  }
  return "";
}

}  // namespace wavetank::pilot
