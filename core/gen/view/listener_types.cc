#include "core/gen/view/listener_types.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "core/base/ip.h"
#include "core/gen/view/listener_filters.h"
#include "core/gen/wire/wire.h"
#include "envoy/config/listener/v3/listener.pb.h"

namespace wavetank::pilot {
namespace {

namespace core_v3 = ::envoy::config::core::v3;
using ListenerPb = ::envoy::config::listener::v3::Listener;
using FilterChainPb = ::envoy::config::listener::v3::FilterChain;
using MatchPb = ::envoy::config::listener::v3::FilterChainMatch;

// The network part of the range, zero beyond its length.
absl::StatusOr<IpPrefix> Masked(const CidrRange& range) {
  return IpPrefix::Make(range.address_prefix, range.prefix_len);
}

void WriteMatch(wire::Writer& w, const FilterChainMatch& match) {
  for (const CidrRange& range : match.prefix_ranges) {
    w.Message(MatchPb::kPrefixRangesFieldNumber, [&] {
      w.NonEmpty(core_v3::CidrRange::kAddressPrefixFieldNumber, range.address_prefix);
      w.UInt32Value(core_v3::CidrRange::kPrefixLenFieldNumber, range.prefix_len);
    });
  }
  if (match.destination_port) w.UInt32Value(MatchPb::kDestinationPortFieldNumber, *match.destination_port);
  w.NonEmpty(MatchPb::kTransportProtocolFieldNumber, match.transport_protocol);
  w.Repeated(MatchPb::kApplicationProtocolsFieldNumber, match.application_protocols);
  w.Repeated(MatchPb::kServerNamesFieldNumber, match.server_names);
}

void WriteFilterChain(wire::Writer& w, const FilterChain& chain) {
  if (chain.match) w.Message(FilterChainPb::kFilterChainMatchFieldNumber, [&] { WriteMatch(w, *chain.match); });
  w.Append(chain.filters);
  w.NonEmpty(FilterChainPb::kMetadataFieldNumber, chain.metadata);
  w.NonEmpty(FilterChainPb::kTransportSocketFieldNumber, chain.transport_socket);
  w.NonEmpty(FilterChainPb::kNameFieldNumber, chain.name);
  constexpr int64_t kHandshake = 15'000'000'000;  // istiod: PILOT_GATEWAY_TRANSPORT_SOCKET_CONNECT_TIMEOUT
  if (chain.connects_in_time) w.Duration(FilterChainPb::kTransportSocketConnectTimeoutFieldNumber, kHandshake);
}

void WriteAddress(wire::Writer& w, std::string_view address, uint32_t port) {
  if (port == 0) {
    std::string_view path = address;
    if (path.substr(0, kUnixPrefix.size()) == kUnixPrefix) path.remove_prefix(kUnixPrefix.size());
    w.Message(core_v3::Address::kPipeFieldNumber, [&] { w.NonEmpty(core_v3::Pipe::kPathFieldNumber, path); });
    return;
  }
  w.Message(core_v3::Address::kSocketAddressFieldNumber, [&] {
    w.Bytes(core_v3::SocketAddress::kAddressFieldNumber, address);
    w.Varint(core_v3::SocketAddress::kPortValueFieldNumber, port);
  });
}

}  // namespace

ListenerProtocol ToListenerProtocol(Protocol protocol, bool sniffs) {
  if (IsHttp(protocol)) return ListenerProtocol::kHttp;
  if (IsTcp(protocol)) return ListenerProtocol::kTcp;
  if (protocol == Protocol::kUdp) return ListenerProtocol::kUnknown;
  return sniffs ? ListenerProtocol::kAuto : ListenerProtocol::kTcp;
}

const AlpnList& PlaintextHttpAlpns(bool http10) {
  static const auto& list = *new AlpnList{"http/1.1", "h2c"};
  static const auto& with_http10 = *new AlpnList{"http/1.0", "http/1.1", "h2c"};
  return http10 ? with_http10 : list;
}
const AlpnList& MutualTlsHttpAlpns() {
  static const auto& list = *new AlpnList{"istio-http/1.0", "istio-http/1.1", "istio-h2"};
  return list;
}
const AlpnList& MutualTlsTcpAlpns() {
  static const auto& list = *new AlpnList{"istio-peer-exchange", "istio"};
  return list;
}
const AlpnList& AllMutualTlsAlpns() {
  static const auto& list =
      *new AlpnList{"istio", "istio-peer-exchange", "istio-http/1.0", "istio-http/1.1", "istio-h2"};
  return list;
}

std::optional<CidrRange> ParseCidrRange(std::string_view text) {
  const size_t slash = text.find('/');
  std::string_view address = text.substr(0, slash);
  const bool v6 = address.find(':') != address.npos;
  // An address alone may have a zone, which stays.
  const size_t percent = v6 && slash == text.npos ? address.find('%') : address.npos;
  const std::string_view zone = percent == address.npos ? std::string_view() : address.substr(percent);
  address = address.substr(0, percent);
  if (zone.size() == 1) return std::nullopt;
  const absl::StatusOr<IpAddress> ip = IpAddress::Parse(address);
  if (!ip.ok()) return std::nullopt;
  const uint32_t bits = v6 ? 128 : 32;
  uint32_t length = bits;
  if (slash != text.npos) {
    const std::string_view digits = text.substr(slash + 1);
    if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error != std::errc() || end != digits.data() + digits.size() || length > bits) return std::nullopt;
  }
  // IpAddress takes a mapped IPv4 address for what it maps, and none for "::".
  std::string written = v6 && ip->is_v4() ? "::ffff:" + ip->ToString() : v6 && ip->empty() ? "::" : ip->ToString();
  return CidrRange{written.append(zone), length};
}

