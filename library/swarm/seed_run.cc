#include "library/swarm/seed_run.h"

#include <algorithm>
#include <map>

#include "core/base/buggify/buggify.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/random.h"
#include "core/base/status.h"
#include "core/kube/types.h"
#include "fakes/kube/store/api_server.h"
#include "fmt/format.h"
#include "library/session/live_world.h"
#include "library/session/truth.h"
#include "library/swarm/sometimes.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/reader/read_scenario.h"
#include "sim/inputs/kinds/buggify.h"
#include "sim/invariants/look.h"
#include "sim/invariants/watch.h"

namespace wavetank::swarm {
namespace {

using nlohmann::json;
using session::Breach;
using session::LiveWorld;

// When all is healed a mesh has so long: proxies wait up to half a minute to try again, pods up to five minutes.
constexpr Duration kBound = 20min;

class SeedChoices final : public Choices {
 public:
  SeedChoices(uint64_t seed, std::string_view what) : stream_(seed, what) {}
  int64_t Between(int64_t low, int64_t high) override { return stream_.Between(low, high); }

 private:
  RandomStream stream_;
};

json JsonOf(const Value& value) { return ParseJson(value.Print()); }

// What of a scenario a history can be made for: its clusters, and Services with the Deployments behind them.
absl::StatusOr<Mesh> MeshOf(const scenario::Scenario& scenario) {
  Mesh out = Mesh::FromScenario(scenario.file);
  for (const scenario::ClusterSpec& spec : scenario.clusters) {
    Cluster& cluster = out.clusters.emplace_back();
    cluster.name = spec.name;
    cluster.network = spec.network;
    cluster.control_plane = spec.control_plane;
    cluster.gateway = Gateway::kNone;
    absl::StatusOr<std::vector<json>> objects = scenario::LoadClusterManifests(spec, nullptr);
    if (!objects.ok()) return objects.status();
    for (const json& object : *objects) {
      const json& meta = At(object, "metadata");
      const std::string name = wavetank::Text(meta, "name"), ns = wavetank::Text(meta, "namespace");
      const std::string kind = wavetank::Text(object, "kind");
      if (kind == "Service" && name == "istio-eastwestgateway" &&
          TextOf(At(object, {"spec", "type"})) == "LoadBalancer")
        cluster.gateway = Gateway::kLoadBalancer;
      if (kind != "Deployment" || ns == "istio-system") continue;
      const std::string app = TextOf(At(object, {"spec", "template", "metadata", "labels", "app"}), name);
      auto it =
          std::find_if(out.apps.begin(), out.apps.end(), [&](const App& a) { return a.name == app && a.ns == ns; });
      if (it == out.apps.end()) it = out.apps.insert(it, App{.name = app, .ns = ns});
      it->deployments.push_back({spec.name, "", static_cast<int>(NumberOf(At(object, {"spec", "replicas"}), 1)), name});
    }
  }
  if (out.apps.empty())
    return absl::InvalidArgumentError(fmt::format("{}: has no Deployment to make waves with", scenario.file));
  return out;
}

absl::StatusOr<scenario::Scenario> ScenarioOf(const Trial& trial) {
  absl::StatusOr<scenario::Scenario> out =
      trial.scenario.empty() ? scenario::ParseScenario(fmt::format("seed {}", trial.seed), trial.mesh.ToScenario())
                             : scenario::LoadScenario(trial.scenario);
  if (!out.ok()) return out;
  out->seed = trial.seed;
  if (!trial.profile.empty()) out->profile = trial.profile;
  return out;
}

class Life {
 public:
  Life(const Trial& trial, LiveWorld& live, session::Watch& watch, MomentWatch& moments,
       sim::InvariantWatch* invariants)
      : trial_(trial), live_(live), watch_(watch), moments_(moments), invariants_(invariants) {}

