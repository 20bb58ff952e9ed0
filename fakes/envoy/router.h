// The HTTP router: from a request on a downstream connection to an answer, over route, cluster, host, pool, retries and
// timeouts. One Router serves all Envoys of a world; a stream knows whose it is.
// Envoy: source/common/router/router.cc, retry_state_impl.cc; figures in shared/ENVOY.md 3.5.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/host.h"
#include "fakes/envoy/cluster_runtime.h"
#include "fakes/envoy/envoy.h"
#include "fakes/envoy/fabric.h"
#include "fakes/envoy/listener_config.h"
#include "fakes/envoy/slab.h"

namespace wavetank::envoysim {

class DownstreamConnection;

// Routing decisions that hold for an epoch of the Envoy's configuration: the same request through the same connection
// manager needs no matching again.
struct RouteDecision {
  uint32_t epoch = 0;
  uint64_t spec = 0;
  const HttpConnectionManager* manager = nullptr;
  std::shared_ptr<const RouteTable> table;
  const VirtualHost* host = nullptr;
  const RouteEntry* route = nullptr;
  ClusterRuntime* cluster = nullptr;  // of a route with one cluster
};
struct RouteCache {
  static constexpr size_t kSlots = 8;
  std::unique_ptr<std::vector<RouteDecision>> slots;
};

// What only an access log wants to know of a request.
struct RequestLog {
  uint64_t request_id = 0;
  Time routed{};                // when the router began
  SocketAddress host;           // of the last try, once its connection stood or failed
  SocketAddress remote, local;  // of that connection
};

class Router final : public ExchangeOwner {
 public:
  explicit Router(DataPlane& plane) : plane_(plane) {}

  // A request arrived at a connection manager. Ends in Fabric::Answer of `exchange`, or not at all if the downstream
  // connection closes.
  void Begin(DownstreamConnection& downstream, ExchangeId exchange, const RequestSpec& spec, Duration lead);
  // The downstream connection is gone, and why as access logs have it; empty: nobody is left to write one.
  void AbortDownstream(StreamId stream, std::string_view details);
  // Asks about a connection; ends in its Checked(), perhaps before this returns, or in AbortDownstream().
  StreamId AskAbout(DownstreamConnection& connection, const ExtAuthzFilter& authorizer);

  // From pools.
  void OnPoolReady(StreamId stream, UpstreamConnection* connection, Duration lead);
  void OnPoolFailure(StreamId stream, ResetReason reason, std::string_view failure, Duration lead);
  void OnUpstreamReset(StreamId stream, ResetReason reason);

  size_t streams() const { return streams_.in_use(); }

 private:
  struct Stream {
    Envoy::Impl* envoy = nullptr;
    DownstreamConnection* downstream = nullptr;  // nullptr: a mirrored request
    ExchangeId exchange = kNoExchange;
    const RequestSpec* spec = nullptr;
    const HttpConnectionManager* manager = nullptr;
    std::shared_ptr<const RouteTable> table;
    const VirtualHost* host = nullptr;
    const RouteEntry* route = nullptr;
    ClusterRuntime* cluster = nullptr;
    HostRuntime* upstream_host = nullptr;
    HttpPool* pool = nullptr;  // waiting in it
    UpstreamConnection* upstream = nullptr;
    ExchangeId upstream_exchange = kNoExchange;
    std::optional<uint64_t> hash;
    std::vector<uint32_t> tried;  // HostRuntime::id, if the retry policy avoids previous hosts
    uint32_t attempts = 0;
    uint32_t retries_left = 0;
    bool retrying = false;  // holds a retry slot of the circuit breaker
    bool counted = false;   // in the host's active requests
    ResponseFlags flags = kNoFlags;
    Time start{};
    ConnectionId upstream_connection = kNoConnection;
    std::string_view transport_failure;
    size_t next_filter = 0;                      // of the manager's authorization filters
    DynamicMetadata notes;                       // what they wrote down
    std::string_view response_headers;           // that they add to the answer; Reply::headers
    StreamId check = kNoStream;                  // the question to an authorizer that is under way
    StreamId asked_by = kNoStream;               // of such a question, or
    DownstreamConnection* connection = nullptr;  // the connection that it is about
    const ExtAuthzFilter* authorizer = nullptr;
    std::shared_ptr<const RequestSpec> own_spec;  // as filters have changed it
    std::unique_ptr<RequestLog> log;              // nullptr: nobody wants a line
    TimerId timeout = kNoTimer;
    TimerId per_try = kNoTimer;
    TimerId backoff = kNoTimer;
  };

  void OnReply(uint64_t cookie, const Reply& reply, Duration lead) override;

  const RouteDecision& Decide(Envoy::Impl& envoy, const HttpConnectionManager& manager, const RequestSpec& spec);
  // The same without a memory, for a request that filters have changed or written something down about.
  static RouteDecision DecideAnew(Envoy::Impl& envoy, const HttpConnectionManager& manager, const RequestSpec& spec,
                                  const DynamicMetadata* notes);
  static void Take(const RouteDecision& decision, Stream* stream);
  // A filter has cleared the route cache.
  static void Reroute(Stream* stream);
  // Where proxies before this one say that the request came from; nothing: the connection's peer is the client.
  static std::optional<IpAddress> ForwardedFor(const HttpConnectionManager& manager, const RequestSpec& spec);
  // authorization.cc: the filters from the stream's next one on, and what follows when all have let it through.
  void RunFilters(StreamId id, Duration lead);
  StreamId NewCheck(Envoy::Impl& envoy, const ExtAuthzFilter& authorizer, std::shared_ptr<const RequestSpec> spec);
  void Ask(StreamId id, const ExtAuthzFilter& authorizer, Duration lead);
  void Answered(StreamId id, const ExtAuthzFilter& authorizer, const Reply& reply, Duration lead);
  // False: refused, and answered.
  bool Authenticate(StreamId id, const JwtAuthnFilter& filter, Duration lead);
  void Authorized(StreamId id, Duration lead);
  void Continue(StreamId id, Duration lead);
  void Try(StreamId id, Duration lead);
  void Failed(StreamId id, ResetReason reason, std::string_view failure, Duration lead);
  bool MaybeRetry(StreamId id, Duration lead);
  void OnTimeout(StreamId id);
  void OnPerTryTimeout(StreamId id);
  // Takes the stream off its try: pool, connection, counters.
  void EndTry(Stream& stream, StreamId id, bool reset);
  void Local(StreamId id, uint16_t code, ResponseFlags flags, std::string_view details, std::string_view body,
             Duration lead, std::string_view headers = {});
  void Finish(StreamId id, const Reply& reply, std::string_view details, Duration lead);
  // access_log_entries.cc: the lines of a request that ends `lead` from now.
  void WriteLogs(const Stream& stream, const RequestRecord& record, Duration lead);
  void Mirror(const Stream& stream);
  bool Retriable(const Stream& stream, const Reply& reply) const;
  bool Retriable(const Stream& stream, ResetReason reason) const;

  DataPlane& plane_;
  Slab<Stream, StreamId> streams_;
};

}  // namespace wavetank::envoysim
