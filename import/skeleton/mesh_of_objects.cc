#include "import/skeleton/mesh_of_objects.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"
#include "import/report/report.h"
#include "import/skeleton/history.h"
#include "import/skeleton/parts.h"
#include "import/skeleton/places.h"
#include "import/skeleton/traffic_parts.h"
#include "record/mesh_facts.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using Key = ObjectKey;

// In the order in which a world is told of them: what runs comes last, and finds what it reads. As record/ does.
int Rank(const std::string& kind) {
  static const std::map<std::string, int> kRanks = {{"Namespace.", 0}, {"Node.", 1},
                                                    {"Secret.", 2},    {"ConfigMap.", 3},
                                                    {"Service.", 5},   {"EndpointSlice.discovery.k8s.io", 6},
                                                    {"Pod.", 7}};
  const auto it = kRanks.find(kind);
  return it == kRanks.end() ? 4 : it->second;
}

// The objects of dumps that no history tells of, and what all sources cover.
DumpedMesh Dumped(const Evidence& evidence, const KubeEvidence& kube, const std::map<Key, const KubeChange*>& first,
                  const std::set<Key>& told, const std::vector<const KubeChange*>& changes) {
  DumpedMesh out;
  for (const KubeChange& change : kube.state) {
    const Key key = KeyOfObject(change);
    const auto it = first.find(key);
    if (it != first.end() && it->second == &change && !told.contains(key)) out.objects.push_back(&change);
  }
  out.told = told;
  out.from = INT64_MAX;
  out.to = INT64_MIN;
  const auto cover = [&](WallNs at) {
    if (at == kNoTime) return;
    out.from = std::min(out.from, at);
    out.to = std::max(out.to, at);
  };
  for (const KubeChange* change : changes) cover(change->at);
  for (const Claim& claim : evidence.claims) {
    if (!claim.initial) cover(claim.at);
  }
  for (const InferredInput& input : evidence.inputs) {
    if (!input.initial) cover(input.at);
  }
  return out;
}

// Where things are, for those that lines do not place. Clusters by the world's names.
DumpedPlaces PlacesOf(const DumpedMesh& mesh, const std::string& primary) {
  DumpedPlaces out;
  out.primary = primary;
  std::map<std::string, std::string> names;
  for (const auto& [name, context] : mesh.contexts) {
    names[context] = name;
    out.clusters.insert(name);
  }
  std::map<Key, const json*> pods;
  for (const KubeChange* change : mesh.objects) {
    const std::string& cluster = names[change->cluster];
    const json& object = At(change->body, "object");
    const json& metadata = At(object, "metadata");
    const json& labels = At(metadata, "labels");
    if (change->kind == "Service.") {
      out.services.insert({cluster, change->name + "." + change->ns});
      if (!wavetank::Text(labels, "topology.istio.io/network").empty()) {
        out.gateways.insert({cluster, change->name + "." + change->ns});
      }
    } else if (change->kind == "Pod.") {
      out.pods.try_emplace({change->ns, change->name}, cluster);
      pods[KeyOfObject(*change)] = &object;
    } else if (change->kind == "Secret." && wavetank::Text(labels, "istio/multiCluster") == "true") {
      for (const auto& [remote, kubeconfig] : At(object, "data").items()) out.remotes.insert({cluster, remote});
    }
  }
  for (const KubeChange* change : mesh.objects) {
    if (change->kind != "EndpointSlice.discovery.k8s.io") continue;
    const json& object = At(change->body, "object");
    const std::string service = wavetank::Text(At(At(object, "metadata"), "labels"), "kubernetes.io/service-name");
    for (const json& endpoint : Items(At(object, "endpoints"))) {
      const json& target = At(endpoint, "targetRef");
      const auto pod = pods.find(
          {change->cluster, "Pod.", wavetank::Text(target, "namespace", change->ns), wavetank::Text(target, "name")});
      std::vector<WallNs>& born = out.pods_of[{names[change->cluster], service + "." + change->ns}];
      if (pod == pods.end()) {
        born.push_back(kNoTime);
        continue;
      }
      born.push_back(ParseWall(wavetank::Text(At(*pod->second, "metadata"), "creationTimestamp")));
      out.accounts.try_emplace(service + "." + change->ns,
                               wavetank::Text(At(*pod->second, "spec"), "serviceAccountName", "default"));
    }
  }
  return out;
}

