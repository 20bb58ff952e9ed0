// What a run of a scenario found out. Plain values: reports turn them into tables, pages and files.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "sim/invariants/invariant.h"

namespace wavetank::scenario {

// The way of a change from the API server to the data plane.
enum class Stage : uint8_t {
  kKubernetes,  // the event -> the last object that follows from it written (pods start, slices, addresses)
  kWatch,       // written at the API server -> seen by istiod's informer
  kQueue,       // -> handled by istiod's registries, pushed into the debouncer
  kDebounce,    // -> merged request left the debouncer
  kPushQueue,   // push context built, waiting for this proxy's turn
  kGeneration,  // -> generated and handed to the stream
  kNetwork,     // -> received by the proxy
  kApply,       // -> in force (warm) at the proxy
};
inline constexpr int kStages = 8;
std::string_view StageName(Stage stage);  // "API server watch", "istiod queue", ...

struct ProxyConvergence {
  std::string proxy;
  Duration total{};  // event -> the last of its resources in force
  std::array<Duration, kStages> stages{};
  int responses = 0;
};

struct Convergence {
  Time event{};                           // when the step's first action happened
  std::vector<ProxyConvergence> proxies;  // that were pushed to because of it, slowest first
  int connected = 0;                      // proxies connected at the time; negative: nothing of this was measured
  Duration Total() const { return proxies.empty() ? Duration::zero() : proxies.front().total; }
};

// Requests of one flow in one phase of a step.
struct TrafficResult {
  std::string flow;
  bool meanwhile = false;
  Time start{}, end{};
  int64_t sent = 0, failed = 0, retried = 0;                      // failed: those without an answer too
  int64_t attempts = 0;                                           // upstream tries of all requests together
  int64_t without_client = 0;                                     // no pod of the client ran to send them
  std::string client;                                             // "app sleep of sample in cluster1"
  std::map<std::string, int64_t> by_version, by_cluster, by_pod;  // of answered requests
  std::map<std::string, int64_t> by_flags;                        // "URX,UF"; "-" for none
  std::map<int, int64_t> by_code;
  // Requests answered by a pod of the other network or cluster, and gateway hops counted per request.
  int64_t remote = 0;
  std::map<int, int64_t> remote_hops, local_hops;  // number of gateway hops -> requests
  std::map<std::string, int64_t> gateway_snis;
  // Ways of answered requests: the gateways passed, as traces name their proxies, and last the pod that answered.
  std::map<std::vector<std::string>, int64_t> ways;
  int64_t client_attempts = 0;  // of the clients themselves: as many as were sent, and their own retries
  int64_t mtls_verified = 0;    // both sides verified at the far pod
  Duration p50{}, p99{}, max{};
  // Per bucket of time since `start`.
  Duration bucket{};
  struct Bucket {
    std::map<std::string, int64_t> by_version;
    int64_t failed = 0, retried = 0;
    Duration p50{}, p99{};  // of what ended in it
  };
  std::vector<Bucket> series;
  // What failed and why, most frequent first.
  struct Failure {
    bool retried = false;  // a try that another one followed; else the end of a request
    int code = 0;          // of the failed try; 0: no HTTP answer
    std::string flags;     // "UF,URX"; "-" for none
    std::string upstream;  // whose address it went to; empty: to none
    std::string cause;     // in words
    int64_t count = 0;
    Time first{}, last{};
  };
  std::vector<Failure> failures;
  // Tries by the upstream that they went to, as the client's proxy chose it.
  struct Upstream {
    int64_t tries = 0, failed = 0;
    std::string cluster, pod;  // whose address it is; of a gateway's load balancer: its cluster alone
  };
  std::map<std::string, Upstream> upstreams;
  // What ended in each second, counted from the step's event (before it: negative). Only of steps that expect
  // something always or eventually.
  struct Second {
    int64_t sent = 0, failed = 0, retried = 0;
    std::map<std::string, int64_t> by_version, by_cluster, by_pod;
    std::vector<int64_t> latencies_ns;
  };
  std::map<int64_t, Second> seconds;
};

struct ExpectationResult {
  std::string text;
  bool held = false;
  std::string explanation;  // what was found, why it holds or not
  int line = 0;
  bool symptom = false;  // Expectation::symptom
};

// Responses that one Envoy refused with the same words.
struct Nack {
  std::string proxy;  // a name to ask with: "sleep@cluster1" (pod_names.h)
  std::string type;   // "LDS"
  std::string text;   // Envoy's words
  Duration first{};   // since the world's beginning
  int64_t count = 0;
};

// Configuration that Envoys accepted and that has no effect in the simulation.
struct WithoutEffect {
  std::string kind, type;            // "HTTP filter", "envoy.extensions.filters.http.wasm.v3.Wasm"
  std::vector<std::string> proxies;  // that hold or held it, sorted
};

// The name of a step's result that stands for no step: requests of the log that a run goes on from, and of inputs.
inline constexpr const char* kTrafficOfLog = "traffic of the log";

struct StepResult {
  std::string name;
  std::vector<std::string> actions;
  Time start{}, end{};
  Convergence convergence;
  std::vector<TrafficResult> traffic;
  // Of applications to other services, by who calls whom: "frontend@cluster1 calls backend.sample:5000".
  std::vector<TrafficResult> calls;
  std::vector<ExpectationResult> expectations;
  std::vector<std::string> notes;
  std::vector<std::string> watched;        // invariants
  std::vector<sim::Violation> violations;  // of those; they began in it, or were there when it began
  // Hosts that outlier detection kept out when traffic had ended, by the clients' proxies.
  struct Ejected {
    std::string proxy, cluster, host;
    bool operator==(const Ejected&) const = default;
  };
  std::vector<Ejected> ejected;
  std::vector<Nack> nacks;  // since the step before had ended, or the world's beginning
  // Not empty: the run ended in the middle of it, and so many expectations were not judged.
  std::string cut;
  size_t not_judged = 0;
};

struct TopologyNode {
  std::string id, label, kind;  // kind: cluster, network, istiod, gateway, service, workload
  std::string cluster;
};
struct TopologyEdge {
  std::string from, to, label;
  std::string kind = "calls";     // calls, watches, serves
  int64_t tries = 0, failed = 0;  // of calls: tries over it, and those that failed
};

// A way that is dead while others still answer: every try to an upstream failed.
struct DeadPath {
  std::string flow, step, upstream, cause;
  bool meanwhile = false;
  int64_t tries = 0, retried = 0, failed = 0, sent = 0;  // retried, failed: requests of the flow in that phase
  Time since{};
};

// A flow that nobody sent in the whole run, since no pod of its client ran.
struct SilentFlow {
  std::string flow, client;
  int64_t sent = 0;  // that were to be
};

struct RunResult {
  std::string scenario, file, description, profile, version;
  uint64_t seed = 0;
  std::string digest;
  Time end{};
  int64_t trace_records = 0;
  std::vector<StepResult> steps;
  std::vector<TopologyNode> nodes;
  std::vector<TopologyEdge> edges;
  std::vector<std::string> notes;  // about the run as a whole
  // Responses that istiods sent, by second since the world's beginning.
  std::map<int64_t, int64_t> pushes;
  std::vector<Nack> nacks;  // of the whole run, in order of their first time
  // Of them, those in no step: nothing expects them.
  int64_t nacks_between = 0;
  std::vector<WithoutEffect> without_effect;
  std::vector<std::string> mended;   // what was done for the mesh (sim/mending/mending.h)
  std::vector<std::string> unready;  // proxies that were never ready, and why; fails the run
  // Those that were watched for the whole run, and what broke them, in the order of time.
  std::vector<std::string> invariants;
  std::vector<sim::Violation> violations;
  std::string error;  // RunOptions::partial: why it ended early; empty: it did not
  bool interrupted = false;
  std::optional<bool> shown_expected;  // of an incident whose head names this profile
  // Every symptom held, and there was one.
  bool Shown() const;
  // What is expected holds, symptoms are there or not as the incident's head says, no invariant was broken but those
  // that the simulated release is known to break, and every flow had a client at some time.
  bool Passed() const;
};

// A world's clock may be the calendar's (a served one's, or a scenario's date); people count from its beginning.
RunResult SinceBeginning(RunResult result, Duration beginning);

// The dead paths of a run, worst first: fewer tries than kEnoughTries say nothing.
inline constexpr int64_t kEnoughTries = 5;
std::vector<DeadPath> DeadPaths(const RunResult& result);

// In order of the flows' names.
std::vector<SilentFlow> SilentFlows(const RunResult& result);

}  // namespace wavetank::scenario