  // The first breach; none: all held.
  std::optional<Breach> Live() {
    Buggify(trial_.buggify);
    if (std::optional<Breach> wrong = Suffer()) return wrong;
    Buggify({});
    for (const Action& action : Heal(happened_)) {
      if (absl::Status status = live_.Do(JsonOf(action.ToValue())); !status.ok()) return Refused(action, status);
    }
    const Time bound = live_.world().Now() + kBound;
    bool rests = live_.Recover(kBound);
    // A client that waits to try again is at rest, and not done: what must be true has until the bound to become so.
    while (rests && live_.world().Now() < bound &&
           (!session::CheckEndpoints(live_).empty() || !live_.world().Complaints().empty())) {
      live_.RunFor(5s);
      rests = live_.Recover(std::max(bound - live_.world().Now(), Duration(1s)));
    }
    for (const std::string& id : background_) (void)live_.FinishTraffic(id, 60s);
    if (std::optional<Breach> wrong = Safety()) return wrong;
    if (const std::string_view bug = rests ? LostBy() : std::string_view(); !bug.empty()) {
      known_.insert(std::string(bug));
      if (std::optional<Breach> wrong = RestartIstiods()) return wrong;
      rests = live_.Recover(kBound);
    }
    if (!rests) {
      std::vector<std::string> why = live_.AtWork();
      for (std::string& proxy : live_.Disconnected()) why.push_back(proxy + " has no istiod");
      return Breach{"comes-to-rest", why.empty() ? "something goes on and on" : why.front()};
    }
    if (const std::vector<std::string> complaints = live_.world().Complaints(); !complaints.empty())
      return Breach{"pods-come-up", complaints.front()};
    if (const std::vector<Breach> breaches = session::CheckEndpoints(live_); !breaches.empty()) return breaches.front();
    return Requests();
  }

 private:
  void Buggify(const std::vector<std::string>& points) {
    if (trial_.buggify.empty()) return;
    // Names that are points; the caller has seen to that.
    live_.world().Do(sim::inputs::SwitchBuggify{trial_.seed, points}).IgnoreError();
  }

  static std::optional<Breach> Refused(const Action& action, const absl::Status& status) {
    return Breach{"actions-are-valid", fmt::format("{}: {}", action.Print(), Message(status))};
  }

  std::optional<Breach> Safety() const {
    if (!watch_.breaches().empty()) return watch_.breaches().front();
    if (wrong_ || invariants_ == nullptr) return wrong_;
    for (const sim::Violation& each : invariants_->violations()) {
      if (each.known.empty() && !TookAddress(each))
        return Breach{each.invariant, fmt::format("{}: {}", each.subject, each.what)};
    }
    return std::nullopt;
  }

  // The bug by which endpoints or gateways are missing, in a release that loses them after a remote Secret was changed,
  // or with the next change of networks: there they come back when istiod starts again. Empty: none is, or none has.
  std::string_view LostBy() const {
    const sim::World& world = live_.world();
    const bool swapped = sim::LosesBySwap(world) && std::any_of(happened_.begin(), happened_.end(), OfSecret);
    const std::vector<sim::WorldCluster>& clusters = world.options().clusters;
    const bool forgets = std::any_of(clusters.begin(), clusters.end(),
                                     [&](const auto& each) { return sim::ForgetsNodePorts(world, each.name); });
    if ((!swapped && !forgets) || session::CheckEndpoints(live_).empty()) return {};
    return swapped ? sim::kSwapBug : sim::kNodePortBug;
  }
  static bool OfSecret(const Event& event) { return event.action.kind == "remoteSecret"; }

  // All of them, in every cluster that has some.
  std::optional<Breach> RestartIstiods() {
    for (const sim::WorldCluster& cluster : live_.world().options().clusters) {
      const auto& api = live_.world().cluster(cluster.name).api();
      const std::vector<kube::ObjectRef> pods = api.List("Pod", "istio-system");
      if (std::none_of(pods.begin(), pods.end(), [](const kube::ObjectRef& pod) {
            const auto app = pod->meta.labels.find("app");
            return app != pod->meta.labels.end() && app->second == "istiod";
          }))
        continue;
      const Action kill{"kill", {{"cluster", cluster.name}, {"namespace", "istio-system"}, {"app", "istiod"}}};
      if (absl::Status status = live_.Do(JsonOf(kill.ToValue())); !status.ok()) return Refused(kill, status);
    }
    return std::nullopt;
  }

