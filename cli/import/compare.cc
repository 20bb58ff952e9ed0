#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

#include "check/cause/instant.h"
#include "check/cause/story.h"
#include "cli/read_file.h"
#include "cli/verb.h"
#include "core/base/json_text.h"
#include "fakes/envoy/envoy.h"
#include "fmt/format.h"
#include "import/envoy/proxy_state.h"
#include "import/report/report.h"
#include "replay/event_log.h"
#include "replay/world_target.h"
#include "scenarios/answers/pod_names.h"
#include "scenarios/survey/mesh_survey.h"
#include "sim/pod_process.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

using nlohmann::ordered_json;

struct CompareArguments {
  std::string log, proxy, at;
  std::vector<std::string> dumps;
  bool json = false;
};

// What one proxy holds in truth and here.
struct Difference {
  std::string upstream;
  std::vector<std::string> only_real, only_simulated;
  std::vector<std::string> weights;  // of what both hold: "10.1.0.7:5000 has weight 3, and 2 here"
};

using Held = std::map<std::string, std::set<std::string>>;
using Weights = std::map<std::string, std::map<std::string, int64_t>>;

// Every upstream that either holds endpoints of. One that is empty in both, or absent in one and empty in the other,
// is the same.
std::vector<Difference> Compare(const Held& real, const Held& simulated, const Weights& real_weights,
                                const Weights& simulated_weights) {
  std::set<std::string> upstreams;
  for (const Held* side : {&real, &simulated}) {
    for (const auto& [upstream, endpoints] : *side) upstreams.insert(upstream);
  }
  std::vector<Difference> out;
  static const std::set<std::string> kNone;
  for (const std::string& upstream : upstreams) {
    if (upstream.find('|') == upstream.npos) continue;  // Envoy's own: its admin port, its agent
    const auto in_real = real.find(upstream), in_simulated = simulated.find(upstream);
    const std::set<std::string>& a = in_real == real.end() ? kNone : in_real->second;
    const std::set<std::string>& b = in_simulated == simulated.end() ? kNone : in_simulated->second;
    Difference difference{upstream, {}, {}, {}};
    for (const std::string& endpoint : a) {
      if (!b.contains(endpoint)) difference.only_real.push_back(endpoint);
    }
    for (const std::string& endpoint : b) {
      if (!a.contains(endpoint)) difference.only_simulated.push_back(endpoint);
    }
    // Where the dump tells it. How many stand behind a gateway is all that tells one mesh from another then.
    const auto told = real_weights.find(upstream), here = simulated_weights.find(upstream);
    if (told != real_weights.end() && here != simulated_weights.end() && upstream.starts_with("outbound")) {
      for (const auto& [endpoint, weight] : told->second) {
        const auto other = here->second.find(endpoint);
        if (other == here->second.end() || other->second == weight) continue;
        difference.weights.push_back(fmt::format("{} has weight {}, and {} here", endpoint, weight, other->second));
      }
    }
    if (!difference.only_real.empty() || !difference.only_simulated.empty() || !difference.weights.empty())
      out.push_back(std::move(difference));
  }
  return out;
}

// Two clusters may have pods of one name: StatefulSets'. `cluster`: where a file says it is; empty: it does not.
absl::StatusOr<std::string> FindProxy(const sim::World& world, const std::string& said, const std::string& cluster) {
  std::vector<scenario::PodName> names, of_cluster;
  for (const sim::PodProcess* pod : world.Pods()) {
    if (pod->envoy() == nullptr) continue;
    names.push_back(scenario::PodNameOf(*pod));
    if (pod->site().name == cluster) of_cluster.push_back(names.back());
  }
  return scenario::FindOnePod("proxy that runs in this mesh", said, of_cluster.empty() ? names : of_cluster, world);
}

// As `state --at` takes it.
absl::StatusOr<std::optional<Duration>> ReadInstant(const CompareArguments& a) {
  if (a.at.empty()) return std::optional<Duration>();
  const absl::StatusOr<check::Story> story = check::LoadStory(a.log);
  if (!story.ok()) return story.status();
  const absl::StatusOr<Time> at = check::FindInstant("--at", a.at, *story);
  if (!at.ok()) return at.status();
  return std::optional<Duration>(*at - story->header.Beginning());
}

