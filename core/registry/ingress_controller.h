// Follows the Ingresses of the config cluster: shows them in the config store as Gateways and VirtualServices, asks for
// pushes, and writes the ingress gateway's addresses into their status
// (istiod: pilot/pkg/config/kube/ingress/controller.go, status.go).
//
// As in istiod the conversion is made anew when somebody reads the store: a change of a class, of a Service or of the
// mesh's configuration shows with the next push of Gateways or VirtualServices. 1.18.2 remembers an Ingress that is not
// its own when it first sees it, so that its next change causes a push though nothing differs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "core/config/store/store.h"
#include "core/kube/informer.h"
#include "core/model/xds_updater.h"
#include "core/registry/ingress_conversion.h"

namespace wavetank::config {

class IngressController {
 public:
  struct Options {
    std::string domain_suffix = "cluster.local";
    bool names_all_hosts = false;  // Change::kIngressOfAllHostsNamed
  };

  // All must outlive it. `mesh` gives what holds now.
  IngressController(kube::Client& client, Host& host, ConfigStore& store, pilot::XdsUpdater& updater,
                    std::function<MeshConfigRef()> mesh, Options options);
  ~IngressController();

  // Watches from now on, or from when the cluster has an Ingress if the client can tell (core/kube/definitions.h).
  // istiod that was started with mode OFF has no such controller.
  void Start();
  // Of istiod's replicas one writes the status (istiod: StatusSyncer, which runs where istio-leader is held).
  void SetWritesStatus(bool writes);
  bool HasSynced() const;
  bool Idle() const { return queue_.empty() && status_queue_.empty(); }

  // Brings the store to what the Ingresses say now; nothing is told to its handlers.
  void Refresh();
  void OnMeshConfigChanged();

 private:
  using Key = kube::NamespacedName;

  void Watch();
  void OnEvent(const Key& key);
  bool ShouldPush(const Key& key, const kube::ObjectRef& ingress);
  const kube::Object* ClassOf(const kube::Object& ingress) const;
  bool IsOwn(const kube::Object& ingress) const;
  std::optional<int64_t> PortOf(const std::string& ns, const std::string& service, const std::string& port) const;
  void Push(pilot::ConfigKind kind, const std::string& name, const std::string& ns);
  void Queue(std::set<Key>* queue, const Key& key, void (IngressController::*handle)(const Key&));
  void QueueStatusOfAll();
  void WriteStatus(const Key& key);
  nlohmann::json WantedStatus() const;

  kube::Client& client_;
  Host& host_;
  ConfigStore& store_;
  pilot::XdsUpdater& updater_;
  const std::function<MeshConfigRef()> mesh_;
  const Options options_;
  std::unique_ptr<kube::Informer> ingresses_, classes_, services_;  // null: nothing is watched yet
  std::set<Key> seen_;                                              // istiod's `ingresses`
  std::set<Key> queue_, status_queue_;
  bool writes_status_ = false;
  bool changed_ = false;  // since the store was last brought up to date
  std::vector<std::pair<Kind, Key>> shown_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace wavetank::config
