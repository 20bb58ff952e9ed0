// Keeps mesh config and mesh networks current from the ConfigMap `istio` of the system namespace
// (istiod: pkg/config/mesh/kubemesh/watcher.go, pkg/config/mesh/watcher.go).
//
// What cannot be read leaves what was there: a bad `meshNetworks` keeps both, a bad or missing `mesh` keeps the mesh
// config. Deleting the ConfigMap brings the default mesh config back and leaves the networks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/config/mesh/ca_certificates.h"
#include "core/config/mesh/mesh_config.h"
#include "core/config/mesh/mesh_networks.h"
#include "core/kube/informer.h"

namespace wavetank::config {

class MeshWatcher {
 public:
  using Handler = std::function<void()>;

  // `client` and `host` must outlive it. The ConfigMap's name is "istio", or "istio-<revision>" of a revision.
  // `fallback` is the mesh config without a ConfigMap; null: istiod's defaults.
  MeshWatcher(kube::Client& client, Host& host, std::string ns, std::string name = "istio",
              MeshConfigRef fallback = nullptr, CaCertificateSources fallback_sources = {});

  // SHARED_MESH_CONFIG: key `mesh` of that ConfigMap holds where the own one says nothing. Before Start() or
  // TakeMesh().
  void Share(kube::Client& client, const std::string& ns, const std::string& name);
  void Start();
  // meshNetworks go with their ConfigMap or key, and bad ones keep no mesh config from being taken
  // (Change::kMeshNetworksGo); else the last ones stay, and the ConfigMap is refused as a whole.
  void LetNetworksGo() { networks_go_ = true; }
  // What a file says, instead of Start(). InvalidArgument: it says nothing that can be read, and nothing changes.
  absl::Status TakeMesh(const std::string& yaml);
  absl::Status TakeNetworks(const std::string& yaml);
  // The ConfigMaps were looked for and, if they are there, read.
  bool HasSynced() const { return informer_.HasSynced() && (shared_ == nullptr || shared_->HasSynced()); }
  void OnSynced(Callback done);
  // Runs once the shared one was.
  void OnShared(Callback done) { shared_->OnSynced(std::move(done)); }

  // The ConfigMap is there.
  bool found() const { return !informer_.objects().empty(); }
  const MeshConfigRef& mesh() const { return mesh_; }
  // Of the same config.
  const CaCertificateSources& ca_certificates() const { return ca_certificates_; }
  // Null while no ConfigMap has named any.
  const std::shared_ptr<const MeshNetworks>& networks() const { return networks_; }

  // Called with the new value in place. Networks handlers only hear of another value; mesh handlers of every write to
  // the ConfigMap: 1.18.2 compares protobuf messages by reflection, and one that was printed never equals a fresh one
  // (istiod: pkg/config/mesh/watcher.go, handleMeshConfigInternal). Mesh handlers run last added first, as istiod's do,
  // networks handlers in order.
  void AddMeshHandler(Handler handler) { mesh_handlers_.push_back(std::move(handler)); }
  void AddNetworksHandler(Handler handler) { networks_handlers_.push_back(std::move(handler)); }

  // Why the last ConfigMap was refused, wholly or partly, as istiod logs it; OK otherwise.
  const absl::Status& status() const { return status_; }
  std::function<void(const absl::Status& why)> on_refused;  // may be null
  LogSink log;                                              // told what was read, and what is in force from now on

 private:
  void Read(const kube::Object& config_map);
  // With a shared one: istiod: pkg/config/mesh/watcher.go, merged().
  void SetMerged();
  void Say(std::string text) const { log({.text = std::move(text)}); }
  void Refuse(std::string_view doing, const absl::Status& why);
  void SetMesh(MeshConfigRef mesh, CaCertificateSources sources);
  void SetNetworks(MeshNetworks networks);
  void ForgetNetworks();

  Host& host_;
  kube::Informer informer_;
  std::unique_ptr<kube::Informer> shared_;  // null: there is none
  std::string shared_yaml_, own_yaml_;      // as they are, if there is one
  const MeshConfigRef fallback_;
  const CaCertificateSources fallback_sources_;
  MeshConfigRef mesh_;
  CaCertificateSources ca_certificates_;
  std::shared_ptr<const MeshNetworks> networks_;
  std::vector<Handler> mesh_handlers_, networks_handlers_;
  absl::Status status_;
  bool networks_go_ = false;
};

}  // namespace wavetank::config
