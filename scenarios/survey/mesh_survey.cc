#include "scenarios/survey/mesh_survey.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/kube/label_selector.h"
#include "core/kube/types.h"
#include "core/model/labels.h"
#include "fakes/envoy/envoy.h"
#include "scenarios/answers/address_names.h"
#include "scenarios/answers/failure_words.h"
#include "scenarios/mesh/gaps.h"
#include "scenarios/mesh/installer_files.h"
#include "scenarios/mesh/manifests.h"
#include "scenarios/mesh/system_namespaces.h"
#include "scenarios/mesh/world.h"
#include "scenarios/results/nacks.h"
#include "scenarios/runner/start.h"
#include "sim/inputs/kinds/objects.h"
#include "sim/signing/istio_csr_settings.h"
#include "sim/world.h"

namespace wavetank::scenario {
namespace {

using nlohmann::json;

using pilot::kNetworkLabel;
constexpr Duration kSurveySettleLimit = 5min;
constexpr Duration kRequestLimit = 1min;
// Each client's to each Service and port.
constexpr int64_t kRequests = 20, kFewestRequests = 3;

bool BringsRoots(const std::vector<json>& objects) {
  return std::any_of(objects.begin(), objects.end(), [](const json& object) {
    return Text(object, "kind") == "Secret" && Text(At(object, "metadata"), "name") == "cacerts";
  });
}

class Surveyor {
 public:
  explicit Surveyor(const SurveyOptions& options) : options_(options) {}

  absl::StatusOr<Survey> Run() {
    absl::StatusOr<MeshPlan> plan = PlanMesh(options_);
    if (!plan.ok()) return plan.status();
    scenario_ = std::move(plan->scenario);
    survey_.notes = plan->start.notes;
    system_ = plan->start.system_namespaces;
    absl::StatusOr<std::unique_ptr<sim::World>> world = sim::World::Create(MakeWorldOptions(scenario_));
    if (!world.ok()) return world.status();
    world_ = *std::move(world);
    for (const auto& [what, cluster] : plan->start.mended) world_->Mended(what, cluster);
    for (const std::vector<sim::Input>& phase : plan->start.phases) {
      Say("applying manifests");
      for (const sim::Input& input : phase) {
        if (absl::Status status = world_->Do(input); !status.ok()) return AtItsPlace(scenario_, input, status);
      }
      if (!world_->RunUntilSettled(world_->Now() + kSurveySettleLimit)) {
        const std::string_view waits = "the mesh has not settled after 5 minutes";
        if (!std::count(survey_.notes.begin(), survey_.notes.end(), waits)) survey_.notes.emplace_back(waits);
      }
    }
    for (const std::string& complaint : world_->Complaints()) survey_.notes.push_back(complaint);
    for (std::string& line : world_->MendedLines()) survey_.mended.push_back(std::move(line));
    survey_.unready = world_->Unready();
    for (std::string& line : world_->LeftOut()) survey_.notes.push_back(std::move(line));
    for (std::string& line : NotesOfOtherReleases(*world_)) survey_.notes.push_back(std::move(line));
    TellOfPodsWithoutSidecar();
    TellOfUndeclaredPorts();
    survey_.services = ListServices(*world_);
    survey_.endpoints = ListEndpoints(*world_);
    Say("sending requests");
    if (absl::Status status = SendRequests(); !status.ok()) return status;
    survey_.nacks = NackTally(*world_).All();
    survey_.without_effect = WithoutEffectOf(*world_);
    for (std::string& note : ScriptNotes(*world_)) survey_.notes.push_back(std::move(note));
    for (std::string& note : PanicNotes(*world_)) survey_.notes.push_back(std::move(note));
    survey_.digest = world_->kernel().digest().Hex();
    return std::move(survey_);
  }

 private:
  void Say(std::string_view what) const {
    if (options_.progress) options_.progress(what);
  }