  // A network without a gateway sends its pods as they are; here its gateway's address was taken away.
  bool TookAddress(const sim::Violation& violation) const {
    return violation.invariant == "no-foreign-pod-address" &&
           std::any_of(happened_.begin(), happened_.end(), [](const Event& event) {
             const auto address = event.action.fields.find("address");
             return event.action.kind == "loadBalancer" && address != event.action.fields.end() &&
                    address->second.Text() == "none";
           });
  }

  // Traffic all the while, and what happens.
  std::optional<Breach> Suffer() {
    live_.on_request = [this](const sim::TrafficRecord& record) { Answered(record); };
    for (const json& flow : Flows("20/s")) {
      absl::StatusOr<std::string> id = live_.StartTraffic(flow, 0);
      if (!id.ok()) return Breach{"actions-are-valid", std::string(Message(id.status()))};
      background_.push_back(*id);
    }
    moments_.Begin();
    for (const Event& event : trial_.history) {
      const absl::Status status = live_.Do(JsonOf(event.action.ToValue()));
      // A moment that came may have done what was its turn.
      if (!status.ok() && !event.MayBeRefused() && !struck_) return Refused(event.action, status);
      if (status.ok()) happened_.push_back(event);
      Let(event.then_ms * 1ms);
      if (std::optional<Breach> wrong = Safety()) return wrong;
    }
    return Safety();
  }

  // Time passes; moments that come meanwhile are met within a millisecond.
  void Let(Duration duration) {
    const Time end = live_.world().Now() + duration;
    while (moments_.Waiting() && live_.world().Now() < end) {
      live_.RunFor(std::min<Duration>(1ms, end - live_.world().Now()));
      for (WorstMoment& moment : moments_.Take()) {
        if (!live_.Do(JsonOf(moment.action.ToValue())).ok()) continue;
        struck_ = true;
        happened_.push_back({std::move(moment.action), 0});
      }
    }
    live_.RunFor(end - live_.world().Now());
  }

  // Of its own Service, whoever answered; `app` labels are Services' names in what the swarm makes.
  void Answered(const sim::TrafficRecord& record) {
    if (on_request) on_request(record);
    if (record.server == nullptr || wrong_ || !trial_.scenario.empty()) return;
    const std::string service = record.spec.host.substr(0, record.spec.host.find('.'));
    if (record.server->app == service) return;
    wrong_ = Breach{"the-right-pod-answers",
                    fmt::format("a request to {} was answered by {}", record.spec.host, record.server->name)};
  }

  std::vector<json> Flows(const std::string& rate) const {
    std::vector<json> out;
    const auto add = [&](const std::string& cluster, const std::string& ns, const std::string& app,
                         const std::string& to) {
      out.push_back({{"name", fmt::format("{} from {}", to, cluster)},
                     {"from", {{"cluster", cluster}, {"namespace", ns}, {"app", app}}},
                     {"to", to},
                     {"rate", rate}});
    };
    if (!trial_.scenario.empty()) {
      for (const scenario::FlowSpec& f : live_.scenario().flows)
        if (!f.tcp && !f.token) add(f.from_cluster, f.from_namespace, f.from_app, fmt::format("{}:{}", f.host, f.port));
      return out;
    }
    for (const App& app : trial_.mesh.apps)
      for (const Cluster& cluster : trial_.mesh.clusters)
        add(cluster.name, "sample", "sleep", fmt::format("{}.{}:{}", app.name, app.ns, app.port));
    return out;
  }

  // Pods of a Service that are ready, as API servers know them, with the network of their cluster.
  std::map<std::string, std::string> ReadyPods(const std::string& service, const std::string& ns) const {
    std::map<std::string, std::string> out;
    for (const sim::WorldCluster& cluster : live_.world().options().clusters) {
      for (const kube::ObjectRef& slice : live_.world().cluster(cluster.name).api().List("EndpointSlice", ns)) {
        const auto label = slice->meta.labels.find("kubernetes.io/service-name");
        if (label == slice->meta.labels.end() || label->second != service) continue;
        for (const kube::EndpointSlice::Endpoint& e : kube::ParseEndpointSlice(*slice).endpoints)
          if (e.ready.value_or(true)) out[e.target_name] = cluster.network;
      }
    }
    return out;
  }

