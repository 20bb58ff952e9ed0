// The HTTP router: from a request on a downstream connection to an answer, over route, cluster, host, pool, retries and
// timeouts. One Router serves all Envoys of a world; a stream knows whose it is.
// Envoy: source/common/router/router.cc, retry_state_impl.cc; figures in docs/real-envoy.md 5.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/base/host.h"
#include "fakes/envoy/config/http_filter.h"
#include "fakes/envoy/config/listener_config.h"
#include "fakes/envoy/proxy/data_plane.h"
#include "fakes/envoy/tcp/fabric.h"
#include "fakes/envoy/tcp/slab.h"
#include "fakes/envoy/upstream/cluster_runtime.h"

namespace wavetank::envoysim {

class DataPlaneView;
class DownstreamConnection;
class RequestEdit;

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
  UpstreamSession session;      // likewise
  std::string_view protocol;
  std::string name;              // of the host
  uint64_t upstream_number = 0;  // UpstreamConnection::number()
};

// A request that its connection become something else than HTTP, which it may.
struct Upgrade {
  // Until it is answered, it has the times of its route and of its tries, and answers from 400 on go back as others do.
  bool timed = false;
  bool judged = false;  // of WebSocket: an answer that is no 101 is a failure of its own kind
  bool stands = false;  // it is answered, and its connection carries bytes both ways
  uint64_t received = 0, sent = 0;
  std::shared_ptr<ConnectionHandler> end;               // of the stream over which it came, if that is HTTP/2's
  const PeerInfo *client = nullptr, *server = nullptr;  // whose proxies said who they are, as the answer came
};

// What is made for an access log's entry, which refers to it.
struct ShownInLog {
  std::string headers;
  std::shared_ptr<const RequestSpec> request;
};

class Router final : public ExchangeOwner, public PoolUser {
 public:
  explicit Router(DataPlane& plane) : plane_(plane) {}

  // A request arrived at a connection manager. Ends in Fabric::Answer of `exchange`, or not at all if the downstream
  // connection closes.
  void Begin(DownstreamConnection& downstream, ExchangeId exchange, const RequestSpec& spec, Duration lead);
  // The downstream connection is gone, and why as access logs have it; empty: no log is left to write one.
  void AbortDownstream(StreamId stream, std::string_view details,
                       ResponseFlags flags = kDownstreamConnectionTermination);
  // What of a request waits for a connection does no more: it is about to end, and not alone.
  void StopWaiting(StreamId stream);
  // The Envoy ends, and its connections have: requests that nobody waits for end, too.
  void EndAllOf(const DataPlaneView& envoy);
  // Of a request that its client has reset.
  ExchangeId exchange(StreamId stream) const;
  // Bytes went over a connection that was upgraded, to the upstream or back.
  void OnTunnelled(StreamId stream, uint64_t received, uint64_t sent);
  // A request of the Envoy's own by `route`, which outlives it; `proxies`: that what it asks for has come through. Ends
  // in `answered`, perhaps before this returns, or in AbortDownstream().
  using Answered = std::function<void(const Reply& reply, Duration lead)>;
  StreamId Call(DataPlaneView& envoy, const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                uint16_t proxies, Duration lead, Answered answered);

  // From pools.
  void OnPoolReady(StreamId stream, UpstreamConnection* connection, Duration lead) override;
  void OnPoolFailure(StreamId stream, ResetReason reason, const TransportFailure& failure, Duration lead) override;
  void OnUpstreamReset(StreamId stream, ResetReason reason, std::string_view finding) override;

  size_t streams() const { return streams_.in_use(); }