  // A namespace without its label is the most common reason why a mesh of several clusters does not balance: nothing
  // fails, but everyone stays at home.
  void TellOfPodsWithoutSidecar() {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> apps;  // by cluster and namespace
    for (const sim::PodProcess* pod : world_->Pods()) {
      if (pod->app().empty() || pod->app() == "istiod" || pilot::HasProxy(pod->pod()->body)) continue;
      if (!world_->WhyLeftOut(*pod).empty()) continue;  // LeftOut() says why it has none
      if (ServesTheMesh(*pod) || IsOfAmbient(*pod)) continue;
      apps[{pod->site().name, pod->pod()->meta.ns}].insert(pod->app());
    }
    for (const auto& [where, names] : apps) {
      survey_.notes.push_back(
          fmt::format("{}: {} in namespace {} {} without a sidecar, outside the mesh, and {} no other cluster's pods; "
                      "to change that, "
                      "label the namespace istio-injection=enabled or the pods sidecar.istio.io/inject=true",
                      where.first, fmt::join(names, ", "), where.second, names.size() == 1 ? "is" : "are",
                      names.size() == 1 ? "reaches" : "reach"));
    }
  }

  bool OfTheSystem(const std::string& ns) const { return ns == "kube-system" || system_.contains(ns); }

  // In a namespace without sidecars by its label, which a note names.
  bool IsOfAmbient(const sim::PodProcess& pod) const {
    const kube::ObjectRef ns = world_->cluster(pod.site().name).api().Get("Namespace", {"", pod.pod()->meta.ns});
    const auto mode = ns == nullptr ? kube::Labels::const_iterator() : ns->meta.labels.find("istio.io/dataplane-mode");
    return ns != nullptr && mode != ns->meta.labels.end() && mode->second == "ambient";
  }

  static bool IsSigner(const sim::PodProcess* pod) { return sim::IstioCsrSettings::Of(pod->pod()->body).has_value(); }

  // Of the system: on each node istio-cni, ztunnel, kube-proxy; cert-manager's istio-csr.
  bool ServesTheMesh(const sim::PodProcess& pod) const {
    if (IsSigner(&pod)) return true;
    const json& owners = Items(At(pod.pod()->body, {"metadata", "ownerReferences"}));
    return OfTheSystem(pod.pod()->meta.ns) && std::any_of(owners.begin(), owners.end(), [](const json& owner) {
             return Text(owner, "kind") == "DaemonSet";
           });
  }

  // Simulated applications listen on the ports that their containers declare; real ones may on others.
  void TellOfUndeclaredPorts() {
    for (const ClusterSpec& cluster : scenario_.clusters) {
      for (const kube::ObjectRef& object : world_->cluster(cluster.name).api().List("Service")) {
        const kube::Service& service = kube::ParseService(*object);
        if (!service.has_selector || OfTheSystem(object->meta.ns)) continue;
        const std::vector<const sim::PodProcess*> pods = PodsOf(cluster.name, *object, service);
        if (pods.empty()) continue;
        std::vector<int> refused;
        for (const kube::ServicePort& port : service.ports) {
          const int target = port.Target();
          if (port.protocol != "TCP" || !port.target_port_name.empty()) continue;
          const bool listens = std::any_of(pods.begin(), pods.end(), [&](const sim::PodProcess* pod) {
            return pod->router() || pod->Listens(static_cast<uint16_t>(target));
          });
          if (!listens) refused.push_back(target);
        }
        if (refused.empty()) continue;
        survey_.notes.push_back(
            fmt::format("{}: connections to {}.{} are refused: no container of its pods declares port {} as its "
                        "containerPort, and applications here listen on those alone",
                        cluster.name, object->meta.name, object->meta.ns, fmt::join(refused, ", ")));
      }
    }
  }

  std::vector<const sim::PodProcess*> PodsOf(const std::string& cluster, const kube::Object& object,
                                             const kube::Service& service) const {
    const kube::LabelSelector selector = kube::LabelSelector::FromLabels(service.selector);
    std::vector<const sim::PodProcess*> out;
    for (const sim::PodProcess* pod : world_->Pods()) {
      const bool here = pod->site().name == cluster && pod->pod()->meta.ns == object.meta.ns;
      if (here && selector.Matches(pod->pod()->meta.labels)) out.push_back(pod);
    }
    return out;
  }

