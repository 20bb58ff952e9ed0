// A sidecar's inbound listeners: virtualInbound with its chains per port and for everything else, and real ones where
// a Sidecar asks for them (istiod: pilot/pkg/networking/core/v1alpha3/listener_inbound.go).
#pragma once

#include <vector>

#include "core/gen/lds/listener_builder.h"
#include "core/push/policies/authentication.h"

namespace wavetank::pilot {

// One filter chain of an inbound port: what it matches, what it is, whether it ends TLS.
struct InboundMatch {
  ListenerProtocol protocol = ListenerProtocol::kTcp;  // kHttp or kTcp
  std::string_view transport_protocol;
  AlpnList alpn;
  bool terminates_tls = false;
};

// The chains of a port by its mTLS mode and protocol, in order. istiod: filterchain_options.go.
const std::vector<InboundMatch>& InboundMatches(MutualTlsMode mode, ListenerProtocol protocol, bool http10);

std::vector<Listener> BuildInboundListeners(ListenerScope& scope);

}  // namespace wavetank::pilot