 private:
  struct Stream {
    DataPlaneView* envoy = nullptr;
    DownstreamConnection* downstream = nullptr;  // nullptr: a mirrored request
    ExchangeId exchange = kNoExchange;
    const RequestSpec* spec = nullptr;
    std::shared_ptr<const void> keeper;  // of `spec` as it came
    const HttpConnectionManager* manager = nullptr;
    // Of a mirrored request, which may outlive its original's connection, and with that the listener.
    std::shared_ptr<const HttpConnectionManager> own_manager;
    std::shared_ptr<const std::vector<HttpFilterLink>> own_filters;  // where ECDS gives some; else the manager's
    const std::vector<HttpFilterLink>& filters() const { return own_filters ? *own_filters : manager->filters; }
    std::shared_ptr<const RouteTable> table;
    const VirtualHost* host = nullptr;
    const RouteEntry* route = nullptr;
    Held<ClusterRuntime> cluster;
    Held<HostRuntime> upstream_host;
    HttpPool* pool = nullptr;  // waiting in it
    UpstreamConnection* upstream = nullptr;
    ExchangeId upstream_exchange = kNoExchange;
    std::optional<uint64_t> hash;
    std::vector<uint32_t> tried;  // HostRuntime::id, if the retry policy avoids previous hosts
    uint32_t attempts = 0;
    uint32_t retries_left = 0;
    RetryPolicy const* retry = nullptr;  // the route's, unless the request wants another
    std::unique_ptr<const RetryPolicy> own_retry;
    Duration per_try_timeout{};
    std::vector<uint32_t> tried_priorities;  // if the retry policy leaves priorities out
    std::vector<bool> left_priorities;       // ... which
    Duration expected{};                     // x-envoy-expected-rq-timeout-ms of the first try; 0: none
    Duration told{};                         // ... of the present one
    Duration limit{};                        // of the whole request, from `complete_at` on; 0: none
    Time complete_at{};
    bool tells_grpc_timeout = false;  // the upstream is told in gRPC's header, too
    bool to_https = false;            // its virtual host wants TLS: it has no route, and is told so
    bool retrying = false;            // holds a retry slot of the circuit breaker
    bool counted = false;             // in the host's active requests
    // Hedging: a try that takes too long goes on beside the next one.
    bool hedges = false;
    bool followed = false;            // the present try is followed by another, whatever becomes of it
    bool timeout_told = false;        // outlier detection knows that it took too long
    std::vector<StreamId> earlier;    // tries that go on beside the present one
    StreamId earlier_of = kNoStream;  // of such a try, which is a stream of its own: the request's
    Time try_ends_at{};               // when `upstream_longest` does
    ResponseFlags flags = kNoFlags;
    Time start{};
    // Of an answer whose head has gone on to the client, and whose body is coming; 0: none.
    uint16_t begun = 0;
    Time begun_at{};
    uint16_t local_code = 0;  // of an answer of the proxy's own, before gRPC makes 200 of it; 0: none
    std::string_view begun_headers, begun_trailers;  // as the route and filters have left them
    bool broken = false;                             // it breaks off
    bool endless = false;                            // it asks for an upgrade: HTTP/1.1 knows no end of it
    std::unique_ptr<Upgrade> upgrade;                // ... which it may have; nullptr: not
    uint16_t proxies = 0;                            // that it has come through, its mirrors and calls too
    ConnectionId upstream_connection = kNoConnection;
    std::string_view transport_failure, tls_finding;
    std::vector<FailedTry> failed_tries;
    size_t next_filter = 0;      // of filters()
    std::vector<bool> left_out;  // of filters() those that take no part; empty: none
    Time body_end{};             // when the last byte of its body comes
    Duration body_gap{};         // BodyPace::gap
    // The event loop has turned since its head was read, so that what came of its body by now was read, too.
    bool looped = false;
    DynamicMetadata notes;  // what they wrote down
    // What they keep of the request, by their places in the chain; sorted by nothing, mostly empty.
    std::vector<std::pair<size_t, std::shared_ptr<FilterState>>> memory;
    std::string_view response_headers;            // that they add to the answer; Reply::headers
    const AlpnOffers* alpn = nullptr;             // that one of them chose
    StreamId call = kNoStream;                    // what one of them asks
    StreamId asked_by = kNoStream;                // of such a question
    std::unique_ptr<Answered> answered;           // of such a question: what waits for the answer
    std::shared_ptr<const RequestSpec> own_spec;  // as filters and the route have changed it
    std::shared_ptr<const RequestSpec> sent;      // of the present try, where tries differ
    const WeightedCluster* weighted = nullptr;    // that was chosen
    bool chosen = false;                          // ChooseCluster() was here
    bool headless = false;                        // the codec refused it before it had read its head
    bool last_here = false;                       // its connection takes no further one, HTTP/2's too
    const RouteEntry* drawn_for = nullptr;        // the route that its draw was for: chosen again, it leads there again
    uint64_t draw = 0;
    std::string set_cookie;           // that hashing made up
    std::unique_ptr<RequestLog> log;  // nullptr: no log wants a line
    // URI SANs of the last try's session; kept.
    std::string_view upstream_identity, own_identity;
    TimerId timeout = kNoTimer;
    TimerId per_try = kNoTimer, per_try_idle = kNoTimer, upstream_longest = kNoTimer;
    TimerId backoff = kNoTimer;
    TimerId longest = kNoTimer;  // max_stream_duration
    TimerId silence = kNoTimer;  // stream_idle_timeout
    TimerId overdue = kNoTimer;  // request_timeout
  };