  // Every application that calls, against every Service of applications.
  absl::Status SendRequests() {
    std::set<std::tuple<std::string, std::string, std::string>> clients;  // cluster, namespace, app
    for (const sim::PodProcess* pod : world_->Pods()) {
      if (pod->app().empty() || pod->app() == "istiod" || pod->router() || ServesTheMesh(*pod)) continue;
      clients.insert({pod->site().name, pod->pod()->meta.ns, pod->app()});
    }
    std::set<std::tuple<std::string, std::string, int>> targets;  // namespace, Service, port
    for (const ClusterSpec& cluster : scenario_.clusters) {
      for (const kube::ObjectRef& object : world_->cluster(cluster.name).api().List("Service")) {
        const kube::Service& service = kube::ParseService(*object);
        const auto behind = PodsOf(cluster.name, *object, service);
        const bool signs = service.has_selector && std::any_of(behind.begin(), behind.end(), IsSigner);
        if (OfTheSystem(object->meta.ns) || signs) continue;
        for (const kube::ServicePort& port : service.ports) {
          if (port.protocol == "TCP") targets.insert({object->meta.ns, object->meta.name, port.port});
        }
      }
    }
    std::map<std::string, size_t> row_of;
    addresses_.emplace(*world_);
    addresses_->Learn();
    Subscription answers = world_->commons().on_request.Add([&](const sim::TrafficRecord& record) {
      const auto it = row_of.find(record.spec.id);
      if (it == row_of.end()) return;
      ReachabilityRow& row = survey_.reachability[it->second];
      CountTries(it->second, record);
      const bool ok = sim::Answered(record);
      if (ok) {
        ++row.answered_by[record.server->cluster];
      } else {
        std::string why = envoysim::ResponseFlagsToString(record.record.flags);
        if (why == "-") why = record.record.details.empty() ? "refused" : std::string(record.record.details);
        // What the far sidecar says is the reason, an AuthorizationPolicy's refusal for one.
        if (why == "via_upstream" && !record.record.server_details.empty()) why = record.record.server_details;
        ++row.failed[why];
      }
    });
    const auto pairs = static_cast<int64_t>(std::max<size_t>(clients.size() * targets.size(), 1));
    requests_ = options_.requests.value_or(std::clamp(options_.too_many / pairs, kFewestRequests, kRequests));
    if (!options_.requests && requests_ < kRequests) {
      survey_.notes.push_back(fmt::format(
          "{} clients call {} Services' ports, {} requests each; --requests {} sends as many as in smaller meshes",
          clients.size(), targets.size(), requests_, kRequests));
    }
    std::vector<std::string> ids;
    for (const auto& [cluster, ns, app] : clients) {
      for (const auto& [service_ns, service, port] : targets) {
        FlowSpec flow;
        flow.name = fmt::format("{}/{}.{}", cluster, app, ns);
        flow.from_cluster = cluster;
        flow.from_namespace = ns;
        flow.from_app = app;
        flow.host = fmt::format("{}.{}", service, service_ns);
        flow.port = port;
        Traffic traffic;
        traffic.requests = requests_;
        const std::string id = fmt::format("{}->{}:{}", flow.name, flow.host, port);
        ReachabilityRow row;
        row.client_cluster = cluster;
        row.client = app + "." + ns;
        row.service = fmt::format("{}:{}", flow.host, port);
        row_of[id] = survey_.reachability.size();
        survey_.reachability.push_back(std::move(row));
        ids.push_back(id);
        if (absl::Status status = world_->Do(MakeTraffic(flow, traffic, id)); !status.ok()) return status;
      }
    }
    const Time deadline = world_->Now() + kRequestLimit;
    const auto done = [&] {
      return std::all_of(ids.begin(), ids.end(), [&](const std::string& id) { return world_->TrafficDone(id); });
    };
    while (!done() && world_->Now() < deadline) world_->RunUntil(world_->Now() + 50ms);
    answers.Cancel();
    for (ReachabilityRow& row : survey_.reachability) {
      int64_t known = 0;
      for (const auto& [cluster, count] : row.answered_by) known += count;
      for (const auto& [flags, count] : row.failed) known += count;
      if (known < requests_) row.failed["no answer within 1 minute"] = requests_ - known;
    }
    TellOfDeadWays();
    return absl::OkStatus();
  }