int RunCompare(const CompareArguments& a) {
  const absl::StatusOr<std::optional<Duration>> at = ReadInstant(a);
  if (!at.ok()) return Complain(at.status());
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(a.log);
  if (!log.ok()) return Complain(log.status());
  const absl::StatusOr<std::unique_ptr<sim::World>> world = replay::WorldOfLog(**log, *at);
  if (!world.ok()) return Complain(world.status());
  const std::vector<scenario::ProxyEndpoints> endpoints = scenario::ListEndpoints(**world);
  bool equal = true;
  ordered_json all = ordered_json::array();
  for (const std::string& path : a.dumps) {
    const absl::StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) return Complain(text.status());
    importing::Refusals refusals;
    const importing::ProxyState state = importing::ReadProxyState(*text, path, refusals);
    for (const auto& [reason, of] : refusals.reasons()) {
      std::cerr << fmt::format("note: {}: {} x {}\n", path, of.count, reason);
    }
    if (state.empty()) {
      return Complain(absl::InvalidArgumentError(
          path +
          " tells nothing of what a proxy holds; take /config_dump?include_eds, /clusters?format=json or what "
          "`istioctl pc endpoints`, `clusters`, `listeners` or `routes` prints"));
    }
    // Of several files --proxy names those that do not say it.
    const bool given = !a.proxy.empty() && (a.dumps.size() == 1 || state.proxy.empty());
    const std::string said = given ? a.proxy : state.proxy;
    if (said.empty())
      return Complain(absl::InvalidArgumentError(path + " does not say whose it is: add --proxy NAME.NAMESPACE"));
    const absl::StatusOr<std::string> found = FindProxy(**world, said, given ? "" : state.cluster);
    if (!found.ok()) return Complain(found.status());
    const std::string& proxy = *found;
    Held simulated;
    for (const scenario::ProxyEndpoints& each : endpoints) {
      if (each.proxy != proxy) continue;
      for (const scenario::EndpointRow& row : *each.rows) simulated[row.upstream].insert(row.endpoint);
    }
    const envoysim::Envoy& envoy = *(*world)->FindPod(proxy)->envoy();
    Weights weights;
    for (const envoysim::EndpointStatus& e : envoy.Endpoints())
      weights[e.cluster][e.address] = std::max<int64_t>(1, e.weight);
    importing::HeldNames names = importing::NamesOf(envoy.ClusterNames(), envoy.ListenerNames(), envoy.RouteNames());
    std::vector<Difference> differences;
    if (!state.endpoints.empty()) differences = Compare(state.endpoints, simulated, state.weights, weights);
    for (const auto& [kind, real] : state.names) {
      Difference difference{kind, {}, {}, {}};
      const std::set<std::string>& here = names[kind];
      std::set_difference(real.begin(), real.end(), here.begin(), here.end(), std::back_inserter(difference.only_real));
      std::set_difference(here.begin(), here.end(), real.begin(), real.end(),
                          std::back_inserter(difference.only_simulated));
      if (!difference.only_real.empty() || !difference.only_simulated.empty()) differences.push_back(difference);
    }
    equal = equal && differences.empty();
    ordered_json one = {{"file", path}, {"proxy", proxy}, {"form", state.form}, {"equal", differences.empty()}};
    one["differences"] = ordered_json::array();
    for (const Difference& difference : differences) {
      one["differences"].push_back({{"upstream", difference.upstream},
                                    {"onlyReal", difference.only_real},
                                    {"onlySimulated", difference.only_simulated},
                                    {"weights", difference.weights}});
    }
    all.push_back(std::move(one));
    if (a.json) continue;
    std::cout << fmt::format("{}: {} ({}), {}\n", path, proxy, state.form,
                             differences.empty()
                                 ? "holds what it should hold"
                                 : fmt::format("{} upstreams or lists of names differ", differences.size()));
    for (const Difference& difference : differences) {
      std::cout << "  " << importing::Harmless(difference.upstream) << "\n";
      for (const std::string& endpoint : difference.only_real) {
        std::cout << "    real only       " << importing::Harmless(endpoint) << "\n";
      }
      for (const std::string& endpoint : difference.only_simulated)
        std::cout << "    simulated only  " << endpoint << "\n";
      for (const std::string& weight : difference.weights)
        std::cout << "    weight differs  " << importing::Harmless(weight) << "\n";
    }
  }
  if (a.json) std::cout << JsonText(all, 1) << "\n";
  return equal ? kOk : kNo;
}

}  // namespace

void AddCompare(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand("compare", "What real proxies hold against what an event log's mesh gives them");
  auto a = std::make_shared<CompareArguments>();
  verb->add_option("log", a->log, "Event log of `wavetank import`, `record` or `run`")->required();
  verb->add_option("dump", a->dumps,
                   "config_dump with EDS, /clusters, or what `istioctl proxy-config` printed of endpoints, clusters, "
                   "listeners or routes")
      ->required();
  verb->add_option(
      "--proxy", a->proxy,
      "By its name, or as far as it is unique (sleep@cluster1): of one file instead of what it says, of several where "
      "they do not say it");
  verb->add_option(
      "--at", a->at,
      "The mesh at this time of the log (90s, 'input 41', of an imported log the calendar's); else where it came to "
      "rest");
  verb->add_flag("--json", a->json, "Results as JSON on standard output");
  verb->footer("Exit code 0: the same; 1: they differ; 2: something cannot be read.");
  verb->callback([a, &outcome] { outcome.code = RunCompare(*a); });
}

}  // namespace wavetank::cli
