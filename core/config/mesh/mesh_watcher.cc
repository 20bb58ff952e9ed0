#include "core/config/mesh/mesh_watcher.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "core/kube/types.h"

namespace wavetank::config {

MeshWatcher::MeshWatcher(kube::Client& client, Host& host, std::string ns, std::string name, MeshConfigRef fallback,
                         CaCertificateSources fallback_sources)
    : host_(host),
      informer_(client, host, kube::kinds::kConfigMap,
                {.ns = ns, .label_selector = {}, .field_selector = fmt::format("metadata.name={}", name)}),
      fallback_(fallback != nullptr ? std::move(fallback) : DefaultMeshConfig()),
      fallback_sources_(std::move(fallback_sources)),
      mesh_(fallback_),
      ca_certificates_(fallback_sources_) {
  const auto mine = [name](const kube::ObjectRef& object) { return object->meta.name == name; };
  informer_.AddHandler({.on_add =
                            [this, mine](const kube::ObjectRef& object) {
                              if (mine(object)) Read(*object);
                            },
                        .on_update =
                            [this, mine](const kube::ObjectRef&, const kube::ObjectRef& object) {
                              if (mine(object)) Read(*object);
                            },
                        .on_delete =
                            [this, mine](const kube::ObjectRef& object) {
                              if (mine(object)) SetMesh(fallback_, fallback_sources_);
                            }});
}

void MeshWatcher::Start() { informer_.Start(); }

absl::Status MeshWatcher::TakeMesh(const std::string& yaml) {
  absl::StatusOr<MeshConfigRef> mesh = ApplyMeshConfigDefaults(yaml);
  if (!mesh.ok()) return mesh.status();
  SetMesh(*std::move(mesh), ReadCaCertificateSources(yaml));
  return absl::OkStatus();
}

absl::Status MeshWatcher::TakeNetworks(const std::string& yaml) {
  absl::StatusOr<MeshNetworks> networks = ParseMeshNetworks(yaml);
  if (!networks.ok()) return networks.status();
  SetNetworks(*std::move(networks));
  return absl::OkStatus();
}

void MeshWatcher::Read(const kube::Object& config_map) {
  const auto data = kube::ConfigMapData(config_map);
  status_ = absl::OkStatus();
  if (const auto it = data.find("meshNetworks"); it != data.end()) {
    absl::StatusOr<MeshNetworks> networks = ParseMeshNetworks(it->second);
    if (!networks.ok()) return Refuse("failed reading MeshNetworks config", networks.status());
    SetNetworks(*std::move(networks));
  }
  const auto it = data.find("mesh");
  if (it == data.end()) return Refuse("", absl::InvalidArgumentError("missing ConfigMap key \"mesh\""));
  absl::StatusOr<MeshConfigRef> mesh = ApplyMeshConfigDefaults(it->second);
  if (!mesh.ok()) return Refuse("failed reading MeshConfig config", mesh.status());
  SetMesh(*std::move(mesh), ReadCaCertificateSources(it->second));
}

void MeshWatcher::Refuse(std::string_view doing, const absl::Status& why) {
  status_ = absl::Status(why.code(), fmt::format("failed to read mesh config from ConfigMap: {}{}{}", doing,
                                                 doing.empty() ? "" : ": ", Message(why)));
  if (on_refused != nullptr) on_refused(status_);
}

void MeshWatcher::SetMesh(MeshConfigRef mesh, CaCertificateSources sources) {
  mesh_ = std::move(mesh);
  ca_certificates_ = std::move(sources);
  host_.Emit({.kind = TraceKind::kMeshConfigChanged, .detail = "mesh"});
  for (size_t i = mesh_handlers_.size(); i-- > 0;) mesh_handlers_[i]();
}

void MeshWatcher::SetNetworks(MeshNetworks networks) {
  if (networks_ != nullptr && *networks_ == networks) return;
  networks_ = std::make_shared<const MeshNetworks>(std::move(networks));
  host_.Emit({.kind = TraceKind::kMeshConfigChanged, .detail = "meshNetworks"});
  for (size_t i = 0; i < networks_handlers_.size(); ++i) networks_handlers_[i]();
}

}  // namespace wavetank::config
