// Which application protocols a connection manager's requests offer upstream, by what they speak.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wavetank::envoysim {

// The network filter with which proxies of Istio tell each other who they are, of connections with this protocol.
// istio/proxy: source/extensions/filters/network/metadata_exchange
inline constexpr std::string_view kPeerExchangeMessage = "envoy.tcp.metadataexchange.config.MetadataExchange";
inline constexpr std::string_view kPeerExchange = "istio-peer-exchange";

// Indexed by HttpProtocol.
struct AlpnOffers {
  std::array<std::vector<std::string>, 3> offers;
  std::array<uint64_t, 3> ids{};  // equal lists have equal ids
};

}  // namespace wavetank::envoysim
