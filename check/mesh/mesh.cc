#include "check/mesh/mesh.h"

#include <algorithm>

#include "core/base/json_access.h"
#include "core/model/labels.h"
#include "core/xds/discovery_server.h"
#include "fmt/format.h"
#include "sim/mending/installation.h"
#include "sim/world_site.h"

namespace wavetank::check {
namespace {

std::string PlaceKey(std::string_view cluster, std::string_view kind, std::string_view ns, std::string_view name) {
  return fmt::format("{}\n{}\n{}\n{}", cluster, kind, ns, name);
}

}  // namespace

std::string NameOf(const kube::Object& object) {
  return object.meta.ns.empty() ? fmt::format("{} {}", object.kind, object.meta.name)
                                : fmt::format("{} {}/{}", object.kind, object.meta.ns, object.meta.name);
}

std::string NameOf(const BroughtObject& brought) {
  const auto& meta = At(brought.object, "metadata");
  const std::string ns = Text(meta, "namespace"), name = Text(meta, "name");
  return fmt::format("{} {}", Text(brought.object, "kind"), ns.empty() ? name : ns + "/" + name);
}

Mesh::Mesh(SettledMesh settled) : settled_(std::move(settled)) {
  for (const std::string& complaint : world().Complaints()) settled_.notes.push_back(complaint);
  for (const BroughtObject& b : settled_.brought) {
    const nlohmann::json& meta = b.object["metadata"];
    places_[PlaceKey(b.cluster, Text(b.object, "kind"), Text(meta, "namespace"), Text(meta, "name"))] = {b.file,
                                                                                                         b.line};
  }
  for (const sim::WorldCluster& options : world().options().clusters) {
    auto cluster = std::make_unique<MeshCluster>();
    cluster->name = options.name;
    if (sim::World::Site* site = world().FindSite(options.name); site != nullptr)
      cluster->network = world().commons().network->underlay()->Name(site->place().network);
    cluster->control_plane = options.control_plane;
    cluster->primary = options.primary();
    cluster->recorded = options.observed;
    if (sim::IstiodProcess* process = world().IstiodOf(options.name); process != nullptr && process->failure().ok()) {
      cluster->istiod = &process->istiod();
      cluster->push = process->istiod().discovery().push_context();
    }
    cluster->system_namespace = sim::SystemNamespaceOf(world().cluster(options.name).api());
    cluster->root_namespace =
        cluster->push == nullptr ? cluster->system_namespace : cluster->istiod->mesh_config().root_namespace;
    if (const kube::ObjectRef ns = Get(*cluster, "Namespace", "", cluster->system_namespace); ns != nullptr) {
      const auto label = ns->meta.labels.find(pilot::kNetworkLabel);
      if (label != ns->meta.labels.end()) cluster->label = label->second;
    }
    for (int kind = 0; kind < config::kKinds; ++kind) {
      const kube::ResourceKind& resource = config::ResourceKindOf(static_cast<config::Kind>(kind));
      for (const kube::ObjectRef& object : List(*cluster, fmt::format("{}.{}", resource.kind, resource.group))) {
        // What istiod cannot read was noted when it was applied.
        if (auto config = config::ParseConfig(*object); config.ok()) cluster->configs.Put(*std::move(config));
      }
    }
    clusters_.push_back(std::move(cluster));
  }
}

Mesh::~Mesh() = default;

bool Mesh::HoldsControlPlane(std::string_view ns) const {
  return std::any_of(clusters_.begin(), clusters_.end(), [&](const auto& c) { return c->system_namespace == ns; });
}

const MeshCluster* Mesh::Find(std::string_view cluster) const {
  const auto it = std::find_if(clusters_.begin(), clusters_.end(), [&](const auto& c) { return c->name == cluster; });
  return it == clusters_.end() ? nullptr : it->get();
}

std::vector<kube::ObjectRef> Mesh::List(const MeshCluster& cluster, std::string_view kind, std::string_view ns) const {
  return world().cluster(cluster.name).api().List(kind, ns);
}

kube::ObjectRef Mesh::Get(const MeshCluster& cluster, std::string_view kind, std::string_view ns,
                          std::string_view name) const {
  return world().cluster(cluster.name).api().Get(kind, {std::string(ns), std::string(name)});
}

Place Mesh::Where(std::string_view cluster, const kube::Object& object) const {
  const auto it = places_.find(PlaceKey(cluster, object.kind, object.meta.ns, object.meta.name));
  return it == places_.end() ? Place() : it->second;
}

std::vector<const sim::PodProcess*> Mesh::Pods(const MeshCluster& cluster) const {
  std::vector<const sim::PodProcess*> out;
  for (const sim::PodProcess* pod : world().Pods()) {
    if (pod->site().name == cluster.name) out.push_back(pod);
  }
  return out;
}

std::vector<const sim::PodProcess*> Mesh::ServedPods(const MeshCluster& cluster) const {
  std::vector<const sim::PodProcess*> out;
  for (const sim::PodProcess* pod : world().Pods()) {
    const MeshCluster* of = Find(pod->site().name);
    if (of != nullptr && of->control_plane == cluster.control_plane) out.push_back(pod);
  }
  return out;
}

}  // namespace wavetank::check
