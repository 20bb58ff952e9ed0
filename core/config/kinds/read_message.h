// The messages that several kinds share, as ProtoJson reads them.
#pragma once

#include "core/config/kinds/authorization_policy.h"
#include "core/config/kinds/destination_rule.h"
#include "core/config/kinds/envoy_filter.h"
#include "core/config/kinds/gateway.h"
#include "core/config/kinds/peer_authentication.h"
#include "core/config/kinds/request_authentication.h"
#include "core/config/kinds/service_entry.h"
#include "core/config/kinds/sidecar.h"
#include "core/config/kinds/telemetry.h"
#include "core/config/kinds/typed_config.h"
#include "core/config/kinds/virtual_service.h"
#include "core/config/kinds/wasm_plugin.h"
#include "core/config/kinds/workload_entry.h"
#include "core/config/schema/proto_json.h"

namespace wavetank::config {

// The selector in `field`: newer kinds name its labels matchLabels, older ones labels. `out` stays empty without one,
// and is a selector of no labels, which takes all, when it names none.
void ReadSelector(ProtoJson& in, std::string_view field, std::string_view labels, std::optional<Labels>& out);

// targetRefs; without any, targetRef, which older releases had.
void ReadTargets(ProtoJson& in, std::vector<PolicyTarget>& out);

void ReadMessage(ProtoJson& in, PolicyTarget& out);
void ReadMessage(ProtoJson& in, StringMatch& out);
void ReadMessage(ProtoJson& in, Destination& out);
void ReadMessage(ProtoJson& in, PortSpec& out);
void ReadMessage(ProtoJson& in, ServerTlsSettings& out);
void ReadMessage(ProtoJson& in, LocalityLbSetting& out);
void ReadMessage(ProtoJson& in, TcpKeepalive& out);
void ReadMessage(ProtoJson& in, HttpRetry& out);
void ReadMessage(ProtoJson& in, WorkloadEntry& out);

void ReadMessage(ProtoJson& in, AuthorizationPolicy& out);
void ReadMessage(ProtoJson& in, DestinationRule& out);
void ReadMessage(ProtoJson& in, EnvoyFilter& out);
void ReadMessage(ProtoJson& in, Gateway& out);
void ReadMessage(ProtoJson& in, PeerAuthentication& out);
void ReadMessage(ProtoJson& in, RequestAuthentication& out);
void ReadMessage(ProtoJson& in, ServiceEntry& out);
void ReadMessage(ProtoJson& in, Sidecar& out);
void ReadMessage(ProtoJson& in, Telemetry& out);
void ReadMessage(ProtoJson& in, VirtualService& out);
void ReadMessage(ProtoJson& in, WasmPlugin& out);

}  // namespace wavetank::config
