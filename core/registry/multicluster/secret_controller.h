// Remote clusters, by Secrets labelled istio/multiCluster=true in the system namespace of the config cluster
// (istiod: pkg/kube/multicluster/secretcontroller.go).
//
// State per remote cluster: owned by one Secret (the first that named its ID), running or stopped, under the hash of
// one kubeconfig. 1.18.2's own oddities follow from it:
//  - a kubeconfig that changes to a broken one stops the cluster, but its old hash stays: restoring the same kubeconfig
//    changes nothing, and the cluster stays frozen until the kubeconfig really changes;
//  - a second Secret with the same ID is ignored, and is looked at again only when it is touched.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/kube/informer.h"
#include "core/model/ids.h"
#include "core/profile/profile.h"

namespace wavetank::pilot {

// What becomes of clusters (istiod: multicluster.ClusterHandler).
class ClusterHandler {
 public:
  virtual ~ClusterHandler() = default;
  // Builds the registry of a cluster. In an update the one before is gone when this returns, without the trace that
  // ClusterDeleted leaves.
  virtual void ClusterAdded(const ClusterId& id, kube::Client& client) = 0;
  virtual void ClusterUpdated(const ClusterId& id, kube::Client& client) = 0;
  virtual void ClusterDeleted(const ClusterId& id) = 0;
  // Its informers stop; the registry keeps what it knows.
  virtual void ClusterStopped(const ClusterId& id) = 0;
  virtual bool ClusterSynced(const ClusterId& id) const = 0;
};

class SecretController {
 public:
  SecretController(kube::Client& config_cluster, kube::ClientFactory& factory, Host& host, ClusterHandler& handler,
                   ClusterId config_cluster_id, std::string system_namespace, const Profile& profile);
  ~SecretController();

  void set_log(LogSink log) { log_ = std::move(log); }

  void Start();
  // Every Secret that was there at the start is processed, and the clusters they named have synced (or timed out).
  bool HasSynced() const;
  bool Idle() const { return queue_.empty() && !working_; }

  struct ClusterState {
    ClusterId id;
    std::string secret;  // "namespace/name"
    bool stopped = false;
  };
  std::vector<ClusterState> Clusters() const;  // by Secret, then ID

 private:
  struct Remote {
    std::unique_ptr<kube::Client> client;
    std::string kubeconfig_hash;
    bool stopped = false;
  };

  void Enqueue(const kube::NamespacedName& secret);
  void Next();
  void Process(const kube::NamespacedName& secret);
  void AddSecret(const kube::NamespacedName& name, const kube::Object& secret);
  void DeleteSecret(const kube::NamespacedName& name);
  void DeleteCluster(const kube::NamespacedName& secret, const ClusterId& id);
  bool Registered(const ClusterId& id) const;
  void Reject(const ClusterId& id, const kube::NamespacedName& secret, std::string_view why);
  void SayOf(const std::string& cluster, const kube::NamespacedName& secret, std::string_view text) const;
  void SayHowMany() const;

  kube::ClientFactory& factory_;
  Host& host_;
  ClusterHandler& handler_;
  const ClusterId config_cluster_id_;
  const Profile& profile_;
  LogSink log_;
  kube::Informer secrets_;
  NameId trace_name_;
  std::map<kube::NamespacedName, std::map<ClusterId, Remote>> remotes_;  // by Secret
  // Clients outlive their use by whatever is still on its way.
  std::vector<std::unique_ptr<kube::Client>> retired_;
  struct Item {
    kube::NamespacedName secret;
    CauseId cause;
  };
  std::deque<Item> queue_;
  bool working_ = false;
  size_t initial_ = 0;
  bool initial_done_ = false;
  std::shared_ptr<SecretController*> self_;
};

}  // namespace wavetank::pilot