  std::string NetworkOf(const std::string& name) const {
    for (const sim::WorldCluster& cluster : live_.world().options().clusters)
      if (cluster.name == name) return cluster.network;
    return {};
  }

  std::optional<Breach> Requests() {
    constexpr int kPatience = 6;
    for (const json& flow : Flows("200/s")) {
      const std::string to = wavetank::Text(flow, "to"), name = wavetank::Text(flow, "name");
      const std::string host = to.substr(0, to.find(':')), service = host.substr(0, host.find('.'));
      const size_t dot = host.find('.');
      const std::string ns = dot == std::string::npos ? "" : host.substr(dot + 1, host.find('.', dot + 1) - dot - 1);
      const std::map<std::string, std::string> ready = ReadyPods(service, ns);
      // So many that chance leaves out no pod: less than one in 10^12.
      const int64_t count = static_cast<int64_t>(30 * std::max<size_t>(ready.size(), 1));
      absl::StatusOr<scenario::TrafficResult> result;
      for (int attempt = 0;; ++attempt) {
        absl::StatusOr<std::string> id = live_.StartTraffic(flow, count);
        if (!id.ok()) return Breach{"actions-are-valid", std::string(Message(id.status()))};
        result = live_.FinishTraffic(*id, 60s);
        if (!result.ok()) return Breach{"actions-are-valid", std::string(Message(result.status()))};
        if (result->failed == 0) break;
        if (attempt == kPatience) {
          return Breach{"requests-are-answered",
                        fmt::format("{}: {} of {} failed{}", name, result->failed, result->sent,
                                    result->failures.empty() ? "" : ": " + result->failures[0].cause)};
        }
        // Requests wait on connections that were begun before the mesh was healed, until their 10 s are over.
        live_.RunFor(10s);
      }
      if (!trial_.scenario.empty()) continue;
      std::set<std::string> answered;
      for (const auto& [pod, requests] : result->by_pod) answered.insert(pod);
      // Beyond a gateway a kept connection stays with one pod, as in every mesh.
      const std::string network = NetworkOf(wavetank::Text(At(flow, "from"), "cluster"));
      for (const auto& [pod, where] : ready) {
        if (where == network && !answered.contains(pod))
          return Breach{"every-ready-pod-answers", fmt::format("{}: {} got none of {}", name, pod, count)};
      }
      for (const std::string& pod : answered)
        if (!ready.contains(pod))
          return Breach{"every-ready-pod-answers", fmt::format("{}: {} answered and is not ready", name, pod)};
    }
    if (invariants_ != nullptr) invariants_->LookNow();
    return Safety();
  }

 public:
  // Bugs of the simulated release that were met besides what invariants told of.
  const std::set<std::string>& known() const { return known_; }

  std::function<void(const sim::TrafficRecord&)> on_request;

