// How proxies tell each other who they are: the filter istio.metadata_exchange, of listeners, of clusters and of HTTP.
// Releases differ in its configuration (istiod: pilot/pkg/xds/filters/filters.go).
#pragma once

#include <string>

namespace google::protobuf {
class Any;
}

namespace wavetank::pilot {

struct Proxy;
class PushContext;

// Of a network filter: peers exchange their identities. `discovery`: a peer that tells nothing is looked up by address.
google::protobuf::Any MetadataExchangeConfig(bool discovery);

// The network filter as an encoded FilterChain.filters field.
const std::string& MetadataExchangeFilter(const PushContext& push);

// Of a listener that takes or makes connections; the last tells nothing to clusters outside the mesh.
enum class ExchangeSide { kInbound, kOutbound, kOutboundWithin };
// Its HttpFilter message.
const std::string& HttpMetadataExchange(const Proxy& proxy, const PushContext& push, ExchangeSide side);

}  // namespace wavetank::pilot
