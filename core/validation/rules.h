// The rules of each kind. `object` is whole; its spec is looked at.
#pragma once

#include "core/validation/problems.h"
#include "nlohmann/json.hpp"

namespace wavetank::validation {

void CheckAuthorizationPolicy(const nlohmann::json& object, Problems& out);
void CheckDestinationRule(const nlohmann::json& object, Problems& out);
void CheckEnvoyFilter(const nlohmann::json& object, Problems& out);
void CheckGateway(const nlohmann::json& object, Problems& out);
void CheckPeerAuthentication(const nlohmann::json& object, Problems& out);
void CheckProxyConfig(const nlohmann::json& object, Problems& out);
void CheckRequestAuthentication(const nlohmann::json& object, Problems& out);
void CheckServiceEntry(const nlohmann::json& object, Problems& out);
void CheckSidecar(const nlohmann::json& object, Problems& out);
void CheckTelemetry(const nlohmann::json& object, Problems& out);
void CheckVirtualService(const nlohmann::json& object, Problems& out);
void CheckWasmPlugin(const nlohmann::json& object, Problems& out);
void CheckWorkloadEntry(const nlohmann::json& object, Problems& out);
void CheckWorkloadGroup(const nlohmann::json& object, Problems& out);

// targetRefs, or targetRef, of a policy's spec, beside its selector. O(targets).
void CheckTargets(const nlohmann::json& spec, Problems& out);

// A ConnectionPoolSettings of a DestinationRule or a Sidecar; null is none.
void CheckConnectionPool(const nlohmann::json& pool, Problems& out);

// Of a VirtualService's spec: routes that no request reaches.
void WarnOfUnreachable(const nlohmann::json& spec, Problems& out);

}  // namespace wavetank::validation