  void OnReply(uint64_t cookie, const Reply& reply, Duration lead) override;
  void OnReplyHead(uint64_t cookie, const Reply& head) override;
  // Of an answer that has begun, nothing more comes. Its try has ended.
  // What the route, filters and the connection manager make of an answer's head, `details` of where it comes from.
  // `closes`: whether it says that its connection does.
  void PassBack(StreamId id, Reply* reply, std::string_view* details, bool* closes, Duration lead);
  void BreakOff(StreamId id, ResponseFlags flags, std::string_view details);

  const RouteDecision& Decide(DataPlaneView& envoy, const HttpConnectionManager& manager, const RequestSpec& spec);
  // The same without a memory, for a request that filters have changed or written something down about.
  static RouteDecision DecideAnew(DataPlaneView& envoy, const HttpConnectionManager& manager, const RequestSpec& spec,
                                  const DynamicMetadata* notes);
  static void Take(const RouteDecision& decision, Stream* stream);
  // A filter has cleared the route cache.
  static void Reroute(Stream* stream);
  static bool WantsTls(const Stream& stream);
  // request_edits.cc: what the connection manager makes of a request's head as it comes in.
  void ApplyArrival(StreamId id);
  bool MayUpgrade(StreamId id, Duration lead);
  void RefuseUpgrade(StreamId id, Duration lead);
  // upgrades.cc. Whether the route's time, and those of its tries, count.
  static bool Timed(const Stream& stream);
  // Whether an answer of that code is none that goes back as others do.
  static bool FailsHandshake(const Stream& stream, uint16_t code);
  // The upstream has not done as it was asked; `reply`: what it says.
  void RefuseHandshake(StreamId id, const Reply& reply, Duration lead);
  // The upstream has: what follows goes through.
  void BecomeTunnel(StreamId id, const Reply& reply, Duration lead);
  class TunnelEnd;
  // The same of a request over HTTP/2; `reply`: what is told of it here, `upstream`: where what follows goes.
  void AcceptConnect(StreamId id, ConnectionId upstream, const Reply& reply, std::string_view cluster, Duration lead);
  // HTTP/2's codec has taken it, whatever its answer would be over HTTP/1.1: `reply` becomes that.
  bool Switches(const Stream& stream, const Reply& reply) const;
  Reply Switched(const Stream& stream, const Reply& reply) const;
  // Such a CONNECT where no codec may take one.
  bool ReadsConnect(StreamId id);
  // The head of an answer goes out.
  static void CountAnswer(const Stream& stream, uint16_t code);
  // Whether an upstream's trailers are not read, and whether the client gets any.
  static bool PassesOverTrailers(const Stream& stream, const Reply& reply);
  static bool WritesTrailers(const Stream& stream);
  // An answer's lines with what HTTP/1.1's codec says of its own: that a body is empty, and that the connection closes.
  std::string_view WithFraming(std::string_view lines, const Reply& reply, bool local, bool closes);
  // And with the one that names the proxy.
  std::string_view WithServer(const HttpConnectionManager& manager, std::string_view lines);
  // What formats of a redirect see: the path that it leads to.
  static void RewriteRedirected(Stream* s);
  static void NumberTry(const Stream& stream, RequestEdit* edit);
  // Whether its host's name is the request's in the present try.
  static bool TakesNameOfHost(const Stream& stream);
  // All that a try makes of it: its number, its time, the name of its host.
  static void EditForTry(const Stream& stream, RequestEdit* edit);
  // Stream::told of a try that begins now.
  static Duration Expected(const Stream& stream);
  // Where proxies before this one say that the request came from; nothing: the connection's peer is the client.
  static std::optional<IpAddress> ForwardedFor(const HttpConnectionManager& manager, const RequestSpec& spec);
  // http_filters.cc: a stream as its filters see it, and its way through them from the next one on.
  class FilteredStream;
  // Which filters take part, by the route as it was chosen first.
  static void ChooseFilters(Stream* stream);
  void RunFilters(StreamId id, Duration lead);
  // An answer's way back through them. `headers` and `body` of it are replaced if they change.
  void RunReplyFilters(StreamId id, Reply* reply, std::string_view details);
  StreamId NewCall(DataPlaneView& envoy, const RouteEntry& route, std::shared_ptr<const RequestSpec> request,
                   uint16_t proxies, Answered answered);
  // For one of the stream's filters.
  void CallFor(StreamId id, const RouteEntry& route, std::shared_ptr<const RequestSpec> request, Duration lead,
               HttpStream::Answered answered);
  static void ChooseCluster(Stream* stream);
  // As it is now: it may have come or have been replaced since it was chosen, or be gone.
  static ClusterRuntime* ClusterNow(const Stream& stream);
  // The route's action.
  void Continue(StreamId id, Duration lead);
  static Duration PlanTries(Stream* stream);
  void Try(StreamId id, Duration lead);
  // The same, to a host that the cluster knows by its name, or has to ask for; `waited`: it has.
  void TryByName(StreamId id, Duration lead, bool waited = false);
  void TryHost(StreamId id, HostRuntime& host, Duration lead);
  static SocketOptions SocketOptionsOf(const Stream& stream, const HostRuntime& host);
  // Null: no PROXY protocol.
  static std::shared_ptr<const AnnouncedAddresses> Announcement(const Stream& stream, const HostRuntime& host);
  // request_edits.cc: what the connection manager and the route make of a request and its answer.
  // False: refused or redirected, and answered.
  bool Normalise(StreamId id, Duration lead);
  // "https" or "http", as the client asked.
  static std::string_view SchemeOf(const Stream& stream);
  void EditRequest(Stream* stream);
  // The request of one try: it says which.
  const RequestSpec& RequestOfTry(Stream* stream);
  // The lines of an answer, of an upstream or the route's own.
  // `code`: 0 while there is none, in an answer of the proxy's own.
  std::string EditReply(const Stream& stream, std::string_view lines, uint16_t code, std::string_view details);
  void EntryOf(const Stream& stream, AccessLogEntry* entry) const;
  void LimitDuration(StreamId id, Duration lead);
  void LimitSilence(StreamId id, Duration lead);
  void LimitSilenceOfAnswer(StreamId id, const BodyPace& pace);
  static Duration SilenceLimit(const Stream& stream);
  // request_body.cc: whether a request was read to its end by then.
  static bool BodyIsHere(const Stream& stream, Time then);
  // The time until then, or until it is `lead` from now, if that is later.
  static Duration UntilBodyIsHere(const Stream& stream, Duration lead);
  // Of an answer of the proxy's own when a request, or its answer, took too long.
  static uint16_t TimeoutCode(const Stream& stream);
  void LimitRequest(StreamId id, Duration lead);
  // An answer goes out before the request was read to its end.
  static void AnswerEarly(Stream& stream);
  std::optional<uint64_t> HashOfRequest(Stream* stream);
  // Why a connection that ended amid an answer has failed its request.
  static ResetReason CutOff(const Stream& stream, ResetReason reason);
  // An upstream ends a CONNECT that its client has not ended.
  static void CountEndOfConnect(const Stream& stream);
  static ResetReason ResetBy(const Stream& stream, const Reply& reply);
  // Of a question of a filter's in gRPC, over HTTP/1.1.
  static bool IsNoGrpc(const Stream& stream, const Reply& reply);
  void Failed(StreamId id, ResetReason reason, const TransportFailure& failure, Duration lead);
  // Nobody tries again; `raw`: the transport failure.
  void TellFailure(StreamId id, ResetReason reason, const std::string& raw, Duration lead);
  // `failed`: what the try came to; kept if there is another.
  // `reset`: when the upstream says that it will answer again; nothing: it does not say.
  bool MaybeRetry(StreamId id, FailedTry failed, Duration lead, std::optional<Duration> reset = std::nullopt);
  static std::optional<Duration> ResetInterval(const Stream& stream, const Reply& reply);
  static void NotePriority(Stream* stream);
  // The priorities that a further try leaves out; null: none.
  static const std::vector<bool>* PrioritiesLeftOut(Stream* stream);
  // Whether a try is left and the retry budget has room.
  bool MayRetry(const Stream& stream) const;
  static void CountCode(const Stream& stream, uint16_t code);
  void OnTimeout(StreamId id);
  void OnPerTryTimeout(StreamId id, ClusterStat stat, std::string_view details);
  // A try may be silent for so long.
  void LimitPerTryIdle(StreamId id, Duration after);
  void OnUpstreamDuration(StreamId id);
  // hedging.cc. The present try, which is to be followed by another, took too long.
  void OnSoftTimeout(StreamId id);
  // The present try goes on as a stream of its own.
  void SetAside(StreamId id);
  // What is known of a try, and its place at the upstream, become another stream's.
  void MoveTry(StreamId from, StreamId to);
  // An earlier try answers in the place of all others. Returns the request's stream.
  StreamId Prefer(StreamId earlier);
  // An earlier try has ended.
  void Forget(StreamId earlier);
  // All others than the present one end.
  void EndEarlier(Stream& stream);
  // Whether another try than this one may still answer, or is to come.
  bool OthersAwait(const Stream& stream) const;

