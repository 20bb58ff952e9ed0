#include "core/model/push_request.h"

#include <utility>

namespace wavetank::pilot {

std::string_view ConfigKindName(ConfigKind kind) {
  switch (kind) {
    case ConfigKind::kGateway:
      return "Gateway";
    case ConfigKind::kVirtualService:
      return "VirtualService";
    case ConfigKind::kDestinationRule:
      return "DestinationRule";
    case ConfigKind::kServiceEntry:
      return "ServiceEntry";
    case ConfigKind::kWorkloadEntry:
      return "WorkloadEntry";
    case ConfigKind::kSidecar:
      return "Sidecar";
    case ConfigKind::kPeerAuthentication:
      return "PeerAuthentication";
    case ConfigKind::kRequestAuthentication:
      return "RequestAuthentication";
    case ConfigKind::kAuthorizationPolicy:
      return "AuthorizationPolicy";
    case ConfigKind::kEnvoyFilter:
      return "EnvoyFilter";
    case ConfigKind::kTelemetry:
      return "Telemetry";
    case ConfigKind::kProxyConfig:
      return "ProxyConfig";
    case ConfigKind::kWasmPlugin:
      return "WasmPlugin";
    case ConfigKind::kSecret:
      return "Secret";
    case ConfigKind::kAddress:
      return "Address";
    case ConfigKind::kService:
      return "Service";
    case ConfigKind::kPod:
      return "Pod";
    case ConfigKind::kMeshConfig:
      return "MeshConfig";
    case ConfigKind::kMeshNetworks:
      return "MeshNetworks";
  }
  return "Unknown";
}

std::vector<std::string_view> ReasonNames(TriggerReasons reasons) {
  // In alphabetical order.
  static constexpr std::pair<std::string_view, TriggerReason> kNames[] = {
      {"cluster", TriggerReason::kCluster},     {"config", TriggerReason::kConfig},
      {"debug", TriggerReason::kDebug},         {"endpoint", TriggerReason::kEndpoint},
      {"global", TriggerReason::kGlobal},       {"headlessendpoint", TriggerReason::kHeadlessEndpoint},
      {"namespace", TriggerReason::kNamespace}, {"networks", TriggerReason::kNetworks},
      {"proxy", TriggerReason::kProxy},         {"proxyrequest", TriggerReason::kProxyRequest},
      {"secret", TriggerReason::kSecret},       {"service", TriggerReason::kService},
      {"unknown", TriggerReason::kUnknown},
  };
  std::vector<std::string_view> out;
  for (const auto& [name, reason] : kNames) {
    if ((reasons & Reason(reason)) != 0) out.push_back(name);
  }
  return out;
}

bool PushRequest::HasConfigsOfKind(ConfigKind kind) const {
  const auto it = configs_updated.lower_bound(ConfigKey{kind, "", ""});
  return it != configs_updated.end() && it->kind == kind;
}

void PushRequest::Merge(PushRequest newer, Host& host) {
  full = full || newer.full;
  reasons |= newer.reasons;
  events += newer.events;
  cause = host.MergeCauses(cause, newer.cause);
  if (newer.push != nullptr) push = std::move(newer.push);
  if (configs_updated.empty() || newer.configs_updated.empty()) {
    configs_updated.clear();
  } else {
    configs_updated.merge(newer.configs_updated);
  }
  delta = {};
}

}  // namespace wavetank::pilot
