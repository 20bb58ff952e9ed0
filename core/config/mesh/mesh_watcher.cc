#include "core/config/mesh/mesh_watcher.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/status.h"
#include "core/config/mesh/mesh_text.h"
#include "core/config/mesh/shared_mesh_config.h"
#include "core/kube/types.h"

namespace wavetank::config {
namespace {

std::string Entry(const std::map<std::string, std::string>& data, const std::string& key) {
  const auto it = data.find(key);
  return it == data.end() ? std::string() : it->second;
}

}  // namespace

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
                              if (!mine(object)) return;
                              if (networks_go_) {
                                ForgetNetworks();
                              } else {
                                Say("no ConfigMap found, using existing MeshNetworks config");
                              }
                              if (shared_ == nullptr) Say("no ConfigMap found, using default MeshConfig config");
                              if (shared_ == nullptr) return SetMesh(fallback_, fallback_sources_);
                              own_yaml_.clear();
                              SetMerged();
                            }});
}

void MeshWatcher::Share(kube::Client& client, const std::string& ns, const std::string& name) {
  shared_ = std::make_unique<kube::Informer>(
      client, host_, kube::kinds::kConfigMap,
      kube::ListOptions{.ns = ns, .label_selector = {}, .field_selector = fmt::format("metadata.name={}", name)});
  const auto read = [this](const kube::ObjectRef& object) {
    shared_yaml_ = Entry(kube::ConfigMapData(*object), "mesh");
    SetMerged();
  };
  shared_->AddHandler({.on_add = read,
                       .on_update = [read](const auto&, const kube::ObjectRef& object) { read(object); },
                       .on_delete =
                           [this](const kube::ObjectRef&) {
                             shared_yaml_.clear();
                             SetMerged();
                           }});
  shared_->Start();
}

void MeshWatcher::OnSynced(Callback done) {
  if (shared_ == nullptr) return informer_.OnSynced(std::move(done));
  informer_.OnSynced([this, done = std::move(done)]() mutable { shared_->OnSynced(std::move(done)); });
}

void MeshWatcher::Start() { informer_.Start(); }

void MeshWatcher::SetMerged() {
  status_ = absl::OkStatus();
  const auto refuse = [this](std::string_view whose, const absl::Status& why) {
    status_ = absl::Status(why.code(), fmt::format("{} config invalid, ignoring it {}", whose, Message(why)));
    if (on_refused != nullptr) on_refused(status_);
  };
  std::string taken;
  MeshConfigRef mesh = fallback_;
  if (!shared_yaml_.empty()) {
    absl::StatusOr<MeshConfigRef> shared = ApplyMeshConfigDefaults(shared_yaml_);
    if (shared.ok()) {
      mesh = *std::move(shared);
      if (log) Say("Applied user config: " + MeshConfigText(*mesh));
      taken = shared_yaml_;
    } else {
      refuse("user", shared.status());
    }
  }
  if (!own_yaml_.empty()) {
    const absl::StatusOr<std::string> both = MergeMeshConfigs(taken, own_yaml_);
    absl::StatusOr<MeshConfigRef> merged = both.ok() ? ApplyMeshConfigDefaults(*both) : both.status();
    if (merged.ok()) {
      mesh = *std::move(merged);
      if (log) Say("Applied revision mesh config: " + MeshConfigText(*mesh));
      taken = *both;
    } else {
      refuse("revision", merged.status());
    }
  }
  SetMesh(std::move(mesh), ReadCaCertificateSources(taken));
}

absl::Status MeshWatcher::TakeMesh(const std::string& yaml) {
  if (shared_ != nullptr) {
    if (absl::StatusOr<MeshConfigRef> alone = ApplyMeshConfigDefaults(yaml); !alone.ok()) return alone.status();
    own_yaml_ = yaml;
    SetMerged();
    return absl::OkStatus();
  }
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
    if (!networks.ok()) Refuse("failed reading MeshNetworks config", networks.status());
    if (!networks.ok() && !networks_go_) return;  // else the key `mesh` counts all the same (NewMeshConfigCollection)
    if (networks.ok()) {
      Say("Loaded MeshNetworks config from Kubernetes API server.");
      SetNetworks(*std::move(networks));
    }
  } else if (networks_go_) {
    ForgetNetworks();
  }
  if (shared_ != nullptr) {
    own_yaml_ = Entry(data, "mesh");
    return SetMerged();
  }
  const auto it = data.find("mesh");
  if (it == data.end()) return Refuse("", absl::InvalidArgumentError("missing ConfigMap key \"mesh\""));
  absl::StatusOr<MeshConfigRef> mesh = ApplyMeshConfigDefaults(it->second);
  if (!mesh.ok()) return Refuse("failed reading MeshConfig config", mesh.status());
  Say("Loaded MeshConfig config from Kubernetes API server.");
  SetMesh(*std::move(mesh), ReadCaCertificateSources(it->second));
}

void MeshWatcher::Refuse(std::string_view doing, const absl::Status& why) {
  status_ = absl::Status(why.code(), fmt::format("failed to read mesh config from ConfigMap: {}{}{}", doing,
                                                 doing.empty() ? "" : ": ", Message(why)));
  if (on_refused != nullptr) on_refused(status_);
}

void MeshWatcher::SetMesh(MeshConfigRef mesh, CaCertificateSources sources) {
  mesh_ = std::move(mesh);
  if (log) Say("mesh configuration updated to: " + MeshConfigText(*mesh_));
  ca_certificates_ = std::move(sources);
  host_.Emit({.kind = TraceKind::kMeshConfigChanged, .detail = "mesh"});
  for (size_t i = mesh_handlers_.size(); i-- > 0;) mesh_handlers_[i]();
}

void MeshWatcher::SetNetworks(MeshNetworks networks) {
  if (networks_ != nullptr && *networks_ == networks) return;
  networks_ = std::make_shared<const MeshNetworks>(std::move(networks));
  if (log) Say("mesh networks configuration updated to: " + MeshNetworksText(*networks_));
  host_.Emit({.kind = TraceKind::kMeshConfigChanged, .detail = "meshNetworks"});
  for (size_t i = 0; i < networks_handlers_.size(); ++i) networks_handlers_[i]();
}

// istiod: pkg/config/mesh/meshwatcher/collection.go, NewNetworksCollection.
void MeshWatcher::ForgetNetworks() {
  if (std::exchange(networks_, nullptr) == nullptr) return;
  host_.Emit({.kind = TraceKind::kMeshConfigChanged, .detail = "meshNetworks"});
  for (size_t i = 0; i < networks_handlers_.size(); ++i) networks_handlers_[i]();
}

}  // namespace wavetank::config
