#include "scenarios/reader/mappings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "scenarios/actions/action.h"
#include "scenarios/expectations/expectation.h"

namespace wavetank::scenario {
namespace {

using enum FieldType;

// Owns the names of rows that are put together ("action.scale"); rows themselves live as long as the program.
std::string_view Kept(std::string text) { return *new std::string(std::move(text)); }

FieldRow AtLeast(int64_t low, FieldRow field) {
  field.low = low;
  return field;
}

void AddMesh(std::vector<MappingRow>& all) {
  all.push_back({"scenario",
                 "A Wavetank scenario",
                 {row::Text("name", "Name; the file's, or of scenario.yaml its folder's, if left out"),
                  row::Text("description", "What the scenario is about"),
                  row::Text("extends",
                            "Another scenario, file or folder: what this one leaves out, but for steps and throughout"),
                  row::Mapping("incident", "incident", "What was reported in public, for the library of incidents"),
                  row::Other("settle", kDuration, "How long a wave may take to settle; 10m if left out"),
                  row::Integer("seed", 0, INT64_MAX, "Seed of every random draw; 1 if left out"),
                  row::Text("profile", "Behaviour profile (`wavetank profiles`); istio-1.18 if left out"),
                  row::Choice("ca", {"common-root", "own-roots", "self-signed"},
                              "cacerts Secrets under one root, under a root each, or none"),
                  row::Text("mend", "What of the mesh's gaps is filled in: all, none, or names (docs/mending.md)"),
                  row::Other("unready", kFlag, "Proxies may stay unready; a run fails otherwise"),
                  row::Text("date", "Where its clock begins, 2026-11-23 or 2026-11-23T10:00:00Z"),
                  AtLeast(1, row::Mappings("clusters", "cluster", "")),
                  row::Mappings("links", "link", ""),
                  row::Mapping("physical", "physical", "What lies under the networks; Istio knows nothing of it"),
                  row::Mappings("remoteSecrets", "remoteSecret", ""),
                  row::Mappings("keySets", "action.keySet", "What istiods find at jwksUris from the start"),
                  row::Mappings("issuers", "issuer", "Issuers of tokens (JWT)"),
                  row::Other("timing", kTextMap, "Overrides of `wavetank timing`"),
                  row::Other("meshConfig", kObject, "MeshConfig of every istiod"),
                  row::Mappings("flows", "flow", ""),
                  row::Mapping("throughout", "throughout", "Traffic that goes on beside all steps"),
                  row::Mappings("steps", "step", "")}});
  all.push_back(
      {"cluster",
       "A Kubernetes cluster",
       {row::Text("name", "The API server's name and the cluster ID").Required(),
        row::Text("network", "The network its pods are attached to; network1 if left out"),
        row::Text("controlPlane", "The cluster whose istiod serves this one's proxies; its own if left out"),
        row::Mapping("installed", "installed", "What its installation says; its name and network if left out"),
        row::Text("pods", "CIDR of pod addresses, or one of each IP family"),
        row::Text("services", "CIDR of cluster VIPs, or one of each IP family"),
        row::Text("loadBalancers", "CIDR of load balancer addresses"),
        row::Text("networkPolicies",
                  "enforced (new connections), strict (those that stand, too) or ignored; left out: as the network "
                  "plugin among the manifests does, else enforced"),
        row::Other("loadBalancerHostnames", kFlag, "Load balancers get host names instead of addresses"),
        row::Mappings("nodes", "node", "One node in region1/zone1 if left out"),
        row::Other("manifests", kManifests, "Files or folders, relative to the scenario")}});
  all.push_back({"installed",
                 "Helm values of an installation that says otherwise than the cluster is",
                 {row::Text("clusterName", "global.multiCluster.clusterName, its istiod's CLUSTER_ID"),
                  row::Text("network", "global.network; `none`: it names none")}});
  all.push_back({"manifest",
                 "As kubectl apply -f path -n namespace -l selector",
                 {row::Text("path", "File or folder, relative to the scenario"),
                  row::Other("objects", kObjects, "The objects themselves, instead of a path"),
                  row::Other("install", FieldType::kTexts,
                             "PATH=VALUE as of `istioctl install --set`, of no file, rendered by the user's istioctl"),
                  row::Other("set", FieldType::kTexts, "As much, laid over the IstioOperator in `path`"),
                  row::Text("namespace", "For objects that name none"),
                  row::Text("selector", "Label selector; everything if left out")},
                 {"path", "objects", "install"}});
  all.push_back({"node",
                 "A node",
                 {row::Text("name", "Name").Required(), row::Text("region", "topology.kubernetes.io/region"),
                  row::Text("zone", "topology.kubernetes.io/zone"),
                  row::Text("externalIP", "The address at which it is reached from elsewhere; none if left out")}});
  FieldRow between =
      row::Other("between", kClusters, "Two clusters, or one twice for the inside of its site").Required();
  between.low = between.high = 2;
  all.push_back(
      {"link",
       "The line between two clusters' sites",
       {std::move(between), row::Other("latency", kDuration, "One way"),
        row::Other("jitter", kDuration, "Added, uniform"), row::Other("loss", kShare, "Lost segments (50% or 0.5)")}});
  all.push_back({"remoteSecret",
                 "A remote Secret that is there from the start",
                 {row::Cluster("of", "The cluster that the Secret gives access to").Required(),
                  row::Cluster("in", "The cluster whose istiod reads it").Required()}});
  all.push_back({"issuer",
                 "An issuer of tokens (JWT), with a key that derives from the seed",
                 {row::Text("name", "The claim iss of its tokens").Required(),
                  row::Text("jwksUri", "Where istiod finds its keys; found by the issuer's name if left out")}});
}

void AddPhysical(std::vector<MappingRow>& all) {
  all.push_back({"physical",
                 "Sites, routes, firewalls and NAT under the networks",
                 {row::Mappings("sites", "physical.site", "Pods of one site reach each other by address"),
                  row::Mappings("routes", "physical.route", "To pods' and private addresses of other sites"),
                  row::Mappings("firewalls", "action.firewall", "In order; the first that fits decides"),
                  row::Mappings("nat", "physical.nat", "Translation of addresses at a site's border")}});
  all.push_back({"physical.site",
                 "A physical network; clusters that none names stand in one of their network's name",
                 {row::Text("name", "Name").Required(),
                  row::Other("clusters", kClusters, "Whose pods, nodes and load balancers are attached to it"),
                  row::Other("private", kTexts, "Ranges of load balancers that are known within the site alone")}});
  FieldRow between = row::Other("between", kTexts, "Two sites, in both directions");
  between.low = between.high = 2;
  all.push_back({"physical.route",
                 "Leads from one site to addresses of another, or between two in both directions",
                 {row::Text("from", "Site"), row::Text("to", "Site"), std::move(between),
                  row::Other("ranges", kTexts, "Of destinations; all if left out")}});
  all.push_back({"physical.nat",
                 "Of destinations (address, to) or of sources (as)",
                 {row::Text("site", "Whose border it stands at").Required(),
                  row::Text("address", "What is called from outside or inside"),
                  row::Integer("port", 1, 65535, "And its port; every one if left out"),
                  row::Text("to", "The address that gets it"),
                  row::Integer("toPort", 1, 65535, "And the port there; the same if left out"),
                  row::Other("source", kTexts, "Ranges of senders inside; all if left out"),
                  row::Text("as", "The address that they bear outside")}});
}

void AddIncident(std::vector<MappingRow>& all) {
  all.push_back({"incident",
                 "The head of a story of the library of incidents",
                 {row::Other("issues", kTexts, "Addresses of the public reports; none if it was read in the source"),
                  row::Text("reported", "What was reported").Required(),
                  row::Text("symptom", "What is seen, in a line").Required(),
                  row::Text("cause", "Why, in a line").Required(), row::Text("see", "How to see it").Required(),
                  row::Text("remark", "Where 1.18.2 does otherwise than was believed"),
                  row::Other("verdicts", kTextMap, "`shown` or `not shown`, by profile").Required()}});
}

void AddTraffic(std::vector<MappingRow>& all) {
  all.push_back(ClientRow());
  all.push_back(
      {"flow",
       "Requests that one app sends to a host",
       {row::Text("name", "Name").Required(), row::Mapping("from", "client", "").Required(),
        row::Text("to", "host:port as the application writes it").Required(),
        row::Text("path", "Request path; / if left out"), row::Text("method", "GET if left out, POST with a body"),
        row::Other("headers", kTextMap, "Of each request"),
        row::Other("trailers", kTextMap, "Of each request, behind its body"), row::Mapping("token", "token", ""),
        row::Mapping("body", "body", "Of each request; none if left out"),
        row::Choice(
            "connections", {"new", "keep-alive"},
            "A new connection per request, or kept ones (of http2 and grpc if left out, one for all requests of a "
            "pod); of TCP and WebSocket: streams that stay"),
        row::Choice("protocol", {"http", "http1.0", "http2", "grpc", "websocket", "tcp"},
                    "What its clients speak; http is HTTP/1.1, and websocket begins with it on each connection"),
        row::Mapping("tls", "tls", "Its clients speak TLS; plain text if left out"),
        row::Other("rate", kRate, "Events per second or minute, e.g. 100/s"),
        row::Choice("arrivals", {"even", "poisson"},
                    "Requests come evenly at that rate, or at random, as from many users"),
        row::Mapping("ramp", "ramp", "The rate changes from the traffic's start on"),
        row::Mapping("closedLoop", "closedLoop", "Users that wait for answers, instead of a rate"),
        row::Other("timeout", kDuration, "The client's patience with an attempt; none if left out"),
        row::Mapping("retries", "retries", "The client's own; none if left out")}});
  all.push_back(RetriesRow());
  all.push_back({"ramp",
                 "From the flow's rate to another",
                 {row::Other("to", kRate, "The rate at last").Required(),
                  row::Other("over", kDuration, "How long it takes, evenly").Required()}});
  all.push_back({"body",
                 "What follows a request's head: half of it at once, the rest in pieces, evenly over a time",
                 {row::Integer("bytes", 1, int64_t{1} << 40, "The content-length").Required(),
                  row::Other("over", kDuration, "When the last byte goes out, after the head; at once if left out"),
                  row::Integer("pieces", 1, 1000, "How many come over that time; one if left out")}});
  all.push_back({"closedLoop",
                 "Each user sends, waits for the answer, thinks, and sends again",
                 {row::Integer("users", 1, 100'000, "How many").Required(),
                  row::Other("think", kDuration, "Between an answer and the next request; none if left out")}});
  all.push_back(
      {"tls",
       "How a flow's clients speak TLS; Secrets are those of their cluster",
       {row::Text("serverName",
                  "Asked for (SNI), and wanted in the server's certificate; the host of `to` if left out"),
        row::Named("trusts",
                   "Secret with the authorities that they believe (ca.crt, cacert, or its only entry); the public "
                   "authority of servers outside if left out"),
        row::Named("certificate", "Secret with their own certificate (tls.crt); none if left out"),
        row::Other("insecure", kFlag, "They take whatever the server shows")}});
  all.push_back(
      {"token",
       "A token (JWT) that each request brings, signed (ES256) when its traffic starts",
       {row::Text("issuer", "The claim iss; one of the scenario's issuers, unless another signs").Required(),
        row::Text("subject", "The claim sub"), row::Other("audiences", kTexts, "The claim aud"),
        row::Other("claims", kObject, "Further claims"),
        row::Other("expires", kSignedDuration, "The claim exp, from then; 1h if left out, -1h: it has"),
        row::Other("notBefore", kSignedDuration, "The claim nbf, from then"),
        row::Text("signedBy", "Another issuer, with whose key it is signed"),
        row::Text("header", "The header it stands in, alone"), row::Text("param", "The parameter it stands in")}});
  all.push_back(
      {"traffic",
       "A flow to send",
       {row::Other("flow", kFlow, "A flow's name").Required(), row::Integer("requests", 1, 10'000'000, "How many"),
        row::Other("rate", kRate, "Events per second or minute, e.g. 100/s")}});
}

void AddSteps(std::vector<MappingRow>& all) {
  all.push_back({"repeat",
                 "The actions under do, one at a time and in turn",
                 {row::Integer("times", 1, 100'000, "How many actions in all").Required(),
                  row::Other("every", kDuration, "From one to the next").Required()}});
  all.push_back(
      {"step",
       "One wave",
       {row::Text("name", "Name; `step 2`, by its place, if left out"),
        row::Text("at", "Since the start of the timeline (10s), or since an earlier step began ('scaled to 3'+2s)"),
        row::Text("after", "`converged`, or a duration since the step before had ended"),
        row::Mapping("repeat", "repeat", ""), row::Mappings("do", "action", "Actions, in order, at one instant"),
        row::Mappings("meanwhile", "traffic", "Sent from the first action until linger after convergence"),
        row::Mappings("then", "traffic", "Sent after that"),
        row::Other("linger", kDuration, "How long the meanwhile traffic goes on after convergence; 1s if left out"),
        row::Other("settle", kDuration,
                   "How long it may take to settle; the scenario's own if left out, 0s: what follows does not wait"),
        row::Mappings("expect", "expectation", "What must be true"),
        row::Mappings("symptom", "expectation",
                      "What is true where the scenario's incident is shown, and only there")}});
  all.push_back({"throughout",
                 "Traffic from when the mesh is up until the last step has ended; results call it so, too",
                 {row::Mappings("traffic", "traffic", "What is sent").Required(),
                  row::Mappings("expect", "expectation", "What must be true of it")}});
  MappingRow action{"action", "", {}};
  action.single = true;
  for (const ActionKind& kind : Actions()) {
    action.fields.push_back(row::Mapping(kind.row.name, Kept(fmt::format("action.{}", kind.row.name)), ""));
  }
  all.push_back(std::move(action));
}

void AddKinds(std::vector<MappingRow>& all) {
  for (const ActionKind& kind : Actions()) {
    all.push_back(kind.row);
    all.back().name = Kept(fmt::format("action.{}", kind.row.name));
    all.insert(all.end(), kind.inner.begin(), kind.inner.end());
  }
  MappingRow any{
      "expectation",
      "",
      {row::Mapping("always", "expectation.always", ""), row::Mapping("eventually", "expectation.eventually", "")}};
  any.single = true;
  MappingRow always{
      "expectation.always",
      "True at every instant of the step; requests: in every second, of the requests that ended in it, all "
      "of the step's traffic unless `of` says which",
      {}};
  MappingRow eventually{
      "expectation.eventually",
      "True at some instant of the step; requests and split: in some second, of the requests that ended in it",
      {row::Other("within", kDuration, "From the step's action; 10s if left out")}};
  for (const ExpectationKind& kind : Expectations()) {
    const FieldRow field = kind.scalar ? kind.row.fields.front()
                                       : row::Mapping(kind.row.name, Kept(fmt::format("expect.{}", kind.row.name)), "");
    any.fields.push_back(field);
    if (kind.always) always.fields.push_back(field);
    if (kind.eventually) eventually.fields.push_back(field);
  }
  all.push_back(std::move(any));
  all.push_back(std::move(always));
  all.push_back(std::move(eventually));
  for (const ExpectationKind& kind : Expectations()) {
    if (kind.scalar) continue;
    all.push_back(kind.row);
    all.back().name = Kept(fmt::format("expect.{}", kind.row.name));
  }
}

std::string TableLine(std::string_view name, std::string_view example, std::string_view what) {
  return fmt::format("| `{}` | `{}` | {} |\n", name, example, what);
}

}  // namespace

const std::vector<MappingRow>& AllMappings() {
  static const auto* const rows = [] {
    auto* all = new std::vector<MappingRow>();
    AddMesh(*all);
    AddPhysical(*all);
    AddIncident(*all);
    AddTraffic(*all);
    AddSteps(*all);
    AddKinds(*all);
    return all;
  }();
  return *rows;
}

const MappingRow& MappingNamed(std::string_view name) {
  const auto& all = AllMappings();
  const auto it = std::find_if(all.begin(), all.end(), [&](const MappingRow& row) { return row.name == name; });
  if (it == all.end()) std::abort();  // a row that the program itself names
  return *it;
}

nlohmann::ordered_json ScenarioSchema() {
  nlohmann::ordered_json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                {"title", "Wavetank scenario"}};
  nlohmann::ordered_json definitions = nlohmann::ordered_json::object();
  for (const MappingRow& row : AllMappings()) {
    if (row.name == "scenario") {
      const nlohmann::ordered_json whole = SchemaOf(row);
      for (const auto& [key, value] : whole.items()) out[key] = value;
    } else {
      definitions[std::string(row.name)] = SchemaOf(row);
    }
  }
  out["$defs"] = std::move(definitions);
  return out;
}

std::string ActionTable() {
  std::string out = "| action | example | what happens |\n| --- | --- | --- |\n";
  for (const ActionKind& kind : Actions()) out += TableLine(kind.row.name, kind.example, kind.what);
  return out;
}

std::string ExpectationTable() {
  std::string out = "| expectation | example | holds when |\n| --- | --- | --- |\n";
  for (const ExpectationKind& kind : Expectations()) out += TableLine(kind.row.name, kind.example, kind.what);
  out += TableLine("always", "{endpoints: {...}}",
                   "`requests` or `invariant` too: it is true at every instant of the step");
  out += TableLine("eventually", "{within: 10s, endpoints: {...}}",
                   "`requests` or `split` too: it is true at some instant, soon enough after the action");
  return out;
}

}  // namespace wavetank::scenario
