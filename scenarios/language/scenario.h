// A scenario as values: a world, a timeline of waves, the traffic meanwhile, and what must be true. It is read from
// YAML by scenarios/reader/; scenarios/README.md is the manual, scenarios/scenario.schema.json the schema for editors.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "nlohmann/json.hpp"
#include "scenarios/language/range.h"
#include "sim/apps/app_tls.h"
#include "sim/mending/mending.h"
#include "sim/world_options.h"

namespace wavetank::scenario {

struct NodeSpec {
  std::string name, region, zone;
  std::string external_ip;  // empty: none
};

// Manifests as `kubectl apply -f path -n ns -l selector` would take them.
struct ManifestSpec {
  std::string path;                  // file or directory, resolved against the scenario's folder
  std::string ns;                    // for objects that name none; empty: "default"
  std::string selector;              // label selector; empty: everything
  nlohmann::json objects = nullptr;  // instead of a path: the objects themselves
  // Of the scenario, where it stands; empty: in none.
  std::string file = {};
  int line = 0;
  // PATH=VALUE as of `istioctl install --set`: laid over each IstioOperator of the path. Without path and objects, over
  // the default profile.
  std::vector<std::string> set = {};
  // What no API server has a match for is left out, as one would leave it, and not refused: who asks for this tells it.
  bool unmatched_left_out = false;
  bool OfNoFile() const { return path.empty() && objects.is_null(); }
};

struct ClusterSpec {
  std::string name;             // the API server's name and the cluster ID
  std::string network;          // the network its pods are attached to in the modelled world
  bool network_untold = false;  // nobody says which, and it is network1
  // The cluster whose istiod serves this one's proxies; its own name for a primary.
  std::string control_plane;
  // What its installation says where that is wrong or otherwise; empty: as `name` and `network`.
  std::string installed_name, installed_network;
  std::string pod_cidr, service_cidr, load_balancer_cidr;
  std::string network_policies;         // "enforced", "strict" or "ignored"; empty: as its network plugin does
  bool load_balancer_hostname = false;  // the cloud gives host names instead of addresses
  std::vector<NodeSpec> nodes;
  bool nodes_untold = false;  // one was made up, and others come as pods ask for them
  std::vector<ManifestSpec> manifests;
  bool primary() const { return control_plane == name; }
};

// The line between two clusters' sites, whether or not their pods share a network; [a, a] is the inside of one site.
struct LinkSpec {
  std::string a, b;
  Duration latency = 1ms, jitter = 0ms;
  int64_t loss_ppm = 0;
};

// What lies under the clusters' networks (sim/network/underlay.h).
struct PhysicalSpec {
  std::vector<sim::WorldPlace> sites;
  std::vector<sim::WorldRoute> routes;
  std::vector<sim::WorldFirewall> firewalls;
  std::vector<sim::WorldNat> nat;
};

struct RemoteSecretSpec {
  std::string of, in;
};

// Who signs tokens (JWT). Its key derives from the seed; istiods find its public half at `jwks_uri`, or by discovery.
struct IssuerSpec {
  std::string name, jwks_uri;
};

// A token that requests bring, signed when their traffic starts.
struct TokenSpec {
  std::string issuer, subject;
  std::vector<std::string> audiences;
  nlohmann::json claims;  // further ones
  Duration expires = 1h;  // from then; negative: it has
  std::optional<Duration> not_before;
  std::string signed_by;      // another issuer, with whose key it is signed
  std::string header, param;  // where it stands; neither: Authorization, after "Bearer "
};

enum class CaPlan : uint8_t { kCommonRoot, kOwnRoots, kSelfSigned };

struct FlowSpec {
  std::string name;
  std::string from_cluster, from_namespace, from_app;
  std::string host;  // as the application writes it: "helloworld.sample"
  int port = 80;
  std::string path = "/", method = "GET";
  std::map<std::string, std::string> headers, trailers;  // by name, in lower case
  std::optional<TokenSpec> token;
  int64_t body_bytes = 0, body_pieces = 0;  // sim::TrafficSpec
  Duration body_over{};
  bool keep_alive = false;            // one connection for all requests, else a new one each
  bool tcp = false;                   // bytes instead of HTTP
  std::string http;                   // "http1.0", "http2", "grpc", "websocket"; empty: HTTP/1.1
  std::optional<sim::ClientTls> tls;  // nothing: in plain text
  int64_t rate_per_kilosecond = 100'000;
  // Not zero: the rate becomes this one, evenly, within `ramp` from the traffic's start.
  Duration ramp{};
  int64_t ramp_to_per_kilosecond = 0;
  bool poisson = false;  // TrafficSpec
  int64_t users = 0;     // not 0: a closed loop; of TCP and WebSocket with kept connections: so many streams
  Duration think{};
  Duration timeout{};      // the client's patience with an attempt; zero: none
  nlohmann::json retries;  // as the row of that name; null: none
};

struct Traffic {
  std::string flow;
  int64_t requests = 0;             // 0: as long as the step lasts
  int64_t rate_per_kilosecond = 0;  // 0: the flow's own
};

// One action of a step; `kind` names its row (scenarios/actions/action.h), `arguments` are its fields, already checked.
struct Action {
  std::string kind;
  nlohmann::json arguments;
  int line = 0;
};

struct Expectation {
  std::string kind;   // its row (scenarios/expectations/expectation.h)
  std::string mode;   // "", "always", "eventually"
  Duration within{};  // eventually
  std::string flow;   // empty: every flow of the step
  std::string call;   // not empty: calls of applications to it, "backend.sample:5000", instead of flows
  // Which traffic is judged: that after the wave, that of the wave itself, or all of the step.
  enum class Phase : uint8_t { kThen, kMeanwhile, kAll };
  Phase phase = Phase::kThen;
  bool symptom = false;  // of an incident: it holds where the incident is shown, and elsewhere not
  // split
  std::string by = "version";
  std::map<std::string, int64_t> shares_ppm;
  int64_t confidence_ppm = 999'000;
  // requests, converged, hops, endpoints: a range on a named quantity
  std::map<std::string, Range> ranges;
  std::vector<std::string> names;  // flags allowed, endpoint addresses
  std::string cluster, app, ns, host, sni;
  std::string type, says;  // nacks: of which responses, with which words
  int port = 0;
  std::string text;  // as written, for the report
  int line = 0;
};

struct Step {
  std::string name;
  std::optional<Duration> at;  // since the start of the timeline, or since `at_step` began
  std::string at_step;         // an earlier step's name
  Duration after{};            // since the previous step had converged
  // Not 0: the actions are done one at a time and in turn, so many in all, one every so often.
  int64_t repeat = 0;
  Duration every{};
  std::vector<Action> actions;
  std::vector<Traffic> meanwhile, then;
  Duration linger = 1s;  // how long the meanwhile traffic goes on after convergence
  // How long it may take to settle; the scenario's own if left out. Zero: what follows does not wait for it.
  std::optional<Duration> settle;
  std::vector<Expectation> expectations;
  int line = 0;
};

// The name that results give to what Scenario::throughout has sent.
inline constexpr const char* kThroughout = "throughout";

// What was reported in public, and which releases show it: the head of a story of scenarios/incidents/.
struct Incident {
  std::vector<std::string> issues;  // addresses; empty: read in istiod's source, nowhere reported
  std::string reported, symptom, cause, see, remark;
  std::map<std::string, bool> shown;  // by profile
};

struct Scenario {
  std::string file, name, description;
  std::vector<std::string> settings;  // what was put in place of what the file says, as `--set` takes it
  uint64_t seed = 1;
  std::string profile = "istio-1.18";
  CaPlan ca = CaPlan::kCommonRoot;
  bool ca_said = false;
  sim::Mending mending;      // what of a mesh's gaps is filled in
  bool unready = false;      // proxies may stay unready: that is what it shows
  std::optional<Time> date;  // where its clock begins; the world's own if left out
  std::vector<ClusterSpec> clusters;
  bool of_log = false;  // an event log brings the clusters, and what lies under them
  // What the file says of the mesh, by its keys ("links", "clusters' manifests"), and an event log says instead.
  std::vector<std::string> left_to_log;
  std::vector<LinkSpec> links;
  PhysicalSpec physical;
  std::vector<RemoteSecretSpec> remote_secrets;
  std::vector<nlohmann::json> key_sets;  // as the action keySet has them
  std::vector<IssuerSpec> issuers;
  std::map<std::string, std::string> timing;  // overrides of sim/timing.h, by name
  nlohmann::json mesh_config;                 // of every istiod, unless a manifest's ConfigMap says otherwise
  std::vector<FlowSpec> flows;
  // Traffic that goes on from when the mesh is up until the last step has ended, and what must be true of it. It has no
  // actions; its traffic is `meanwhile`.
  std::optional<Step> throughout;
  std::vector<Step> steps;
  std::optional<Incident> incident;
  Duration settle = 10min;  // how long a wave may take to settle before the run goes on and says what is not settled

  const FlowSpec* FindFlow(std::string_view name) const;
  const ClusterSpec* FindCluster(std::string_view name) const;
  std::vector<std::string> StepNames() const;
};

}  // namespace wavetank::scenario
