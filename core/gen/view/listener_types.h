// What listeners are put together from, before they become bytes: matches as values that can be compared and merged,
// filters already encoded. istiod works on Envoy's own messages here; comparing and merging need only this much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/config/schema/protocol.h"
#include "core/gen/view/cluster_names.h"
#include "core/model/addresses.h"

namespace wavetank::pilot {

// What kind of client opens connections to the listener (istiod: networking.ListenerClass).
enum class ListenerClass : uint8_t { kSidecarInbound, kSidecarOutbound, kGateway };

enum class ListenerProtocol : uint8_t { kUnknown, kTcp, kHttp, kAuto };
// UDP is kUnknown; what has no declared protocol is kAuto (istiod: ModelProtocolToListenerProtocol).
// Unless `sniffs`, that is TCP.
ListenerProtocol ToListenerProtocol(Protocol protocol, bool sniffs);

inline constexpr std::string_view kTlsTransport = "tls";
inline constexpr std::string_view kRawBufferTransport = "raw_buffer";

inline constexpr std::string_view kRdsHttpProxy = "http_proxy";
inline constexpr std::string_view kEnvoyServerName = "istio-envoy";

// ALPN protocols that filter chains match on. The strings are constants of the program.
using AlpnList = std::vector<std::string_view>;
// What the HTTP inspector finds in plain text; HTTP/1.0 only if istiod lets it in (PILOT_HTTP10), else it passes as
// bytes. istiod: listener.go, plaintextHTTPALPNs
const AlpnList& PlaintextHttpAlpns(bool http10);
const AlpnList& MutualTlsHttpAlpns();  // what a sidecar offers for HTTP over mTLS
const AlpnList& MutualTlsTcpAlpns();   // what a sidecar offers for anything else over mTLS
const AlpnList& AllMutualTlsAlpns();

struct CidrRange {
  std::string address_prefix;
  uint32_t prefix_len = 0;
};
// "10.0.0.0/8", or an address alone for its full length; nullopt if it is neither.
std::optional<CidrRange> ParseCidrRange(std::string_view text);

struct FilterChainMatch {
  std::optional<uint32_t> destination_port;
  std::vector<CidrRange> prefix_ranges;
  std::vector<std::string> server_names;
  std::string_view transport_protocol;
  AlpnList application_protocols;

  bool empty() const {
    return !destination_port && prefix_ranges.empty() && server_names.empty() && transport_protocol.empty() &&
           application_protocols.empty();
  }
};
// As istiod compares two of them: prefix ranges by their masked address alone, whatever their lengths
// (pilot/pkg/networking/util/util.go, CidrRangeSliceEqual).
bool SameMatch(const FilterChainMatch& a, const FilterChainMatch& b);

struct FilterChain {
  std::string name;
  std::optional<FilterChainMatch> match;
  std::string filters;            // encoded fields FilterChain.filters
  std::string transport_socket;   // encoded TransportSocket; empty: none
  std::string metadata;           // encoded Metadata; empty: none
  bool connects_in_time = false;  // a handshake that takes longer than istiod's 15 s is given up

  // No match, or one that everything matches.
  bool MatchesAll() const { return !match || match->empty(); }
};

struct Listener {
  std::string name, address;
  uint32_t port = 0;                        // 0: `address` is the path of a unix socket
  std::vector<std::string> more_addresses;  // additional_addresses, on the same port
  bool outbound = true;
  std::optional<bool> bind_to_port, transparent, use_original_dst;
  bool exact_balance = false;
  std::vector<FilterChain> filter_chains;
  std::optional<FilterChain> default_filter_chain;
  std::optional<Duration> listener_filters_timeout;
  bool continue_on_listener_filters_timeout = false;
  // Inspectors of outbound and gateway listeners, in this order.
  bool tls_inspector = false, http_inspector = false;
  bool small_tls_buffer = false;
  bool accepts_one_by_one = false;  // one connection for each time that the socket says so
  std::string listener_filters;     // encoded fields Listener.listener_filters, before the inspectors
  std::string access_log;           // encoded fields Listener.access_log
};

// "0.0.0.0_80".
std::string ListenerName(std::string_view bind, int64_t port);

std::string EncodeListener(const Listener& listener);

}  // namespace wavetank::pilot
