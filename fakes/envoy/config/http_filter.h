// The seam between a connection manager and its HTTP filters. A filter is a link of a chain, compiled once from its
// configuration and shared by all Envoys that were sent it; what it knows of a request is an HttpStream's. A new filter
// is a pair of files in filters/ and a line in filters/registry.cc.
// Envoy: envoy/http/filter.h
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "fakes/envoy/config/filter_status.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/tcp/fabric.h"

namespace wavetank::envoysim {

struct AlpnOffers;
struct RouteEntry;

// What a route, virtual host or weighted cluster says to one filter (typed_per_filter_config), compiled by it.
class RouteFilterConfig {
 public:
  virtual ~RouteFilterConfig() = default;
};

// An answer of the proxy's own.
struct LocalReply {
  uint16_t code = 200;
  ResponseFlags flags = kNoFlags;
  // These live as long as the world: static, of configuration in force, or kept (HttpStream::Keep).
  std::string_view details, body;
  std::string_view headers = {};         // Reply::headers
  uint16_t grpc_status = kNoGrpcStatus;  // for gRPC clients; none: what `code` stands for
};

// A request on its way through a chain. Implemented by the Router.
class HttpStream {
 public:
  using Go = std::function<void(HttpStream& stream)>;
  using Answered = std::function<void(HttpStream& stream, const Reply& reply, Duration lead)>;
  virtual ~HttpStream() = default;

  virtual const RequestSpec& request() const = 0;
  // From here on this is the request.
  virtual void Replace(std::shared_ptr<const RequestSpec> request) = 0;
  // The route as chosen last; nullptr: none.
  virtual const RouteEntry* route() const = 0;
  // Chooses the route again, by what the request and the notes are now.
  virtual void ClearRouteCache() = 0;
  // The most specific configuration for the filter whose turn it is: the route's before its virtual host's. nullptr:
  // none.
  virtual const RouteFilterConfig* RouteConfig() const = 0;
  virtual const DynamicMetadata& notes() const = 0;
  virtual void Note(MetadataNote note) = 0;

  virtual ConnectionFacts connection() const = 0;
  // Where proxies before this one say that the request came from; nothing: the connection's peer is the client.
  virtual std::optional<IpAddress> ForwardedFor() const = 0;

  virtual Time now() const = 0;
  virtual RandomStream& random() = 0;
  virtual uint64_t& Counter(std::string_view name) = 0;
  virtual std::string_view Keep(std::string_view text) = 0;

  virtual void AddFlags(ResponseFlags flags) = 0;
  // Lines that go to the client with whatever answer there will be.
  virtual void AddReplyHeaders(std::string_view lines) = 0;
  // Which protocols to offer upstream.
  virtual void OfferAlpn(const AlpnOffers& offers) = 0;

  // What ends a filter's turn after FilterStatus::kStop; `lead`: how far from now.
  virtual void Answer(const LocalReply& reply, Duration lead) = 0;
  virtual void Continue(Duration lead) = 0;
  // Calls `go` later, unless the request is over by then.
  virtual void After(Duration wait, Go go) = 0;
  // Sends a request of the filter's own by `route`, which outlives it; calls back, perhaps before this returns, unless
  // the request is over by then.
  virtual void Call(const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Answered answered) = 0;
  // What the last filter does: the route's action.
  virtual void Route(Duration lead) = 0;
};

class HttpFilter {
 public:
  virtual ~HttpFilter() = default;

  // A request comes by, `lead` from now. kStop: it was answered, or goes on with Continue().
  virtual FilterStatus OnRequest(HttpStream& stream, Duration lead) const = 0;
};

// A filter as the chain names it, and routes that configure it.
struct HttpFilterLink {
  std::string name, canonical;  // `canonical`: that of its type
  std::shared_ptr<const HttpFilter> filter;
};

}  // namespace wavetank::envoysim
