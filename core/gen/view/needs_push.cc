#include "core/gen/view/needs_push.h"

#include <algorithm>

namespace wavetank::pilot {

namespace {

// istiod: ndsNeedsPush.
bool ConcernsNames(ConfigKind kind) {
  switch (kind) {
    case ConfigKind::kGateway:
    case ConfigKind::kVirtualService:
    case ConfigKind::kDestinationRule:
    case ConfigKind::kSecret:
    case ConfigKind::kTelemetry:
    case ConfigKind::kEnvoyFilter:
    case ConfigKind::kWorkloadEntry:
    case ConfigKind::kAuthorizationPolicy:
    case ConfigKind::kRequestAuthentication:
    case ConfigKind::kPeerAuthentication:
    case ConfigKind::kWasmPlugin:
    case ConfigKind::kProxyConfig:
    case ConfigKind::kMeshConfig:
      return false;
    default:
      return true;
  }
}

}  // namespace

bool Concerns(XdsType type, ConfigKind kind, const Proxy& proxy) {
  if (type == XdsType::kNds) return ConcernsNames(kind);
  switch (kind) {
    case ConfigKind::kSecret:
    case ConfigKind::kProxyConfig:
      return false;
    case ConfigKind::kAuthorizationPolicy:
    case ConfigKind::kRequestAuthentication:
    case ConfigKind::kTelemetry:
    case ConfigKind::kWasmPlugin:
      return type == XdsType::kLds;
    case ConfigKind::kGateway:
      return type == XdsType::kRds || (type == XdsType::kLds && proxy.IsRouter());
    case ConfigKind::kWorkloadEntry:
      return type == XdsType::kEds;
    case ConfigKind::kVirtualService:
      return type != XdsType::kEds;
    case ConfigKind::kPeerAuthentication:
      return type != XdsType::kRds;
    default:
      return true;
  }
}

bool AnyConcerns(XdsType type, const std::set<ConfigKey>& updated, const Proxy& proxy) {
  return updated.empty() || std::any_of(updated.begin(), updated.end(),
                                        [&](const ConfigKey& key) { return Concerns(type, key.kind, proxy); });
}

}  // namespace wavetank::pilot
