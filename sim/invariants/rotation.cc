// I15: remote Secrets and the clusters that istiod watches for them.
#include <fmt/format.h>

#include <set>

#include "core/istiod/istiod.h"
#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/secret.h"
#include "core/registry/multicluster/registries.h"
#include "sim/invariants/checkers.h"
#include "sim/invariants/look.h"

namespace wavetank::sim {
namespace {

class Rotation final : public Checker {
  void OnTrace(const TraceEvent& event) override {
    const TraceRecord& r = event.record;
    if (r.kind == TraceKind::kClusterAdded || r.kind == TraceKind::kClusterRemoved ||
        r.kind == TraceKind::kClusterRejected) {
      changed_ = true;
    } else if (r.kind == TraceKind::kObjectApplied || r.kind == TraceKind::kObjectDeleted) {
      changed_ = changed_ || world().kernel().names().Text(r.object).rfind("Secret/", 0) == 0;
    }
  }

  void AtRest() override {
    if (!std::exchange(changed_, false)) return;
    for (const ServingIstiod& istiod : ServingIstiods(world())) {
      std::vector<Breach> breaches;
      std::set<std::string> known{istiod.cluster};
      for (const pilot::SecretController::ClusterState& cluster : istiod.istiod->registries().secrets().Clusters()) {
        known.insert(cluster.id.str());
        if (!cluster.stopped) continue;
        breaches.push_back(Of(istiod, cluster.id.str(),
                              fmt::format("watches {} no more: Secret {} was changed and could not be used",
                                          cluster.id.str(), cluster.secret)));
        if (!Mends(world(), pilot::Change::kGracefulSecretUpdate)) breaches.back().known = "L5";
      }
      for (const kube::ObjectRef& object : world().cluster(istiod.cluster).api().List("Secret", "istio-system")) {
        const auto label = object->meta.labels.find("istio/multiCluster");
        if (label == object->meta.labels.end() || label->second != "true") continue;
        const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(*object);
        if (!data.ok()) continue;
        for (const auto& [cluster, kubeconfig] : *data) {
          if (known.contains(cluster) || !kube::ParseKubeConfig(kubeconfig, cluster).ok()) continue;
          breaches.push_back(Of(
              istiod, cluster, fmt::format("does not watch {}, of which Secret {} tells", cluster, object->meta.name)));
          breaches.back().known = "L6";
        }
      }
      changed_ = changed_ || !breaches.empty();
      Tell(istiod.name, std::move(breaches), 30s);
    }
  }

  static Breach Of(const ServingIstiod& istiod, const std::string& cluster, std::string what) {
    Breach out;
    out.key = cluster;
    out.subject = istiod.name;
    out.what = std::move(what);
    return out;
  }

  bool changed_ = false;
};

}  // namespace

std::unique_ptr<Checker> MakeRotation() { return std::make_unique<Rotation>(); }

}  // namespace wavetank::sim