// Secrets are in few dumps; that istiod knew a cluster, its log and its debug pages say.
void AddRemoteSecrets(const Evidence& evidence, const DumpedMesh& mesh, const std::string& primary,
                      const std::map<Key, const KubeChange*>& first, BeforeDump& before) {
  std::set<Key> done;
  for (const InferredInput& input : evidence.inputs) {
    if (!input.initial || input.kind != InputKind::kRemoteSecret) continue;
    std::string context = primary;  // the cluster whose istiod reads it
    for (const auto& [id, its] : mesh.contexts) {
      if (!input.cluster.empty() && (input.cluster == id || input.cluster == its)) context = its;
    }
    const Key key{context, "Secret.", input.ns, input.name};
    if (first.contains(key) || before.not_yet.contains(key) || !done.insert(key).second) continue;
    if (before.stand_ins.contains(key)) continue;
    std::vector<std::pair<std::string, std::string>> kubeconfigs;
    for (const auto& [cluster, effect] : input.clusters) {
      if (effect != "removed" && effect != "failed") kubeconfigs.emplace_back(cluster, KubeconfigFor(cluster, 0));
    }
    if (kubeconfigs.empty()) continue;
    KubeChange secret;
    std::tie(secret.cluster, secret.kind, secret.ns, secret.name) = key;
    secret.input_kind = "apply";
    secret.body = {{"object", RemoteSecretObject(input.ns, input.name, kubeconfigs, 0)}};
    before.stand_ins.emplace(key, std::move(secret));
  }
}

}  // namespace

replay::LogInput ClaimInput(const Claim& claim, const std::string& istiod, Time at) {
  json body = ParseJson(JsonText(ToJson(claim)));
  body["istiod"] = istiod;
  return {at, 0, "claim", {{"claim", std::move(body)}}};
}

