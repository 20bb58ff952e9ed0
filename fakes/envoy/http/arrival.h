// What a connection manager does to the head of a request that arrives: who sent it, over what, through whom.
// Envoy: source/common/http/conn_manager_utility.cc, mutateRequestHeaders
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "fakes/envoy/tcp/address.h"

namespace envoy::extensions::filters::network::http_connection_manager::v3 {
class HttpConnectionManager;
}

namespace wavetank::envoysim {

struct RequestSpec;

struct ArrivalRules {
  // HttpConnectionManager.ForwardClientCertDetails
  enum class ClientCert : uint8_t { kSanitize, kForwardOnly, kAppendForward, kSanitizeSet, kAlwaysForwardOnly };
  enum class HostPort : uint8_t { kKeep, kStripMatching, kStripAny };

  bool use_remote_address = false, skip_xff_append = false;
  uint32_t xff_num_trusted_hops = 0;
  HostPort host_port = HostPort::kKeep;
  ClientCert client_cert = ClientCert::kSanitize;
  bool cert_subject = false, cert_dns = false, cert_uri = false;  // set_current_client_cert_details
  std::string via;
  std::vector<IpPrefix> internal;     // internal_address_config
  bool says_internal = false;         // ... is there
  bool http1_trailers = false;        // those in HTTP/1 are read, and written, not passed over
  std::vector<std::string> upgrades;  // types that are allowed, in lower case
  bool allows_connect = false;        // HTTP/2's CONNECT is read

  static ArrivalRules Of(
      const envoy::extensions::filters::network::http_connection_manager::v3::HttpConnectionManager&);
};

// The connection that it came on.
struct ArrivalPeer {
  IpAddress ip, own;  // of the peer, and of the Envoy's machine
  uint16_t port = 0;  // where it was accepted
  bool tls = false;
  std::string_view identity, own_identity;  // URIs of the certificates; none: the peer presented none
  std::string_view certificate;             // the peer's leaf, DER
  std::string_view subject;                 // its subject
  std::vector<std::string> dns_names;       // its names
};

// The request with its changes; null if there are none. `private_is_internal`: RFC 1918's addresses are internal unless
// internal_address_config says otherwise.
std::shared_ptr<const RequestSpec> Arrive(const ArrivalRules& rules, const ArrivalPeer& peer, bool private_is_internal,
                                          const RequestSpec& request);

// Whether the request wants its connection to be something else than HTTP; the type in lower case, or empty. Over
// HTTP/2 it is a CONNECT that names the type, which codecs make the same headers of (RFC 8441).
std::string UpgradeOf(const RequestSpec& request);

}  // namespace wavetank::envoysim
