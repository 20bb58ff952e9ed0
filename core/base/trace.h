// Derived events, as values. The trace is what a run is compared by: its records, in order, are hashed into the run's
// digest.
#pragma once

#include <cstdint>
#include <string_view>

namespace wavetank {

// A set of inputs of the event log, interned by the host. kNoCause is the empty set.
enum class CauseId : uint32_t {};
inline constexpr CauseId kNoCause{0};

// An interned name: a proxy, a cluster, an object, a host name.
enum class NameId : uint32_t {};
inline constexpr NameId kNoName{0};

// What happened. `subject` is what it happened to, `object` what it was about, `a` and `b` are given beside each kind.
// Append only: numbers are stored in event logs.
enum class TraceKind : uint16_t {
  kNone = 0,

  // fakes/kube. subject: cluster, object: "Kind/namespace/name".
  kObjectApplied = 100,   // a: resourceVersion
  kObjectDeleted = 101,   // a: resourceVersion
  kWatchDelivered = 102,  // to a watcher; subject: watcher; a: resourceVersion; b: latency in ns

  // core: registries and secrets. subject: istiod.
  kRegistryEvent = 200,    // object: "Kind/namespace/name" as handled by the registry queue
  kClusterAdded = 201,     // object: cluster
  kClusterRemoved = 202,   // object: cluster
  kClusterSynced = 203,    // object: cluster
  kClusterRejected = 204,  // object: secret; detail: reason
  kGatewaysChanged = 205,  // a: number of gateways
  kMeshConfigChanged = 206,

  // core: pushing. subject: istiod unless said otherwise.
  kConfigUpdate = 300,      // an event entered the debouncer; object: first config key; a: 1 if full
  kDebounced = 301,         // a merged request left the debouncer; a: number of events; b: 1 if full
  kPushContextReady = 302,  // a: push number
  kPushQueued = 303,        // subject: proxy
  kPushDequeued = 304,      // subject: proxy; a: ns spent in the queue
  kPushSkipped = 305,       // subject: proxy
  kPushDone = 306,          // subject: proxy; all responses of one push event were handed to the stream

  // xDS. subject: proxy, object: type ("CDS", "EDS", ...).
  kXdsSent = 400,      // a: number of resources; b: bytes
  kXdsReceived = 401,  // at the proxy; a: resources
  kXdsApplied = 402,   // the Envoy uses it from now on (warm); a: resources
  kXdsAck = 403,
  kXdsNack = 404,  // detail: message
  kXdsConnected = 405,
  kXdsDisconnected = 406,  // detail: reason
  kXdsRejected = 407,      // connection refused by the rate limit

  // security. subject: istiod or proxy.
  kCertificateSigned = 500,  // object: SPIFFE identity; a: serial; b: validity in ns
  kSecretPushed = 501,
  kPodInjected = 502,  // object: pod; detail: "injected" or why not

  // data plane. subject: client proxy.
  kRequest = 600,     // object: destination host; a: response code; b: latency in ns; detail: flags|upstream pod|...
  kConnection = 601,  // one hop; object: upstream address; a: 1 if reused
  kHandshake = 602,   // object: peer identity; a: 1 if verified; detail: SNI|ALPN|error
  kGatewayHop = 603,  // subject: gateway; object: SNI

  // network and faults. subject: link or network.
  kFaultStarted = 700,  // a line is cut
  kFaultEnded = 701,    // a line carries segments again, or has another latency, jitter or loss

  // Of tests, which want a record without a world around it: no run writes these. Their numbers stay taken.
  kStep = 800,
  kConverged = 801,
  kExpectation = 802,  // a: 1 if held
};

struct TraceRecord {
  TraceKind kind = TraceKind::kNone;
  NameId subject = kNoName;
  NameId object = kNoName;
  int64_t a = 0;
  int64_t b = 0;
  std::string_view detail = {};  // valid during Host::Emit only; never a key, token or Secret's data
};

}  // namespace wavetank
