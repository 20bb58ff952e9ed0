// Follows Istio's custom resources in the config cluster, keeps the ConfigStore and asks for pushes
// (istiod: pilot/pkg/config/kube/crdclient; the config handler of pilot/pkg/bootstrap/server.go).
//
// The store shows a change as soon as the informer has it; handlers hear of it from a queue, which starts when every
// kind has synced. Objects labelled with another revision do not exist here, nor what lies in namespaces that are not
// read.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/host.h"
#include "core/config/store/store.h"
#include "core/kube/informer.h"
#include "core/model/xds_updater.h"

namespace wavetank::config {

class CrdClient {
 public:
  struct Options {
    std::string revision = "default";
    // Of a remote cluster, where istiod reads nothing else and each WorkloadEntry's registry pushes by itself.
    bool workload_entries_only = false;
    bool health_checks = true;  // PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS
    // Read besides, after `client`. Of objects of one kind and name that of the first source exists (istiod:
    // pilot/pkg/config/aggregate). They must outlive it.
    std::vector<kube::Client*> more_sources;
    // Whether what lies in a namespace is read; empty: all is.
    std::function<bool(std::string_view ns)> reads = nullptr;
  };

  // All references must outlive it. Handlers that ask for pushes are added to the store here: every kind but
  // ServiceEntry and WorkloadEntry, whose registry pushes by itself.
  CrdClient(kube::Client& client, Host& host, ConfigStore& store, pilot::XdsUpdater& updater, Options options);
  ~CrdClient();

  void Start();
  // Informers stop, what waits is dropped; the store keeps what it has.
  void Stop();
  // These namespaces are read now, or are no more: what lies there comes or goes.
  void OnNamespacesRead(const std::vector<std::string>& namespaces);
  // Everything that was there at the start is in the store and handlers have heard of it.
  bool HasSynced() const { return synced_; }
  // Runs once, when that is so; at once if it is.
  void OnSynced(Callback done);
  bool Idle() const { return queue_.empty(); }

  // Kinds that istiod pushes for but whose fields nothing here reads: kept as they came, by namespace and name.
  const std::map<kube::NamespacedName, kube::ObjectRef>& Raw(pilot::ConfigKind kind) const;

  // All objects of its revision and of the namespaces that are read, readable or not, by kind, namespace and name.
  std::vector<kube::ObjectRef> Objects() const;

  // Objects that could not be read, by key: what the store shows for them is their last readable state, if any.
  // client-go's typed list would fail as a whole there; an API server with Istio's CRD schemas does not let them in.
  const std::map<std::string, absl::Status>& unreadable() const { return unreadable_; }

 private:
  struct RawKind {
    pilot::ConfigKind kind;
    std::map<kube::NamespacedName, kube::ObjectRef> objects;
  };
  void Watch(const kube::ResourceKind& resource, int typed, RawKind* raw);
  using Changed = std::function<void(const kube::ObjectRef& object, bool deleted)>;
  const kube::Informer& Follow(kube::Client& source, const kube::ResourceKind& resource, const Changed& changed);
  void OnTyped(Kind kind, const kube::ObjectRef& object, bool deleted);
  void OnRaw(RawKind& raw, const kube::ObjectRef& object, bool deleted);
  bool Exists(const kube::Object& object) const;  // for this istiod
  void Push(pilot::ConfigKind kind, const std::string& name, const std::string& ns);
  void Enqueue(Callback task);
  void RunQueue();
  void MaybeSynced();

  kube::Client& client_;
  Host& host_;
  ConfigStore& store_;
  pilot::XdsUpdater& updater_;
  const Options options_;
  struct Followed {
    std::unique_ptr<kube::Informer> informer;
    Changed changed;
  };
  std::vector<Followed> followed_;
  std::vector<std::unique_ptr<RawKind>> raw_;
  std::deque<std::pair<CauseId, Callback>> queue_;
  std::vector<Callback> on_synced_;
  std::map<std::string, absl::Status> unreadable_;
  bool informers_synced_ = false, synced_ = false, scheduled_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

// The kind under which a push names a configuration.
pilot::ConfigKind ConfigKindOf(Kind kind);

}  // namespace wavetank::config