absl::StatusOr<Skeleton> MakeMeshOfObjects(const Evidence& evidence, const KubeEvidence& kube) {
  Skeleton out;
  std::map<Key, const KubeChange*> first;
  std::vector<const KubeChange*> changes;
  size_t repeated = 0;
  for (const KubeChange& change : kube.state)
    repeated += first.insert_or_assign(KeyOfObject(change), &change).second ? 0 : 1;
  if (repeated > 0)
    out.notes.push_back(fmt::format("{} objects are told of more than once; the last stands", repeated));
  for (const KubeChange& change : kube.history) changes.push_back(&change);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KubeChange* a, const KubeChange* b) { return a->at < b->at; });
  std::set<Key> told;
  for (const KubeChange* change : changes) {
    if (!told.insert(KeyOfObject(*change)).second) continue;
    // A dump is of later, or of whenever: how the object began, its own history says.
    first.erase(KeyOfObject(*change));
    if (!change->created && !change->deleted) first[KeyOfObject(*change)] = change;
  }
  // Contexts, as a recording has them. What came later says as much of its cluster as what was there.
  std::map<Key, const KubeChange*> all = first;
  for (const KubeChange* change : changes) {
    if (!change->deleted) all.try_emplace(KeyOfObject(*change), change);
  }
  std::vector<record::ClusterFacts> ordered;
  for (const auto& [key, change] : all) {  // cluster by cluster
    if (ordered.empty() || ordered.back().context() != change->cluster) {
      ordered.emplace_back(change->cluster, kSystemNamespace);
    }
    json body = change->Body();
    if (!At(body, "object").is_object()) continue;
    const absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body["object"]));
    if (object.ok()) ordered.back().Read(**object);
  }
  if (ordered.empty()) return absl::InvalidArgumentError("no object of a cluster is told in full: no mesh can be made");
  // Clusters of which logs alone tell are made of these.
  std::set<std::string> others;
  for (const InferredInput& input : evidence.inputs) {
    for (const auto& [cluster, effect] : input.clusters) others.insert(cluster);
  }
  record::MeshFacts facts = record::ReadMeshFacts(ordered, others);
  out.world = std::move(facts.world);
  out.world.seed = 1;
  for (std::string& note : facts.notes) out.notes.push_back(std::move(note));
  std::map<std::string, std::string> names;  // of the world's clusters, by context
  for (size_t i = 0; i < ordered.size(); ++i) names[ordered[i].context()] = out.world.clusters[i].name;

  DumpedMesh dumped = Dumped(evidence, kube, first, told, changes);
  for (const auto& [context, name] : names) dumped.contexts[name] = context;
  std::string primary;
  for (const sim::WorldCluster& cluster : out.world.clusters) {
    if (primary.empty() && cluster.control_plane == cluster.name) primary = cluster.name;
  }
  const Skeleton logs = ChangesOfLogs(evidence, PlacesOf(dumped, primary));
  for (const sim::WorldCluster& cluster : logs.world.clusters) {
    if (dumped.contexts.contains(cluster.name)) continue;
    out.world.clusters.push_back(cluster);
    names[cluster.name] = cluster.name;
  }
  for (sim::WorldCluster& cluster : out.world.clusters) {
    // An istiod of which there is a log runs, though the dump may hold no pods.
    for (const sim::WorldCluster& made : logs.world.clusters) {
      if (made.name == cluster.name && made.control_plane == made.name) cluster.control_plane = cluster.name;
    }
  }
  out.notes.insert(out.notes.end(), logs.notes.begin(), logs.notes.end());
  BeforeDump before;
  if (dumped.from <= dumped.to) before = InferBefore(evidence, logs, dumped);
  AddRemoteSecrets(evidence, dumped, dumped.contexts[primary], first, before);
  for (const Key& key : before.not_yet) first.erase(key);
  for (const auto& [key, stand_in] : before.stand_ins) first[key] = &stand_in;
  for (const KubeChange& change : before.changes) changes.push_back(&change);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KubeChange* a, const KubeChange* b) { return a->at < b->at; });
  if (!before.told.empty()) {
    out.notes.push_back(
        fmt::format("{} changes before the dump are inferred, of logs and creation times (--timeline shows them)",
                    before.told.size()));
  }
  out.inferred = std::move(before.told);
  const WallNs begin = dumped.from;
  out.begins = (begin == INT64_MAX ? WallNs{0} : begin) - kComesUp.count();
  const auto at = [&](WallNs wall) {
    return out.world.start + std::max(Duration::zero(), Duration(wall - out.begins));
  };
  const auto put = [&](const KubeChange& change, Time when) {
    const std::string& cluster = names[change.cluster];
    if (cluster.empty()) return;
    if (change.deleted) {
      json body = {{"cluster", cluster}, {"kind", change.kind}, {"name", change.name}};
      if (!change.ns.empty()) body["namespace"] = change.ns;
      out.inputs.emplace_back(replay::LogInput{when, 0, "delete", std::move(body)});
      return;
    }
    json body = change.packed.empty() ? change.body : json::object();
    body["cluster"] = cluster;
    out.inputs.emplace_back(replay::LogInput{when, 0, change.input_kind, std::move(body)}, change.packed);
  };
  std::vector<const KubeChange*> picture;
  for (const auto& [key, change] : first) picture.push_back(change);
  std::stable_sort(picture.begin(), picture.end(),
                   [](const KubeChange* a, const KubeChange* b) { return Rank(a->kind) < Rank(b->kind); });
  for (const KubeChange* change : picture) put(*change, out.world.start);
  for (const KubeChange* change : changes) put(*change, at(change->at));
  // Requests, from pods that are there.
  size_t strangers = 0, number = 0;
  const auto cluster_of = [&](const std::string& name) {
    if (const auto it = names.find(name); it != names.end()) return it->second;
    for (const sim::WorldCluster& cluster : out.world.clusters) {
      if (cluster.name == name) return name;
    }
    return std::string();
  };
  for (const InferredInput& input : evidence.inputs) {
    if (!IsTraffic(input)) continue;
    const std::string cluster = cluster_of(input.cluster);
    if (cluster.empty()) {
      ++strangers;
    } else if (input.kind == InputKind::kTraffic) {
      out.inputs.push_back(TrafficInput(input, cluster, input.ns, number++, at(input.at)));
    } else {
      out.inputs.push_back(BehaviourInput(input, cluster, input.ns, input.name, at(input.at)));
    }
  }
  if (strangers > 0) {
    out.notes.push_back(
        fmt::format("{} flows and behaviours are of pods that no object tells of; they are not done", strangers));
  }
  std::map<std::string, std::string> istiods;
  for (const IstiodRun& run : evidence.runs) istiods[run.replica] = run.cluster;
  // What was held when the dump was made, whose own time no file tells: when all has happened and come to rest.
  const WallNs end = std::max(dumped.to, out.begins + kComesUp.count()) + Duration(10s).count();
  for (const Claim& claim : evidence.claims) {
    if (claim.initial) continue;
    Claim known = claim;  // of a cluster as the world calls it
    if (std::string cluster = cluster_of(claim.type); !cluster.empty()) known.type = std::move(cluster);
    out.inputs.push_back(
        ClaimInput(known, cluster_of(istiods[claim.replica]), at(claim.at == kNoTime ? end : claim.at)));
  }
  std::stable_sort(out.inputs.begin(), out.inputs.end(),
                   [](const MeshInput& a, const MeshInput& b) { return a.at < b.at; });
  for (size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i].seq = i;
  return out;
}

}  // namespace wavetank::importing