  // A request that was retried elsewhere is answered: what its first tries met is seen here alone.
  void CountTries(size_t row, const sim::TrafficRecord& t) {
    const envoysim::RequestRecord& r = t.record;
    const auto count = [&](const envoysim::SocketAddress& upstream, bool failed, const FailureFacts& facts) {
      if (upstream == envoysim::SocketAddress{}) return;
      Way& way = ways_[{row, addresses_->Of(upstream)}];
      ++way.tries;
      if (!failed) return;
      ++way.failed;
      if (way.cause.empty()) {
        way.cause = FailureInWords(facts);
        if (const std::string obstacle = addresses_->Obstacle(t.client, upstream, r.cluster); !obstacle.empty()) {
          way.cause += " (" + obstacle + ")";
          way.kept = true;
        }
      }
      if (way.reason.empty()) way.reason = facts.transport_failure;
    };
    if (r.failed_tries != nullptr) {
      for (const envoysim::FailedTry& each : *r.failed_tries) {
        count(each.upstream, true, FactsOf(each, r.cluster));
      }
    }
    const bool ok = sim::Answered(t);
    count(r.upstream, !ok, FactsOf(r));
  }

  void TellOfDeadWays() {
    for (const auto& [key, way] : ways_) {
      if (way.failed < way.tries) continue;
      const ReachabilityRow& row = survey_.reachability[key.first];
      DeadWay dead{row.client_cluster, row.client, row.service, key.second, way.cause, way.reason, way.tries};
      if (dead.ByTls() || way.kept || !row.answered_by.empty()) survey_.dead.push_back(std::move(dead));
    }
  }

