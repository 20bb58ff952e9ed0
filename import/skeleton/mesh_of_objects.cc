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
#include "record/mesh_facts.h"

namespace wavetank::importing {
namespace {

using nlohmann::json;
using Key = std::tuple<std::string, std::string, std::string, std::string>;  // cluster, kind, namespace, name

Key KeyOf(const KubeChange& change) { return {change.cluster, change.kind, change.ns, change.name}; }

// In the order in which a world is told of them: what runs comes last, and finds what it reads. As record/ does.
int Rank(const std::string& kind) {
  static const std::map<std::string, int> kRanks = {{"Namespace.", 0}, {"Node.", 1},
                                                    {"Secret.", 2},    {"ConfigMap.", 3},
                                                    {"Service.", 5},   {"EndpointSlice.discovery.k8s.io", 6},
                                                    {"Pod.", 7}};
  const auto it = kRanks.find(kind);
  return it == kRanks.end() ? 4 : it->second;
}

}  // namespace

replay::LogInput ClaimInput(const Claim& claim, const std::string& istiod, Time at) {
  json body = json::parse(JsonText(ToJson(claim)), nullptr, false);
  body["istiod"] = istiod;
  return {at, 0, "claim", {{"claim", std::move(body)}}};
}

absl::StatusOr<Skeleton> MakeMeshOfObjects(const Evidence& evidence, const KubeEvidence& kube) {
  Skeleton out;
  std::map<Key, const KubeChange*> first;
  std::vector<const KubeChange*> changes;
  size_t repeated = 0;
  for (const KubeChange& change : kube.state) repeated += first.insert_or_assign(KeyOf(change), &change).second ? 0 : 1;
  if (repeated > 0)
    out.notes.push_back(fmt::format("{} objects are told of more than once; the last stands", repeated));
  for (const KubeChange& change : kube.history) changes.push_back(&change);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KubeChange* a, const KubeChange* b) { return a->at < b->at; });
  std::set<Key> told;
  for (const KubeChange* change : changes) {
    if (!told.insert(KeyOf(*change)).second) continue;
    // A dump is of later, or of whenever: how the object began, its own history says.
    first.erase(KeyOf(*change));
    if (!change->created && !change->deleted) first[KeyOf(*change)] = change;
  }
  // Contexts, as a recording has them.
  std::map<std::string, record::ClusterSnapshot> snapshots;
  for (const auto& [key, change] : first) {
    record::ClusterSnapshot& snapshot = snapshots[change->cluster];
    snapshot.context = change->cluster;
    const json& object = At(change->body, "object");
    if (!object.is_object()) continue;
    if (absl::StatusOr<kube::ObjectRef> parsed = kube::Object::FromJson(object); parsed.ok()) {
      snapshot.objects.push_back(*std::move(parsed));
    }
  }
  std::vector<record::ClusterSnapshot> ordered;
  for (auto& [context, snapshot] : snapshots) ordered.push_back(std::move(snapshot));
  if (ordered.empty()) return absl::InvalidArgumentError("no object of a cluster is told in full: no mesh can be made");
  record::MeshFacts facts = record::ReadMeshFacts(ordered, "istio-system");
  out.world = std::move(facts.world);
  out.world.seed = 1;
  for (std::string& note : facts.notes) out.notes.push_back(std::move(note));
  std::map<std::string, std::string> names;  // of the world's clusters, by context
  for (size_t i = 0; i < ordered.size(); ++i) names[ordered[i].context] = out.world.clusters[i].name;

  WallNs begin = INT64_MAX;
  for (const KubeChange* change : changes) begin = std::min(begin, change->at);
  for (const Claim& claim : evidence.claims) {
    if (!claim.initial) begin = std::min(begin, claim.at);
  }
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
      out.inputs.push_back({when, 0, "delete", std::move(body)});
      return;
    }
    json body = change.body;
    body["cluster"] = cluster;
    out.inputs.push_back({when, 0, change.input_kind, std::move(body)});
  };
  std::vector<const KubeChange*> picture;
  for (const auto& [key, change] : first) picture.push_back(change);
  std::stable_sort(picture.begin(), picture.end(),
                   [](const KubeChange* a, const KubeChange* b) { return Rank(a->kind) < Rank(b->kind); });
  for (const KubeChange* change : picture) put(*change, out.world.start);
  for (const KubeChange* change : changes) put(*change, at(change->at));
  std::map<std::string, std::string> istiods;
  for (const IstiodRun& run : evidence.runs) istiods[run.replica] = run.cluster;
  for (const Claim& claim : evidence.claims) {
    if (!claim.initial) out.inputs.push_back(ClaimInput(claim, istiods[claim.replica], at(claim.at)));
  }
  std::stable_sort(out.inputs.begin(), out.inputs.end(),
                   [](const replay::LogInput& a, const replay::LogInput& b) { return a.at < b.at; });
  for (size_t i = 0; i < out.inputs.size(); ++i) out.inputs[i].seq = i;
  size_t inferred = 0;
  for (const InferredInput& input : evidence.inputs) inferred += input.initial ? 0 : 1;
  if (inferred > 0) {
    out.notes.push_back(
        fmt::format("the mesh is made of objects; {} inputs that logs tell of are not done to it", inferred));
  }
  return out;
}

}  // namespace wavetank::importing
