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
#include "fakes/envoy/extensions/release.h"
#include "fakes/envoy/http/rate_limit_actions.h"
#include "fakes/envoy/match/dynamic_metadata.h"
#include "fakes/envoy/tcp/fabric.h"

namespace wavetank::envoysim {

struct AccessLogEntry;
struct AlpnOffers;
struct DnsCacheConfig;
class HttpFilter;
struct HttpFilterLink;
struct RouteEntry;

// What a weighted cluster, route, virtual host or route configuration says to one filter (typed_per_filter_config),
// compiled by it.
class RouteFilterConfig {
 public:
  virtual ~RouteFilterConfig() = default;
};

// What a filter keeps: of a request from one turn to the next, or of one Envoy from request to request.
class FilterState {
 public:
  virtual ~FilterState() = default;
};
// A key for what an Envoy keeps for one configuration; no two are equal, and nothing depends on their order.
uint64_t NextFilterId();

// The head of an answer on its way back through the chain, and its body where that is known.
struct ReplyHead {
  uint16_t code = 200;
  bool from_upstream = false, has_body = false;
  std::string headers;  // Reply::headers
  std::string body;
  std::string trailers;                // Reply::trailers
  std::string_view details;            // %RESPONSE_CODE_DETAILS% of an answer of the proxy's own
  void Remove(std::string_view name);  // of a header, in lower case
};

// An answer of the proxy's own.
struct LocalReply {
  uint16_t code = 200;
  ResponseFlags flags = kNoFlags;
  // These live as long as the world: static, of configuration in force, or kept (HttpStream::Keep).
  std::string_view details, body;
  std::string_view headers = {};                           // Reply::headers
  uint16_t grpc_status = kNoGrpcStatus;                    // for gRPC clients; none: what `code` stands for
  bool edited = true;                                      // the route has its word about the headers
  ResponseFlags later_flags = kNoFlags;                    // set when the route has had it: its formats do not see them
  std::function<void(std::string* lines)> edit = nullptr;  // of what the route and `headers` say; null: nothing
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
  // How long after `lead` the last byte of its body is there; 0: it waits to be read; nothing: it was read, or there is
  // none.
  virtual std::optional<Duration> BodyDue(Duration lead) const = 0;
  // The filter has let the body come, to its end.
  virtual void HaveBody() = 0;
  // The route as chosen last; nullptr: none.
  virtual const RouteEntry* route() const = 0;
  // The cluster that the route leads to, as chance or the request have it; empty: no route, or none that leads
  // anywhere.
  virtual std::string_view RouteCluster() = 0;
  // Chooses the route again, by what the request and the notes are now.
  virtual void ClearRouteCache() = 0;
  // The most specific configuration for the filter whose turn it is: the weighted cluster's that was chosen before the
  // route's before its virtual host's. nullptr: none.
  virtual const RouteFilterConfig* RouteConfig() const = 0;
  // All of them, the most specific first: of the weighted cluster, the route, its virtual host and its route
  // configuration. `field`: those that stand in a field of this name (RouteFilterConfigs) instead.
  virtual std::vector<const RouteFilterConfig*> RouteConfigs(std::string_view field = {}) const = 0;
  // What formats print of the request as it is now. `entry` holds views of it and of its connection.
  virtual void Describe(AccessLogEntry* entry) const = 0;
  virtual const DynamicMetadata& notes() const = 0;
  virtual void Note(MetadataNote note) = 0;

  virtual ConnectionFacts connection() const = 0;
  // Where proxies before this one say that the request came from; nothing: the connection's peer is the client.
  virtual std::optional<IpAddress> ForwardedFor() const = 0;

  virtual Time now() const = 0;
  virtual Time wall_clock() const = 0;  // Host::WallClock()
  virtual RandomStream& random() = 0;
  virtual uint64_t& Counter(std::string_view name) = 0;
  virtual std::string_view Keep(std::string_view text) = 0;

  virtual void AddFlags(ResponseFlags flags) = 0;
  // Lines that go to the client with whatever answer there will be.
  virtual void AddReplyHeaders(std::string_view lines) = 0;
  // What this filter keeps of the request; null at first.
  virtual std::shared_ptr<FilterState>& Memory() = 0;
  // What the Envoy keeps under a key (NextFilterId), or the connection does; null at first, and gone with them.
  virtual std::shared_ptr<FilterState>& State(uint64_t key, bool of_connection) = 0;
  virtual EnvoyRelease release() const = 0;
  // When the listeners in force came into force.
  virtual Time listening_since() const = 0;
  virtual std::string LocalCluster() const = 0;  // node.cluster
  virtual std::string DownstreamAddress(bool remote) const = 0;
  struct Membership {
    bool known = false;
    size_t total = 0, healthy = 0;
  };
  virtual Membership MembersOf(std::string_view cluster) const = 0;
  // The descriptors of the route and, as `options` or the route say, of its virtual host.
  virtual void DescribeForLimits(uint32_t stage, const RateLimitSubject& subject, int options,
                                 std::vector<RateLimitDescriptor>* out) const = 0;
  // The filters of the chain that take part, for those that decide together.
  virtual std::vector<const HttpFilter*> chain() const = 0;
  // An answer of the filter's counts as one of the route's cluster.
  virtual void CountForCluster(uint16_t code) = 0;
  // Where its cluster is one that goes by names: the port of those that say none. Nothing: another cluster, or none.
  virtual std::optional<uint16_t> PortOfNames() = 0;
  // What the Envoy's cache of that name knows of a host. `go` later if it is asking, unless the request is over by
  // then.
  struct HostLookup {
    enum class Status : uint8_t { kKnown, kUnknown, kAsking, kFull, kBusy };
    Status status = Status::kKnown;
    std::string details;  // of kUnknown
  };
  virtual HostLookup LookUp(const DnsCacheConfig& cache, std::string_view host, uint16_t port, Go go) = 0;
  // Where that cluster's counters stand, "cluster.c."; empty: the route has none.
  virtual std::string ClusterCounters() const = 0;
  // A line of a script's, or about one, that Envoy would write to its own log.
  virtual void ScriptLog(std::string_view level, const std::string& text) = 0;

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
  // An answer comes back, an upstream's or the proxy's own, to the filters in reverse order. Of a request that was
  // answered before it reached this filter, too.
  virtual bool sees_replies() const { return false; }
  virtual void OnReply(HttpStream& stream, ReplyHead& reply) const {
    (void)stream;
    (void)reply;
  }
};

// A filter as the chain names it, and routes that configure it.
struct HttpFilterLink {
  std::string name, canonical;  // `canonical`: that of its type
  std::shared_ptr<const HttpFilter> filter;
  bool disabled = false;  // it takes no part until a route enables it
};

}  // namespace wavetank::envoysim