  const SurveyOptions& options_;
  Scenario scenario_;
  SystemNamespaceSet system_;
  int64_t requests_ = 0;  // of each client to each Service and port
  std::unique_ptr<sim::World> world_;
  Survey survey_;
  std::optional<AddressNames> addresses_;
  struct Way {
    int64_t tries = 0, failed = 0;
    std::string cause, reason;
    bool kept = false;  // by the network itself
  };
  std::map<std::pair<size_t, std::string>, Way> ways_;  // by row of reachability and upstream
};

// Gateways' manifests say what their istiod, which is among others, calls the cluster. Two clusters have two IDs.
void TellOfIds(Scenario* scenario, std::vector<std::string>* notes) {
  std::multiset<std::string> ids;
  for (const ClusterSpec& each : scenario->clusters) ids.insert(each.installed_name);
  for (ClusterSpec& each : scenario->clusters) {
    if (each.installed_name == each.name || ids.count(each.installed_name) > 1) each.installed_name.clear();
    if (each.installed_name.empty()) continue;
    notes->push_back(
        fmt::format("{}: its proxies' manifests say cluster ID {}, and an istiod that is put there says so, too",
                    each.name, each.installed_name));
  }
}

// Of a mesh of several, where Secrets name clusters by their IDs, clusters that folders name are called as their
// istiods do. Old names to new.
std::map<std::string, std::string> RenameByIds(const std::map<std::string, std::string>& ids, Scenario* scenario,
                                               std::vector<std::string>* notes) {
  std::map<std::string, std::string> out;
  if (scenario->clusters.size() < 2) return out;
  std::multiset<std::string> taken;
  for (const ClusterSpec& each : scenario->clusters) taken.insert(each.name);
  for (const auto& [name, id] : ids) taken.insert(id);
  for (const auto& [name, id] : ids) {
    if (id.empty() || id == name || taken.count(id) > 1) continue;
    out[name] = id;
    notes->push_back(fmt::format("{}: is cluster {} here, as its istiod's CLUSTER_ID says", name, id));
  }
  for (ClusterSpec& each : scenario->clusters) {
    for (std::string* name : {&each.name, &each.control_plane}) {
      if (const auto it = out.find(*name); it != out.end()) *name = it->second;
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<MeshPlan> PlanMesh(const SurveyOptions& options) {
  MeshPlan out;
  out.scenario.name = "apply";
  out.scenario.file = "apply";
  out.scenario.seed = options.seed;
  out.scenario.profile = options.profile;
  bool brings_secrets = false, sketch = true;
  out.scenario.mending = options.mending;
  out.scenario.date = options.date;
  std::vector<std::pair<std::string, std::string>> to_label;  // cluster, namespace
  std::map<std::string, std::string> own_ids;                 // what their istiods call clusters that folders name
  std::vector<std::string> notes;
  for (const SurveyCluster& c : options.clusters) {
    ClusterSpec spec;
    spec.name = c.name;
    spec.control_plane = c.control_plane.empty() ? c.name : c.control_plane;
    spec.nodes.push_back({c.name + "-node1", "region1", "zone1", ""});
    spec.nodes_untold = true;
    for (const std::string& path : c.paths) {
      spec.manifests.push_back({path, c.ns, ""});
      spec.manifests.back().unmatched_left_out = options.unmatched_left_out;
    }
    if (absl::Status status = GiveSettings(c.set, &spec); !status.ok()) return status;
    absl::StatusOr<std::vector<json>> objects = LoadClusterManifests(spec, nullptr);  // MakeStart() tells the notes
    if (!objects.ok()) return objects.status();
    bool labelled = false;
    const SystemNamespaceSet system = SystemNamespaces(*objects);
    brings_secrets = brings_secrets || !TakeCutOut(&*objects, system).clusters.empty();
    spec.network = NetworkOf(*objects, system, &labelled);
    if (BringsControlPlane(*objects, system) || BringsRoots(*objects)) sketch = false;
    if (!spec.network.empty() && !labelled) to_label.emplace_back(spec.name, MainOf(system));
    if (spec.network.empty()) spec.network = "network1";
    if (!BringsIstiod(*objects)) spec.installed_name = ClusterIdOfProxies(*objects);
    if (c.by_folder) own_ids[c.name] = ClusterIdOfIstiods(*objects);
    brings_secrets = brings_secrets || BringsRemoteSecrets(*objects);
    out.scenario.clusters.push_back(std::move(spec));
  }
  TellOfIds(&out.scenario, &notes);
  const std::map<std::string, std::string> renamed = RenameByIds(own_ids, &out.scenario, &notes);
  for (auto& [name, ns_name] : to_label) {
    if (const auto it = renamed.find(name); it != renamed.end()) name = it->second;
  }
  if (!options.mending.Does(sim::Mend::kRoots, sketch)) out.scenario.ca = CaPlan::kSelfSigned;
  // What was chosen MakeStart() does.
  const auto left_out = [&](sim::Mend what) {
    return sketch && options.mending.Of(what) == sim::Mending::Choice::kSketch;
  };
  if (!left_out(sim::Mend::kNetwork)) to_label.clear();
  const bool gives_secrets = options.remote_secrets && options.mending.Does(sim::Mend::kTokens, sketch);
  if (!options.remote_secrets) out.scenario.mending = out.scenario.mending.Without(sim::Mend::kTokens);
  if (!gives_secrets && !brings_secrets && out.scenario.clusters.size() > 1) {
    notes.emplace_back(
        "the manifests bring no remote Secrets, so that no istiod knows another cluster; `wavetank "
        "create-remote-secret` prints one, --mend tokens gives each istiod one for each other cluster");
  }
  if (gives_secrets && !brings_secrets) {
    for (const ClusterSpec& in : out.scenario.clusters) {
      for (const ClusterSpec& of : out.scenario.clusters) {
        if (in.name != of.name && in.primary()) out.scenario.remote_secrets.push_back({of.name, in.name});
      }
    }
    if (!out.scenario.remote_secrets.empty()) {
      notes.emplace_back("the manifests bring no remote Secrets; every istiod was given one for each other cluster");
    }
  }
  absl::StatusOr<StartPhases> start = MakeStart(out.scenario);
  if (!start.ok()) return start.status();
  if (options.strict) {
    if (absl::Status status = Strictly(*start); !status.ok()) return status;
  }
  if (!options.calendar) DateByCertificates(*start, &out.scenario, &notes);
  // The guides label the system namespace by hand, which no manifest shows.
  for (const auto& [name, ns_name] : to_label) {
    const ClusterSpec& cluster = *out.scenario.FindCluster(name);
    notes.push_back(fmt::format("{}: namespace {} was labelled {}={}, as its gateway is", name, ns_name, kNetworkLabel,
                                cluster.network));
    start->phases[0].insert(start->phases[0].begin(),
                            sim::inputs::ApplyObject{name, LabelledNamespace(ns_name, cluster.network)});
  }
  out.start = *std::move(start);
  out.start.notes.insert(out.start.notes.begin(), notes.begin(), notes.end());
  return out;
}

std::vector<ServiceRow> ListServices(sim::World& world) {
  std::vector<ServiceRow> out;
  for (const sim::WorldCluster& cluster : world.options().clusters) {
    for (const kube::ObjectRef& object : world.cluster(cluster.name).api().List("Service")) {
      const kube::Service& service = kube::ParseService(*object);
      ServiceRow row{cluster.name, object->meta.ns, object->meta.name, service.type, service.cluster_ip, "", ""};
      for (const auto& ingress : service.ingress) {
        row.external += (row.external.empty() ? "" : ",") + (ingress.ip.empty() ? ingress.hostname : ingress.ip);
      }
      for (const kube::ServicePort& port : service.ports) {
        row.ports += fmt::format("{}{}/{}", row.ports.empty() ? "" : ",", port.port, port.protocol);
      }
      out.push_back(std::move(row));
    }
  }
  return out;
}

absl::StatusOr<Survey> SurveyMesh(const SurveyOptions& options) { return Surveyor(options).Run(); }

nlohmann::ordered_json SurveyJson(const Survey& s) {
  nlohmann::ordered_json out;
  out["services"] = nlohmann::ordered_json::array();
  for (const ServiceRow& r : s.services) {
    out["services"].push_back({{"cluster", r.cluster},
                               {"namespace", r.ns},
                               {"name", r.name},
                               {"type", r.type},
                               {"clusterIP", r.cluster_ip},
                               {"external", r.external},
                               {"ports", r.ports}});
  }
  out["endpoints"] = EndpointsJson(s.endpoints);
  out["reachability"] = nlohmann::ordered_json::array();
  for (const ReachabilityRow& r : s.reachability) {
    out["reachability"].push_back({{"cluster", r.client_cluster},
                                   {"client", r.client},
                                   {"service", r.service},
                                   {"answeredBy", r.answered_by},
                                   {"failed", r.failed}});
  }
  out["deadPaths"] = nlohmann::ordered_json::array();
  for (const DeadWay& d : s.dead) {
    out["deadPaths"].push_back({{"cluster", d.client_cluster},
                                {"client", d.client},
                                {"service", d.service},
                                {"upstream", d.upstream},
                                {"cause", d.cause},
                                {"reason", d.reason},
                                {"tries", d.tries}});
  }
  out["notes"] = s.notes;
  out["mended"] = s.mended;
  out["unready"] = s.unready;
  out["nacks"] = ToJson(s.nacks);
  out["withoutEffect"] = ToJson(s.without_effect);
  out["digest"] = s.digest;
  return out;
}

}  // namespace wavetank::scenario
