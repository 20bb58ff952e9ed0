// The seam between a connection and its network filters, as http_filter.h is for requests. The last of a chain, the
// HTTP connection manager or the tcp_proxy, is no NetworkFilter: connections are built for either (proxy/downstream.h).
// Envoy: envoy/network/filter.h
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "fakes/envoy/config/filter_status.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/tcp/fabric.h"

namespace wavetank::envoysim {

struct RouteEntry;

// A connection on its way through a chain. Implemented by DownstreamConnection.
class NetworkConnection {
 public:
  using Answered = std::function<void(NetworkConnection& connection, const Reply& reply)>;

  virtual ConnectionFacts Facts() const = 0;
  virtual const DynamicMetadata& notes() const = 0;
  virtual void Note(MetadataNote note) = 0;
  virtual uint64_t& Counter(std::string_view name) = 0;
  // The peer's identity goes into ConnectionFacts::peer_principal from here on.
  virtual void NotePeer() = 0;
  // Where a tcp_proxy sends the connection, whatever it says itself.
  virtual void UseCluster(std::string_view cluster) = 0;
  // What access logs say of a connection that a filter closes.
  virtual void Explain(ResponseFlags flags, std::string_view details, std::string_view termination) = 0;
  // Sends a request of the filter's own by `route`, which outlives it; calls back, perhaps before this returns, unless
  // the connection is gone by then.
  virtual void Call(const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Answered answered) = 0;
  // What ends a filter's turn after FilterStatus::kStop: the next one's, or the connection's end.
  virtual void Decide(bool goes_on) = 0;

 protected:
  ~NetworkConnection() = default;
};

class NetworkFilter {
 public:
  virtual ~NetworkFilter() = default;
  // The chain was chosen, and TLS, if it ends here, stands.
  virtual void OnNewConnection(NetworkConnection& connection) const { (void)connection; }
  // The client's first bytes, once. kStop: it has called or will call Decide().
  virtual FilterStatus OnData(NetworkConnection& connection) const {
    (void)connection;
    return FilterStatus::kContinue;
  }
  // Whether OnData() decides anything, so that bytes are held back for it.
  virtual bool reads() const { return false; }
};

}  // namespace wavetank::envoysim
