// Which filter chain of a listener a connection gets.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fakes/envoy/match/string_map.h"
#include "fakes/envoy/tcp/address.h"

namespace wavetank::envoysim {

// What listener filters found out about a new connection.
struct ConnectionProperties {
  SocketAddress destination;
  SocketAddress source;
  std::string_view server_name;         // lower case
  std::string_view transport_protocol;  // "tls" or "raw_buffer"
  const std::vector<std::string>* application_protocols = nullptr;
};

// Filter chain matching. No step goes back to an earlier one: a more specific match that leads nowhere is a miss.
// Envoy: source/common/listener_manager/filter_chain_manager_impl.cc, findFilterChain
class FilterChainMatcher {
 public:
  struct Match {
    uint16_t destination_port = 0;  // 0: any
    std::vector<IpPrefix> destinations;
    std::vector<std::string> server_names;  // "*.foo.com" as ".foo.com"; "*" and none: any
    std::string transport_protocol;
    std::vector<std::string> application_protocols;
    std::vector<IpPrefix> direct_sources;
    uint8_t source_type = 0;  // ANY, SAME_IP_OR_LOOPBACK, EXTERNAL
    std::vector<IpPrefix> sources;
    std::vector<uint16_t> source_ports;
  };
  // False if an earlier chain has the same rules.
  bool Add(const Match& match, uint32_t chain);
  // Index of the chain, or nothing.
  std::optional<uint32_t> Find(const ConnectionProperties& connection) const;
  bool empty() const { return ports_.empty(); }

 private:
  template <typename T>
  struct PrefixMap {
    // Sorted by length, longest first; the empty prefix stands for any address.
    std::vector<std::pair<std::optional<IpPrefix>, T>> entries;
    T& At(const std::optional<IpPrefix>& prefix);
    const T* Find(const IpAddress& ip) const;
  };
  using SourcePorts = std::map<uint16_t, uint32_t>;
  using Sources = PrefixMap<SourcePorts>;
  using SourceTypes = std::array<Sources, 3>;
  using DirectSources = PrefixMap<SourceTypes>;
  using Applications = StringMap<DirectSources>;
  using Transports = StringMap<Applications>;
  using ServerNames = StringMap<Transports>;
  using Destinations = PrefixMap<ServerNames>;

  const SourceTypes* FindInServerNames(const ServerNames& names, const ConnectionProperties& c) const;

  absl::flat_hash_map<uint16_t, Destinations> ports_;
};

}  // namespace wavetank::envoysim