  // Takes the stream off its try: pool, connection, counters.
  // `by_server`: it was the upstream that broke it off.
  void EndTry(Stream& stream, StreamId id, bool reset, bool by_server = false);
  void Local(StreamId id, const LocalReply& local, Duration lead);
  void Local(StreamId id, uint16_t code, ResponseFlags flags, std::string_view details, std::string_view body,
             Duration lead, std::string_view headers = {}, uint16_t grpc_status = kNoGrpcStatus) {
    Local(id, LocalReply{code, flags, details, body, headers, grpc_status}, lead);
  }
  void Finish(StreamId id, const Reply& reply, std::string_view details, Duration lead);
  // What is told of a request that is answered so, but for its tries that failed.
  RequestRecord RecordOf(const Stream& stream, const Reply& reply, std::string_view details, Duration lead) const;
  // What the client's own proxy traces.
  void Trace(const Stream& stream, const RequestRecord& record) const;
  // access_log_entries.cc: the lines of a request that ends `lead` from now.
  void WriteLogs(const Stream& stream, const RequestRecord& record, Duration lead);
  void FillLogEntry(const Stream& stream, const RequestRecord& record, Duration lead, ShownInLog* shown,
                    AccessLogEntry* entry) const;
  // The same for Istio's metrics. `peer`: who answered, if it said so.
  void Measure(const Stream& stream, const RequestRecord& record, const PeerInfo* peer, uint16_t grpc_status,
               Duration lead);
  void Mirror(const Stream& stream);
  bool Retriable(const Stream& stream, const Reply& reply) const;
  bool Retriable(const Stream& stream, ResetReason reason) const;

  // Requests that say which try they are, remembered: routing decisions are, by their ids.
  struct Attempt {
    uint64_t of = 0, key = 0;
    const VirtualHost* host = nullptr;
    std::shared_ptr<const RequestSpec> spec;
  };
  static constexpr size_t kAttempts = 64;
  // Requests as connection managers pass them on, likewise.
  struct Arrived {
    uint64_t of = 0, key = 0;
    std::shared_ptr<const HttpConnectionManager> manager;  // kept, so that its address is nobody else's
    std::shared_ptr<const RequestSpec> spec;               // null: as it came
  };
  static constexpr size_t kArrivals = 256;

  DataPlane& plane_;
  std::vector<Attempt> attempts_;
  std::vector<Arrived> arrivals_;
  Slab<Stream, StreamId> streams_;
};

}  // namespace wavetank::envoysim
