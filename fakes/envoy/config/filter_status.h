// What a filter says about going on, and what filters of either level know of a connection.
#pragma once

#include <cstdint>
#include <string_view>

#include "fakes/envoy/tcp/address.h"

namespace wavetank::envoysim {

// Envoy: envoy/network/filter.h, envoy/http/filter.h. After kStop nothing happens before the filter says so.
enum class FilterStatus : uint8_t { kContinue, kStop };

// A connection as filters see it. The views hold during the call that asked.
struct ConnectionFacts {
  bool tls = false;
  std::string_view identity;        // URI SAN of the peer's verified certificate
  std::string_view peer_principal;  // the same where the istio_authn filter wrote it down
  IpAddress direct_source;          // the peer's address
  IpAddress connection_source;      // the same, or whom the PROXY protocol named
  IpAddress destination;
  uint16_t port = 0;
  std::string_view server_name;  // the TLS inspector's finding, not the handshake's
};

}  // namespace wavetank::envoysim