bool SameMatch(const FilterChainMatch& a, const FilterChainMatch& b) {
  const auto same_range = [](const CidrRange& x, const CidrRange& y) {
    const auto mx = Masked(x), my = Masked(y);
    return mx.ok() && my.ok() && mx->ip == my->ip;
  };
  return a.transport_protocol == b.transport_protocol && a.application_protocols == b.application_protocols &&
         a.destination_port.value_or(0) == b.destination_port.value_or(0) &&
         std::equal(a.prefix_ranges.begin(), a.prefix_ranges.end(), b.prefix_ranges.begin(), b.prefix_ranges.end(),
                    same_range) &&
         a.server_names == b.server_names;
}

std::string ListenerName(std::string_view bind, int64_t port) {
  std::string name(bind);
  absl::StrAppend(&name, "_", port);
  return name;
}

std::string EncodeListener(const Listener& listener) {
  size_t size = 512 + listener.listener_filters.size() + listener.access_log.size();
  for (const FilterChain& chain : listener.filter_chains) {
    size += 256 + chain.filters.size() + chain.transport_socket.size() + chain.metadata.size();
  }
  std::string out;
  out.reserve(size);
  wire::Writer w(&out);
  w.Bytes(ListenerPb::kNameFieldNumber, listener.name);
  w.Message(ListenerPb::kAddressFieldNumber, [&] { WriteAddress(w, listener.address, listener.port); });
  for (const FilterChain& chain : listener.filter_chains) {
    w.Message(ListenerPb::kFilterChainsFieldNumber, [&] { WriteFilterChain(w, chain); });
  }
  if (listener.use_original_dst) w.BoolValue(ListenerPb::kUseOriginalDstFieldNumber, *listener.use_original_dst);
  w.Append(listener.listener_filters);
  const auto inspect = [&](Inspector inspector) {
    w.Bytes(ListenerPb::kListenerFiltersFieldNumber, InspectorFilter(inspector));
  };
  if (listener.tls_inspector) inspect(listener.small_tls_buffer ? Inspector::kTlsSmall : Inspector::kTls);
  if (listener.http_inspector) inspect(Inspector::kHttp);
  if (listener.transparent) w.BoolValue(ListenerPb::kTransparentFieldNumber, *listener.transparent);
  if (listener.listener_filters_timeout) {
    w.Duration(ListenerPb::kListenerFiltersTimeoutFieldNumber, listener.listener_filters_timeout->count());
  }
  w.Varint(ListenerPb::kTrafficDirectionFieldNumber,
           listener.outbound ? core_v3::TrafficDirection::OUTBOUND : core_v3::TrafficDirection::INBOUND);
  if (listener.continue_on_listener_filters_timeout) {
    w.Bool(ListenerPb::kContinueOnListenerFiltersTimeoutFieldNumber, true);
  }
  if (listener.exact_balance) {
    w.Message(ListenerPb::kConnectionBalanceConfigFieldNumber,
              [&] { w.Message(ListenerPb::ConnectionBalanceConfig::kExactBalanceFieldNumber, [] {}); });
  }
  w.Append(listener.access_log);
  if (listener.default_filter_chain) {
    w.Message(ListenerPb::kDefaultFilterChainFieldNumber, [&] { WriteFilterChain(w, *listener.default_filter_chain); });
  }
  for (const std::string& address : listener.more_addresses) {
    w.Message(ListenerPb::kAdditionalAddressesFieldNumber, [&] {
      w.Message(::envoy::config::listener::v3::AdditionalAddress::kAddressFieldNumber,
                [&] { WriteAddress(w, address, listener.port); });
    });
  }
  if (listener.accepts_one_by_one) w.UInt32Value(ListenerPb::kMaxConnectionsToAcceptPerSocketEventFieldNumber, 1);
  if (listener.bind_to_port) w.BoolValue(ListenerPb::kBindToPortFieldNumber, *listener.bind_to_port);
  return out;
}

}  // namespace wavetank::pilot
