// What evidence of a real mesh says: inputs that must have happened, claims about what followed, and what could not be
// read. Every reader of a source fills one of these; what is made of it knows no source's format.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wavetank::importing {

// Nanoseconds since 1970 in UTC: the calendar's clock, as sources write it. No world's time.
using WallNs = int64_t;
inline constexpr WallNs kNoTime = INT64_MIN;

// A line of a file, for a person who wants to see it. Line 0: none in particular.
struct Place {
  std::string file;
  uint64_t line = 0;
};
std::string Text(const Place& place);  // "istiod.log:17"

// What changed the mesh from outside, as far as a line tells.
enum class InputKind : uint8_t {
  kIstiodStarted,       // name: the pod, if told; cluster: its own; detail: version
  kRemoteSecret,        // namespace, name; clusters
  kSecret,              // namespace, name: one that is no remote Secret
  kService,             // host, namespace; change: "added", "removed", "changed" or empty
  kEndpoints,           // host, namespace; cluster if told; change: "toZero", "first", "serviceAccounts" or empty
  kGateway,             // a Service that is an east-west gateway; host if told
  kGatewayDns,          // the host name of a gateway resolves to something else
  kNode,                // of a NodePort gateway
  kNetwork,             // a cluster's system namespace got another label of its network
  kMeshNetworks,        // detail: as printed, JSON; change: "refused" where istiod could not read it
  kMeshConfig,          // as kMeshNetworks
  kConfig,              // object_kind, namespace, name
  kDns,                 // host: what could not be resolved
  kClusterUnreachable,  // cluster: it did not sync in time
  kProxyConnected,      // name, namespace
  kProxyDisconnected,   // name, namespace; detail: why
  kProxyRefused,        // by the rate limit; detail: its address
  kTraffic,             // cluster, namespace, name: the client; host; extra: port, requests, periodNs, method, path
  kBehaviour,           // cluster, namespace, name: an app's pods ("@ADDRESS": that one); extra: answers, latency
};
std::string_view NameOf(InputKind kind);

struct InferredInput {
  InputKind kind{};
  // The best guess, and between what instants it lies for certain.
  WallNs at = 0, earliest = 0, latest = 0;
  // It was there when the evidence began: the mesh's first picture, no change.
  bool initial = false;
  std::string replica;
  std::string cluster, ns, name, host, object_kind, change, detail;
  std::string extra;  // what this kind has besides: a JSON object
  // Of a remote Secret: each cluster that it names and what became of it ("added", "updated", "removed", "unchanged",
  // "failed", "ownCluster", "duplicate"), in the order of the lines.
  std::vector<std::pair<std::string, std::string>> clusters;
  Place place;
  std::vector<Place> also;           // the same, as other replicas saw it
  std::vector<std::string> also_of;  // those replicas
};

// Whether an istiod sees it in its own cluster alone: configuration, remote Secrets, mesh-wide settings. Services and
// credentials each istiod sees that reads their cluster (istiod: pilot/pkg/bootstrap/configcontroller.go,
// pkg/kube/multicluster/secretcontroller.go, pilot/pkg/credentials/kube/multicluster.go).
bool ReadFromOwnClusterAlone(const InferredInput& input);

// Whether it is a Service's, of whatever namespace and domain: no ServiceEntry's.
bool IsKubernetesHost(std::string_view host);

// What access logs tell: requests, and what applications made of them.
bool IsTraffic(const InferredInput& input);

// What the sources say followed: the material that a replay is judged by.
enum class ClaimKind : uint8_t {
  kPush,            // the debouncer let a merged request go
  kNack,            // name: proxy; type; detail: the message
  kClusters,        // count: remote clusters known
  kClusterSynced,   // name: cluster
  kGatewayReload,   // the network gateways were read anew
  kProxyConnected,  // name: proxy
  kProxyLost,       // name: proxy; detail
  kHeld,            // name: proxy; type: its cluster; count: endpoints; extra: endpoints by upstream
  kTraffic,         // name: client; extra: host, port, requests, codes, flags, upstreams, p50Ms, p99Ms
  kMetric,          // name; type: cluster; extra: labels, counter, value, and those of the scrapes before and after
  kEvent,           // name: "Pod/sample/web-1"; type: cluster; detail: message; extra: reason, component, count
  kRequests,        // name: client's workload; type: its cluster; extra: service, requests, codes, flags, spanNs
};
std::string_view NameOf(ClaimKind kind);

struct Claim {
  ClaimKind kind{};
  WallNs at = 0;
  std::string replica;
  Place place;
  std::string name, type, detail;
  // Of a push: the burst of events that it merges, and what it was for. `config`: one of its keys, chosen by chance;
  // empty: everything, and `reason` is the first one's.
  WallNs first_event = 0, last_event = 0;
  int64_t events = 0, more = 0;
  bool full = false, initial = false;
  std::string config, reason, version;
  int64_t services = -1, connected = -1;  // -1: not told
  // How many proxies were sent something of each type, from this push on until the next.
  std::map<std::string, int64_t> sent;
  int64_t count = 0;
  std::string extra;  // what this kind has besides: a JSON object
};

// Of one stretch of one istiod's log.
struct IstiodRun {
  std::string replica, version, cluster, pod;
  WallNs from = kNoTime, to = kNoTime;
  uint64_t lines = 0;
  bool gateways_at_start = false;                         // it found network gateways before it was ready
  std::set<std::pair<std::string, std::string>> proxies;  // namespace and name: that something was sent to
};

// What was left out, by reason: how often, and where first.
class Refusals {
 public:
  void Add(std::string_view reason, Place place, std::string_view detail = {});
  struct Reason {
    uint64_t count = 0;
    std::vector<std::pair<Place, std::string>> first;  // some
  };
  const std::map<std::string, Reason, std::less<>>& reasons() const { return reasons_; }
  bool empty() const { return reasons_.empty(); }

 private:
  std::map<std::string, Reason, std::less<>> reasons_;
};

// Of one istiod's process: from when on it starts, and when it is ready.
struct IstiodStart {
  std::string replica;
  WallNs from = 0, ready = 0;
};

struct Evidence {
  std::vector<InferredInput> inputs;
  std::vector<Claim> claims;
  std::vector<IstiodRun> runs;
  std::vector<IstiodStart> starts;
  Refusals refusals;
  std::vector<std::string> notes;
  uint64_t bytes = 0, files = 0;
};

// What an istiod's log tells while it starts was there before: also where the line that says that it is ready stands in
// another file than what was told (a rotation), or no line tells of the process's beginning (`--tail`).
void MarkWhatWasThere(Evidence& evidence);

// "2026-11-21T02:49:47.983729Z". Digits below microseconds are left out if they are zero.
std::string FormatWall(WallNs at);
// RFC 3339 with any number of digits of a second, Z or an offset. kNoTime if it is none. O(text).
WallNs ParseWall(std::string_view text);
// The whole text as a decimal number. False: it is none, or too large.
bool ReadInteger(std::string_view text, int64_t& out);
// Go's durations: "1m2.5s", "100.2ms", "20.891µs". -1 if it is none.
int64_t ParseGoDuration(std::string_view text);

}  // namespace wavetank::importing