 private:
  const Trial& trial_;
  LiveWorld& live_;
  session::Watch& watch_;
  MomentWatch& moments_;
  bool struck_ = false;                    // a moment did something
  std::vector<Event> happened_;            // of history and moments, in order
  sim::InvariantWatch* const invariants_;  // null: none was asked for
  std::vector<std::string> background_;
  std::optional<Breach> wrong_;
  std::set<std::string> known_;
};

// As FoundationDB does it: many runs have none, the others some, so that one does not hide what another shows.
std::vector<std::string> ArbitraryPoints(Choices& choices) {
  constexpr int64_t kOneIn = 4;
  std::vector<std::string> out;
  if (choices.Maybe()) return out;
  for (const BuggifyRow& row : BuggifyRows())
    if (choices.Between(1, kOneIn) == 1) out.emplace_back(row.name);
  return out;
}

}  // namespace

Trial MakeTrial(uint64_t seed, const std::string& scenario, const std::string& profile, const Sizes& sizes) {
  Trial out;
  out.seed = seed;
  out.scenario = scenario;
  out.profile = profile;
  SeedChoices mesh(seed, "swarm mesh"), history(seed, "swarm history"), moments(seed, "swarm moments");
  if (scenario.empty()) {
    out.mesh = ArbitraryMesh(mesh, sizes);
  } else {
    const absl::StatusOr<scenario::Scenario> read = scenario::LoadScenario(scenario);
    if (!read.ok()) return out;  // Try() tells it
    absl::StatusOr<Mesh> made = MeshOf(*read);
    if (!made.ok()) return out;
    out.mesh = *std::move(made);
  }
  out.mesh.seed = seed;
  out.history = ArbitraryHistory(history, out.mesh, sizes);
  out.moments = ArbitraryMoments(moments, out.mesh, sizes);
  SeedChoices buggify(seed, "swarm buggify");
  if (sizes.faults) out.buggify = ArbitraryPoints(buggify);
  return out;
}

Verdict Try(const Trial& trial, const std::string& log) {
  Verdict out;
  absl::StatusOr<scenario::Scenario> scenario = ScenarioOf(trial);
  if (scenario.ok() && !trial.scenario.empty()) {
    if (const absl::StatusOr<Mesh> mesh = MeshOf(*scenario); !mesh.ok()) scenario = mesh.status();
  }
  if (!scenario.ok()) {
    out.error = Message(scenario.status());
    return out;
  }
  std::unique_ptr<session::Watch> watch;
  std::unique_ptr<Sometimes> sometimes;
  std::unique_ptr<MomentWatch> moments;
  absl::StatusOr<std::unique_ptr<sim::InvariantWatch>> invariants = nullptr;
  absl::StatusOr<std::unique_ptr<LiveWorld>> live = LiveWorld::Open(*std::move(scenario), [&](sim::World& world) {
    watch = std::make_unique<session::Watch>(world);
    sometimes = std::make_unique<Sometimes>(world);
    moments = std::make_unique<MomentWatch>(world, trial.moments);
    // The digest is the seed's, whatever is watched.
    if (!trial.invariants.empty())
      invariants = sim::InvariantWatch::Attach(world, trial.invariants, {.in_trace = false});
  });
  for (const absl::Status& status : {live.status(), invariants.status()}) {
    if (status.ok()) continue;
    out.error = Message(status);
    return out;
  }
  Life life(trial, **live, *watch, *moments, invariants->get());
  life.on_request = [&](const sim::TrafficRecord& record) { sometimes->Request(record); };
  const std::optional<Breach> wrong = life.Live();
  (*live)->on_request = nullptr;
  out.held = !wrong.has_value();
  if (wrong) {
    out.invariant = wrong->invariant;
    out.what = wrong->what;
  }
  out.lived = (*live)->world().Now() - (*live)->world().options().start;
  out.at = Time{} + out.lived;
  out.digest = (*live)->Digest();
  for (const std::string_view each : sometimes->reached()) out.reached.emplace(each);
  if (const wavetank::Buggify* buggify = wavetank::Buggify::Of(&(*live)->world().kernel().run())) {
    for (const BuggifyRow& row : BuggifyRows())
      if (buggify->fired(row.point) > 0) out.fired.emplace(row.name, buggify->fired(row.point));
  }
  out.known = life.known();
  if (*invariants != nullptr) {
    for (const sim::Violation& each : (*invariants)->violations()) {
      if (!each.known.empty()) out.known.insert(each.known);
    }
  }
  if (!log.empty()) {
    if (absl::Status status = (*live)->WriteLog(log); !status.ok()) out.error = Message(status);
  }
  return out;
}

namespace {

// Without each of `of` in turn, as long as the same invariant breaks; whether any could go.
template <class T>
bool Without(Trial* trial, std::vector<T> Trial::*of, const Verdict& broken) {
  bool smaller = false;
  for (size_t i = (trial->*of).size(); i-- > 0;) {
    Trial without = *trial;
    (without.*of).erase((without.*of).begin() + static_cast<std::ptrdiff_t>(i));
    const Verdict verdict = Try(without, "");
    if (verdict.held || verdict.invariant != broken.invariant) continue;
    *trial = std::move(without);
    smaller = true;
  }
  return smaller;
}

}  // namespace

Trial Shrink(Trial trial, const Verdict& broken) {
  for (bool smaller = true; smaller;) {
    smaller = Without(&trial, &Trial::buggify, broken);
    smaller = Without(&trial, &Trial::moments, broken) || smaller;
    smaller = Without(&trial, &Trial::history, broken) || smaller;
  }
  return trial;
}

}  // namespace wavetank::swarm
