// The messages that several kinds share, as ProtoJson reads them.
#pragma once

#include "core/config/authorization_policy.h"
#include "core/config/destination_rule.h"
#include "core/config/envoy_filter.h"
#include "core/config/extension_provider.h"
#include "core/config/gateway.h"
#include "core/config/peer_authentication.h"
#include "core/config/proto_json.h"
#include "core/config/request_authentication.h"
#include "core/config/service_entry.h"
#include "core/config/sidecar.h"
#include "core/config/telemetry.h"
#include "core/config/typed_config.h"
#include "core/config/virtual_service.h"
#include "core/config/wasm_plugin.h"
#include "core/config/workload_entry.h"

namespace wavetank::config {

// The selector in `field`: newer kinds name its labels matchLabels, older ones labels. `out` stays empty without one,
// and is a selector of no labels, which takes all, when it names none.
void ReadSelector(ProtoJson& in, std::string_view field, std::string_view labels, std::optional<Labels>& out);

void ReadMessage(ProtoJson& in, StringMatch& out);
void ReadMessage(ProtoJson& in, Destination& out);
void ReadMessage(ProtoJson& in, PortSpec& out);
void ReadMessage(ProtoJson& in, ServerTlsSettings& out);
void ReadMessage(ProtoJson& in, LocalityLbSetting& out);
void ReadMessage(ProtoJson& in, TcpKeepalive& out);
void ReadMessage(ProtoJson& in, HttpRetry& out);
void ReadMessage(ProtoJson& in, WorkloadEntry& out);
void ReadMessage(ProtoJson& in, ExtensionProvider& out);

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
