#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>

#include "check/cause/instant.h"
#include "check/cause/story.h"
#include "cli/mesh_arguments.h"
#include "cli/questions/why_log.h"
#include "cli/questions/why_request.h"
#include "cli/verb.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/istiod/explain_host.h"
#include "core/istiod/istiod.h"
#include "core/registry/multicluster/registries.h"
#include "core/registry/multicluster/secret_controller.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "replay/world_target.h"
#include "scenarios/answers/address_names.h"
#include "scenarios/answers/pod_names.h"
#include "scenarios/results/nacks.h"
#include "scenarios/runner/runner.h"
#include "sim/world.h"

namespace wavetank::cli {
namespace {

using pilot::EndpointDecision;
using pilot::EndpointFilter;
using pilot::HostExplanation;

struct WhyArguments {
  std::string scenario, proxy, host, endpoint, at, profile;
  std::vector<std::string> settings;
  std::optional<size_t> step;
  std::optional<int> port;
  std::optional<int64_t> push, nack;
  std::optional<size_t> tries;
  RequestQuestion request;
  bool json = false;

  // Of an event log, all failed requests.
  bool of_failures() const { return request.failed && !request.number && request.flow.empty(); }
  // Of an event log, back to its inputs.
  bool of_chain() const { return push || nack || (!endpoint.empty() && !proxy.empty() && host.empty()); }
};

// A proxy that refuses what it is sent goes on with what it had, which explains much.
void PrintNacks(const std::vector<scenario::Nack>& nacks) {
  constexpr size_t kShown = 5;
  if (!nacks.empty()) std::cout << "\n";
  for (size_t i = 0; i < nacks.size() && i < kShown; ++i) std::cout << "NACK  " << Describe(nacks[i]) << "\n";
  if (nacks.size() > kShown) std::cout << fmt::format("and {} more refusals (--json)\n", nacks.size() - kShown);
}

// `nacks`: of all proxies of its world.
int Tell(const WhyArguments& a, const absl::StatusOr<scenario::RequestStory>& story, Time beginning,
         const std::vector<scenario::Nack>& nacks, const std::vector<check::KnownFault>& faults = {}) {
  if (!story.ok()) return Complain(story.status());
  if (a.json) {
    nlohmann::ordered_json out = scenario::StoryJson(*story, beginning);
    out["nacks"] = scenario::ToJson(nacks);
    if (!faults.empty()) out["findings"] = FaultsJson(faults);
    std::cout << JsonText(out, 1) << "\n";
    return kOk;
  }
  std::cout << scenario::StoryText(*story, beginning);
  PrintNacks(nacks);
  if (!faults.empty()) std::cout << "\n" << FaultsText(faults, false);
  return kOk;
}

// "ok", "NO (detail)", or "-" if an earlier filter has refused it already.
std::string Cell(const EndpointDecision& d, EndpointFilter filter, std::string_view detail = {}) {
  if (d.refused_by < filter) return "-";
  if (d.refused_by != filter) return "ok";
  return detail.empty() ? "NO" : fmt::format("NO ({})", detail);
}

// Not ready and draining are one column.
std::string Health(const EndpointDecision& d) {
  const bool health = d.refused_by == EndpointFilter::kHealth;
  return health ? Cell(d, EndpointFilter::kHealth, pilot::FilterName(d.refused_by))
                : Cell(d, EndpointFilter::kDraining);
}

// The first three filters are rare and about where the proxy is: one column.
std::string Scope(const EndpointDecision& d) {
  return d.refused_by <= EndpointFilter::kDiscoverability ? Cell(d, d.refused_by, pilot::FilterName(d.refused_by))
                                                          : "ok";
}

std::string Mtls(const EndpointDecision& d) {
  if (d.refused_by < EndpointFilter::kMtls || !d.mtls) return "-";
  const std::string_view why =
      d.mtls_off_by_address ? "another endpoint of this address lacks it" : pilot::VerdictText(*d.mtls);
  if (d.refused_by == EndpointFilter::kMtls) return fmt::format("NO ({})", why);
  return pilot::IsDisabled(*d.mtls) || d.mtls_off_by_address ? fmt::format("not used ({})", why) : "ok";
}

std::string Reached(const EndpointDecision& d) {
  if (d.refused_by != EndpointFilter::kPassed) return "NO";
  // istiod sends it all the same; who runs the mesh is told of it nowhere else.
  const bool astray = !d.own_network && !d.through_gateways;
  std::vector<std::string> ways;
  for (const pilot::EndpointRoute& r : d.routes) {
    ways.push_back(r.gateway ? fmt::format("{}:{} weight {}", r.address, r.port, r.weight)
                             : fmt::format("directly, weight {}{}", r.weight,
                                           astray ? " (another network, no gateway to it is known)" : ""));
  }
  return d.through_gateways ? fmt::format("gateway {}", fmt::join(ways, ", ")) : fmt::format("{}", fmt::join(ways, ""));
}

std::string Priority(const EndpointDecision& d) {
  if (d.routes.empty()) return Cell(d, EndpointFilter::kLocality, "no target of distribute");
  const pilot::EndpointRoute& r = d.routes.front();
  return fmt::format("priority {}, weight {}", r.priority,
                     r.locality_weight ? fmt::to_string(*r.locality_weight) : "-");
}

std::string OrNone(const std::string& text) { return text.empty() ? "-" : text; }

void PrintCluster(const HostExplanation::Cluster& cluster, const std::string& address) {
  const pilot::AssignmentExplanation& a = cluster.assignment;
  std::cout << "\n" << cluster.name << (cluster.watched ? "" : "   (the proxy does not ask for it by EDS)") << "\n";
  std::cout << fmt::format("  DestinationRule {}, locality load balancing {}, gateways between networks: {}\n",
                           OrNone(a.rule), pilot::ModeName(a.locality_lb), a.multi_network ? "yes" : "none");
  if (a.refusal != pilot::AssignmentRefusal::kNone) {
    std::cout << "  no endpoints: " << pilot::RefusalText(a.refusal) << "\n";
    return;
  }
  Rows rows = {{"  ENDPOINT", "CLUSTER", "NETWORK", "LOCALITY", "SCOPE", "PORT", "SUBSET", "DRAINING", "VIEW", "MTLS",
                "LOCALITY LB", "REACHED"}};
  for (const EndpointDecision& d : a.endpoints) {
    if (!address.empty() && d.endpoint->address != address) continue;
    const pilot::EndpointProfile& p = d.endpoint->p();
    rows.push_back({fmt::format("  {}:{}", d.endpoint->address, d.endpoint->endpoint_port), d.shard.cluster.str(),
                    OrNone(p.network.str()), OrNone(p.locality.label), Scope(d),
                    Cell(d, EndpointFilter::kPort, p.service_port_name), Cell(d, EndpointFilter::kSubset), Health(d),
                    Cell(d, EndpointFilter::kNetworkView), Mtls(d), Priority(d), Reached(d)});
  }
  if (rows.size() == 1) {
    std::cout << "  no endpoints" << (address.empty() ? "" : " of that address") << " in any shard\n";
    return;
  }
  PrintTable(rows);
}

void Print(const HostExplanation& e, const std::vector<pilot::SecretController::ClusterState>& remotes,
           const std::string& address) {
  std::cout << fmt::format("{} as {} sees it (cluster {}, network {}, locality {})\n", e.host, e.proxy,
                           OrNone(e.cluster), OrNone(e.network), OrNone(e.locality));
  if (e.candidates.empty()) std::cout << "no registry has a service of that name\n";
  for (const HostExplanation::Candidate& candidate : e.candidates) {
    const std::string& ns = candidate.service->attributes.ns;
    const bool seen = e.seen != nullptr && e.seen->attributes.ns == ns;
    const std::string verdict = seen                  ? "seen"
                                : !candidate.exported ? "NOT seen: exportTo keeps it from the proxy's namespace"
                                : e.seen != nullptr   ? "not used: another namespace's comes first"
                                                    : fmt::format("NOT seen: Sidecar {} does not import it", e.sidecar);
    std::vector<std::string> shards;
    for (const auto& [key, count] : candidate.shards) shards.push_back(fmt::format("{} {}", key.cluster.str(), count));
    std::cout << fmt::format("service of namespace {}: {}; endpoints of all ports: {}\n", ns, verdict,
                             shards.empty() ? "none" : fmt::format("{}", fmt::join(shards, ", ")));
  }
  for (const pilot::SecretController::ClusterState& cluster : remotes) {
    if (!cluster.stopped) continue;
    std::cout << fmt::format(
        "{} is watched no more: Secret {} was changed and could not be used; what is known of the cluster stands "
        "still\n",
        cluster.id.str(), cluster.secret);
  }
  for (const HostExplanation::Cluster& cluster : e.clusters) PrintCluster(cluster, address);
}

// What the network under the mesh does to addresses that istiod sends: address, why.
std::map<std::string, std::string> OutOfReach(const HostExplanation& e, const std::string& proxy, sim::World& world) {
  std::map<std::string, std::string> out;
  const scenario::AddressNames names(world);
  for (const HostExplanation::Cluster& cluster : e.clusters) {
    for (const EndpointDecision& d : cluster.assignment.endpoints) {
      for (const pilot::EndpointRoute& r : d.routes) {
        const absl::StatusOr<IpAddress> ip = IpAddress::Parse(r.address);
        if (!ip.ok()) continue;
        const SocketAddress address{*ip, static_cast<uint16_t>(r.port)};
        if (std::string why = names.Obstacle(proxy, address); !why.empty()) out[address.ToString()] = std::move(why);
      }
    }
  }
  return out;
}

// The proxies that istiods are connected with, by "pod.namespace@cluster".
std::map<std::string, std::pair<const pilot::Istiod*, const pilot::Connection*>> Connected(const sim::World& world) {
  std::map<std::string, std::pair<const pilot::Istiod*, const pilot::Connection*>> out;
  for (const sim::IstiodProcess* process : world.Istiods()) {
    const pilot::Istiod& istiod = process->istiod();
    if (istiod.discovery().last_push_context() == nullptr) continue;
    for (const pilot::Connection* connection : istiod.discovery().Clients()) {
      const pilot::Proxy& proxy = connection->proxy();
      out[proxy.id + "@" + proxy.cluster().str()] = {&istiod, connection};
    }
  }
  return out;
}

// The answer has to be written while the world is there.
int Answer(const WhyArguments& a, sim::World& world) {
  if (a.request.probe()) {
    const absl::StatusOr<scenario::RequestStory> story = Probe(a.request, world);
    return Tell(a, story, world.options().start, scenario::NackTally(world).All());
  }
  const auto proxies = Connected(world);
  if (proxies.empty()) {
    return Complain(absl::InvalidArgumentError(
        fmt::format("no proxy is connected {} after the world's beginning, so no configuration was sent: {}",
                    FormatDuration(world.Now() - world.options().start),
                    world.Pods().empty() ? "ask for later, if pods are to come" : scenario::WhyNoProxies(world))));
  }
  std::vector<scenario::PodName> names;
  for (const auto& [name, where] : proxies) {
    const sim::PodProcess* const pod = world.FindPod(name);
    names.push_back(pod == nullptr ? scenario::PodNameOf(name) : scenario::PodNameOf(*pod));
  }
  const absl::StatusOr<std::string> found = scenario::FindOnePod("connected proxy", a.proxy, names);
  if (!found.ok()) return Complain(found.status());
  const auto& [istiod, connection] = proxies.at(*found);
  const std::vector<pilot::SecretController::ClusterState> remotes = istiod->registries().secrets().Clusters();
  HostExplanation explanation = ExplainHost(connection->proxy(), *istiod->discovery().last_push_context(), a.host);
  if (a.port) {
    std::erase_if(explanation.clusters, [&](const HostExplanation::Cluster& cluster) {
      const auto key = pilot::ParseSubsetKey(cluster.name);
      return key && key->port != *a.port;
    });
  }
  std::vector<scenario::Nack> nacks = scenario::NackTally(world).All();
  const std::string asked = scenario::ShortName(*found, scenario::PodNames(world));
  std::erase_if(nacks, [&](const scenario::Nack& nack) { return nack.proxy != asked; });
  if (a.json) {
    nlohmann::ordered_json out = ToJson(explanation, a.endpoint);
    out["nacks"] = scenario::ToJson(nacks);
    for (const auto& [address, why] : OutOfReach(explanation, *found, world))
      out["outOfReach"].push_back({{"address", address}, {"why", why}});
    out["stoppedClusters"] = nlohmann::ordered_json::array();
    for (const auto& cluster : remotes) {
      if (cluster.stopped) out["stoppedClusters"].push_back(cluster.id.str());
    }
    std::cout << JsonText(out, 1) << "\n";
  } else {
    Print(explanation, remotes, a.endpoint);
    for (const auto& [address, why] : OutOfReach(explanation, *found, world))
      std::cout << fmt::format("out of reach: {}: {}\n", address, why);
    PrintNacks(nacks);
  }
  return kOk;
}

// A request of the log's traffic, told in its world made again.
int TellOfLog(const WhyArguments& a) {
  const absl::StatusOr<check::Story> story = check::LoadStory(a.scenario);
  if (!story.ok()) return Complain(story.status());
  const absl::StatusOr<std::unique_ptr<sim::World>> world = check::Begin(*story);
  if (!world.ok()) return Complain(world.status());
  scenario::RunOptions options;
  RequestWatch watch(a.request);
  watch.Attach(&options);
  Subscription requests = (*world)->commons().on_request.Add(
      [&](const sim::TrafficRecord& record) { options.on_request(**world, record); });
  for (const replay::LogInput& input : story->inputs) {
    (*world)->RunUntil(input.at);
    if (absl::Status status = check::DoAgain(**world, input); !status.ok()) return Complain(status);
  }
  (*world)->RunUntil(story->end);
  requests.Cancel();
  const absl::StatusOr<scenario::RequestStory> found = watch.Found();
  std::vector<check::KnownFault> faults;
  if (found.ok() && a.request.failed) {
    auto known = FaultsOf(*story, {{std::nullopt, found->sent}});
    if (!known.ok()) return Complain(known.status());
    faults = std::move(known->front());
  }
  return WithWholeness(Tell(a, found, (*world)->options().start, scenario::NackTally(**world).All(), faults),
                       a.scenario, story->whole);
}

int WhyOfLog(const WhyArguments& a) {
  if (a.step || !a.profile.empty() || !a.settings.empty()) {
    return Complain(
        absl::InvalidArgumentError(fmt::format("{}: is an event log, which has no steps, its own profile and what it "
                                               "was run with: leave out --step, --profile "
                                               "and --set",
                                               a.scenario)));
  }
  LogQuestion question{a.scenario, a.at, a.endpoint, a.proxy, a.push, a.nack, a.json};
  question.tries = a.tries.value_or(question.tries);
  if (a.of_chain()) return AnswerChain(question);
  if (a.of_failures()) return AnswerFailures(question);
  if (a.request.of_run()) return TellOfLog(a);
  std::optional<Duration> until;
  if (!a.at.empty()) {
    const absl::StatusOr<check::Story> story = check::LoadStory(a.scenario);
    if (!story.ok()) return Complain(story.status());
    const absl::StatusOr<Time> at = check::FindInstant("--at", a.at, *story);
    if (!at.ok()) return Complain(at.status());
    until = *at - story->header.Beginning();
  }
  absl::StatusOr<std::unique_ptr<replay::LogReader>> log = replay::LogReader::Open(a.scenario);
  if (!log.ok()) return Complain(log.status());
  absl::StatusOr<std::unique_ptr<sim::World>> world = replay::WorldOfLog(**log, until);
  if (!world.ok()) return Complain(world.status());
  return WithWholeness(Answer(a, **world), a.scenario);
}

absl::Status CheckArguments(const WhyArguments& a) {
  if (a.tries && (!a.of_failures() || !replay::LooksLikeLog(a.scenario))) {
    return absl::InvalidArgumentError("--tries is how many inputs `why LOG --failed` leaves out, one at a time");
  }
  if (absl::Status status = CheckQuestion(a.request); !status.ok()) return status;
  if (a.of_chain()) {
    if (replay::LooksLikeLog(a.scenario)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--push, --nack, and --endpoint with --proxy alone ask for the way back to an event log's inputs: name a log "
        "(`wavetank run -o`)");
  }
  const bool of_request = a.request.probe() || a.request.of_run();
  if (of_request != (a.proxy.empty() && a.host.empty())) {
    return absl::InvalidArgumentError(
        "ask about endpoints (--proxy and --host), about a request of a flow (--flow, --failed, --retried, --request) "
        "or "
        "about one that is sent now (--from and --to)");
  }
  if (!of_request && (a.proxy.empty() || a.host.empty())) {
    return absl::InvalidArgumentError("--proxy and --host go together: whose endpoints, and of which host");
  }
  return absl::OkStatus();
}

int Why(const WhyArguments& a) {
  if (absl::Status status = CheckArguments(a); !status.ok()) return Complain(status);
  if (replay::LooksLikeLog(a.scenario)) return WhyOfLog(a);
  absl::StatusOr<scenario::Scenario> scenario = LoadScenarioWith(a.scenario, {}, a.settings);
  if (!scenario.ok()) return Complain(scenario.status());
  scenario::RunOptions options;
  options.profile = a.profile;
  options.until_step = a.step;
  if (!a.at.empty()) {
    absl::StatusOr<scenario::Moment> at = ParseMomentOf("--at", a.at, &*scenario);
    if (!at.ok()) return Complain(at.status());
    options.until = *std::move(at);
  }
  int code = kOk;
  Progress progress;
  options.progress = [&](std::string_view what) { progress.Say(what); };
  RequestWatch watch(a.request);
  if (a.request.of_run()) {
    watch.Attach(&options);
  } else {
    options.on_end = [&](sim::World& world) { code = Answer(a, world); };
  }
  absl::StatusOr<scenario::RunResult> result = scenario::Run(*scenario, options);
  if (!result.ok()) return Complain(result.status());
  if (a.request.of_run()) return Tell(a, watch.Found(), watch.beginning(), result->nacks);
  return code;
}

}  // namespace

void AddWhy(CLI::App& app, Outcome& outcome) {
  CLI::App* verb = app.add_subcommand(
      "why", "Why a proxy has an endpoint of a host or has it not, and what became of a request hop by hop");
  auto a = std::make_shared<WhyArguments>();
  verb->add_option("scenario", a->scenario, "Scenario file, folder with a scenario.yaml, or an event log")->required();
  verb->add_option("--proxy", a->proxy,
                   "sleep@cluster1, sleep-0@cluster1, deploy/sleep.sample@cluster1, or a pod's full name");
  verb->add_option("--host", a->host, "Full name, e.g. helloworld.sample.svc.cluster.local");
  verb->add_option("--endpoint", a->endpoint,
                   "Only this address; of a log and without --host: what led to the proxy's getting or losing it");
  verb->add_option("--port", a->port, "Only clusters of this port of the service");
  verb->add_option(
      "--at", a->at,
      "As it is at this virtual time since the world's beginning (30s), or after a step (\"'scaled to 3'+2s\")");
  verb->add_option("--step", a->step, "Run this many steps; 0 only brings the mesh up");
  verb->add_option("--profile", a->profile, "Behaviour profile");
  AddSettings(verb, &a->settings);
  verb->add_option("--from", a->request.from,
                   "Send a request now from this pod, e.g. sleep@cluster1, and tell it hop by hop");
  verb->add_option("--to", a->request.to, "HOST:PORT that it is sent to, as the application writes it");
  verb->add_option("--path", a->request.path, "Its path")->capture_default_str();
  verb->add_option("--method", a->request.method, "Its method")->capture_default_str();
  verb->add_option("--protocol", a->request.protocol, "What the pod speaks: http (HTTP/1.1), http1.0, http2, grpc")
      ->check(CLI::IsMember({"http", "http1.0", "http2", "grpc"}))
      ->capture_default_str();
  verb->add_option("-H,--header", a->request.headers, "A header of it, 'name: value'; any number");
  verb->add_option("--flow", a->request.flow, "Tell a request of this flow of the scenario: the first one that fits");
  verb->add_option("--request", a->request.number, "The how-manieth of those that fit, from 1");
  verb->add_flag("--failed", a->request.failed,
                 "One that failed; of a log, without --request: all of them, by the input that stands behind");
  verb->add_option("--tries", a->tries,
                   "Of a log, with --failed alone: so many inputs are left out, those nearest before a failure (64)")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--retried", a->request.retried, "One that took more than one try");
  verb->add_option("--push", a->push, "Of a log: what led to this push of an istiod, hop by hop from the inputs");
  verb->add_option("--nack", a->nack, "Of a log: what led to the how-manieth refused response, from 1");
  verb->add_flag("--json", a->json, "As JSON");
  for (const char* other : {"--from", "--flow", "--failed", "--retried", "--request", "--push", "--nack"})
    NotWith(verb, {"--port", "--endpoint"}, other);
  NotWith(verb, {"--from", "--flow", "--failed", "--retried", "--request", "--proxy", "--host", "--nack"}, "--push");
  NotWith(verb, {"--from", "--flow", "--failed", "--retried", "--request", "--proxy", "--host"}, "--nack");
  verb->footer(
      "Columns stand in the order in which istiod asks: ok, NO (it is refused here), - (not asked any more). The "
      "weight "
      "of a gateway is that of all endpoints behind it. What istiod would send now; see `wavetank xds` for what the "
      "proxy holds.");
  verb->callback([a, &outcome] { outcome.code = Why(*a); });
}

}  // namespace wavetank::cli
