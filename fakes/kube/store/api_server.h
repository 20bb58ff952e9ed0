// One cluster's API server: versioned objects, optimistic concurrency, watches with a bounded history.
//
// Fault model: the rows of faults.h. It may not answer at all, answer late, drop watches, forget history so that
// watchers get 410 Gone, refuse credentials, ask clients to come back later (429), serve lists and watches from a cache
// that stands still, or have a clock that is wrong. Clients must survive each of these at any time.
//
// Deletion (apimachinery: Finalizers, "Garbage Collection"): an object with finalizers, a pod in its grace period and a
// namespace with content stay with a deletionTimestamp until the last of these is gone. Dependents (ownerReferences) go
// with their last owner, before it (foreground), or stay behind (orphan).
//
// This class is synchronous and knows no latency: clients over a network are made by MakeClient() (client/client.h),
// controllers observe it directly. Any kind is accepted; what it does not know it keeps as JSON.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/base/observers.h"
#include "core/kube/client.h"
#include "core/kube/object.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/store/faults.h"
#include "fakes/kube/store/kubernetes_release.h"
#include "fakes/kube/store/service_allocator.h"

namespace wavetank::fakekube {

using kube::NamespacedName;
using kube::ObjectRef;

// Who writes, for managedFields.
inline constexpr std::string_view kControllerManager = "kube-controller-manager", kKubelet = "kubelet",
                                  kScheduler = "kube-scheduler";
// Bindings are nobody's: the subresource writes without managedFields.
inline constexpr std::string_view kNobody = "";

struct WriteOptions {
  bool validate = false;  // as kube-apiserver does (validation.h); cases and logs may leave things out
  std::string field_manager = std::string(kControllerManager);
  std::string subresource;
  bool namespace_must_exist = false;  // Apply: also on a server that makes namespaces
  bool applied = false;  // Create: the body is what ServerSideApply() made of an apply, with its managedFields
};

enum class Propagation : uint8_t { kBackground, kForeground, kOrphan };
struct DeleteOptions {
  Propagation propagation = Propagation::kBackground;
  std::optional<int64_t> grace_seconds;  // of pods; nullopt: what the pod says
};

struct Change {
  int64_t resource_version = 0;
  kube::WatchEventType type{};
  ObjectRef object;
  ObjectRef previous;  // null for kAdded
};

class EventStore;

class ApiServer {
 public:
  struct Options {
    std::string name;  // of the cluster
    std::string service_cidr = "10.96.0.0/16";
    KubernetesRelease release;
    // Events kept for watches that start in the past; older ones are 410 Gone.
    size_t history = 4096;
    int64_t first_resource_version = 1000;
    // Apply() into a namespace that does not exist makes it, as a scenario's manifests want it. Any other write is
    // NotFound, as a real server says: a client that goes on writing would bring back what was deleted.
    bool create_namespaces = false;
    // Objects are another cluster's, as they were recorded: Apply() stores them as they are, deletionTimestamp and
    // status included; no address is allocated, and nothing is deleted but what is named, at once; deleting what is not
    // there is no error.
    bool observed = false;
    // Another server's Events (event_store.h): namespaces and clock are that one's, and no write leaves a trace.
    const ApiServer* events_of = nullptr;
  };

  ApiServer(Host& host, const Options& options);
  ~ApiServer();

  const std::string& name() const { return options_.name; }
  const KubernetesRelease& release() const { return options_.release; }
  Host& host() { return host_; }
  int64_t resource_version() const { return resource_version_; }

  // `kind` below is a text as kinds.h reads it.

  // The body is defaulted as an API server would. AlreadyExists if it is there; NotFound if its namespace is not; a
  // namespace that is going takes nothing new (PermissionDenied).
  absl::StatusOr<ObjectRef> Create(nlohmann::json body, const WriteOptions& options = {});
  // Replaces. A resourceVersion in the body that is not the stored one is Aborted (409 Conflict); NotFound if it is
  // not there. Writing what is there already changes nothing. `status` and what the server allocated (clusterIP,
  // nodePorts) stay unless the body names them. An object that was waiting for its last finalizer only goes with it.
  absl::StatusOr<ObjectRef> Update(nlohmann::json body, const WriteOptions& options = {});
  // Create or update, as `kubectl apply` of a whole manifest. A resourceVersion of what is not there any more is stale.
  absl::StatusOr<ObjectRef> Apply(nlohmann::json body, const WriteOptions& options = {});
  // Server-side apply (server_side_apply.h): Aborted with the conflicts unless `force`. Creates what is not there. A
  // uid or resourceVersion in the body must fit.
  absl::StatusOr<ObjectRef> ServerSideApply(nlohmann::json body, bool force, const WriteOptions& options);
  // JSON merge patch (RFC 7386). InvalidArgument if `kind` has no group and several groups hold that name.
  absl::StatusOr<ObjectRef> Patch(std::string_view kind, const NamespacedName& name, nlohmann::json patch,
                                  std::string_view manager = kControllerManager);
  // Dependents go with it (ownerReferences), or as the options say. A pod first terminates: it gets a
  // deletionTimestamp, and is gone when the kubelet has stopped it (grace_seconds 0). So do a namespace with content
  // and what has finalizers. Deleting again what is going already changes nothing, but for a pod's grace_seconds 0.
  absl::Status Delete(std::string_view kind, const NamespacedName& name, const DeleteOptions& options = {});
  // Removes at once, whatever it is. NotFound: it is not there; InvalidArgument: several groups hold that name.
  absl::Status Finalize(std::string_view kind, const NamespacedName& name);

  ObjectRef Get(std::string_view kind, const NamespacedName& name) const;  // null if it is not there
  // In order of group, then key. O(objects of the kind) or, with a namespace, O(objects in it).
  std::vector<ObjectRef> List(std::string_view kind, std::string_view ns = {}) const;
  // The same as clients over a network see it, with the version that it is of: while reads are stale, an old state.
  kube::ObjectList ListForClients(std::string_view kind, std::string_view ns = {}) const;

  // True for kinds outside of namespaces: Kubernetes' own, and those whose CustomResourceDefinition is here and says
  // so.
  bool IsClusterScoped(const GroupKind& kind) const;
  // The server's clock, wrong or not.
  int64_t UnixNow() const;
  std::string DateNow() const;  // RFC 3339

  // Observers run within the write, in order of registration, after the store has changed. They may write.
  using Observer = std::function<void(const Change&)>;
  // While the handle lives. A kind without group must be one of Kubernetes' own.
  Subscription Observe(std::string_view kind, Observer observer);

  // A record that goes on as a cluster of its own: what Options::observed says no longer holds, and recorded Services
  // keep what they have.
  void BecomeLive();
  // Observers that come between these two calls are told at the end of all that is there, as added. Those that were
  // there before hear nothing.
  void BeginIntroduction() { introducing_ = true; }
  void EndIntroduction();
  bool introducing() const { return introducing_; }

  // Watches. `after` is a resourceVersion; OutOfRange if its successors are no longer all there, or if this server has
  // not come that far: then it is of another life. A sink must not stop its own watch from within on_change.
  using WatchId = uint64_t;
  struct WatchSink {
    std::function<void(const Change&)> on_change;
    std::function<void(absl::Status)> on_end;
  };
  absl::StatusOr<WatchId> StartWatch(std::string_view kind, int64_t after, WatchSink sink);
  void StopWatch(WatchId id) { watches_.erase(id); }
  void DropWatches(const absl::Status& reason);
  void ForgetHistory();
  // From now on clients' lists and watches stand still (a watch cache that no longer hears of the store); at the end
  // what was held back is delivered. Controllers and writes see the truth.
  void SetStaleReads(bool stale);
  // The version that clients see: of lists, and of bookmarks.
  int64_t VisibleVersion() const { return stale_ != nullptr ? stale_->resource_version : resource_version_; }

  Faults& faults() { return faults_; }
  const Faults& faults() const { return faults_; }
  CallFate FateOf(ApiCall call) const { return fakekube::FateOf(faults_, call); }
  size_t objects() const { return object_count_; }

  // Where Events are; null: this is the server within it.
  EventStore* events() const { return events_.get(); }
  // The same while somebody may look at what controllers tell there; null: nobody does.
  EventStore* listening() const;

 private:
  struct Kind {
    std::map<NamespacedName, ObjectRef> objects;
  };
  // Kinds sort by name, then group.
  struct KindLess {
    using is_transparent = void;
    using Key = std::pair<std::string, std::string>;
    static std::pair<std::string_view, std::string_view> View(const Key& key) { return key; }
    static std::pair<std::string_view, std::string_view> View(const GroupKind& kind) { return {kind.kind, kind.group}; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return View(a) < View(b);
    }
  };
  using Kinds = std::map<KindLess::Key, Kind, KindLess>;
  struct WatchState {
    std::string kind;  // as it was named
    GroupKind parsed;  // views into `kind`
    int64_t after = 0;
    WatchSink sink;
  };
  class History;
  struct Stale {
    Kinds kinds;
    int64_t resource_version;
    std::vector<Change> held;
  };

  void Trace(TraceKind kind, const kube::Object& object);
  // What the server keeps the object under: no namespace for a kind without, "default" where none is named.
  NamespacedName StoredName(const kube::Object& object) const;
  // Apply() of a recorded object.
  absl::StatusOr<ObjectRef> Put(nlohmann::json body, const NamespacedName& name, const ObjectRef& previous);
  // `managed`: managedFields in the body are the server's own.
  absl::StatusOr<ObjectRef> CreateChecked(nlohmann::json body, const WriteOptions& options, bool managed);
  // NotFound, or PermissionDenied for one that is going; makes it if `make`.
  absl::Status CheckNamespace(std::string_view kind, const NamespacedName& name, bool make);
  absl::StatusOr<ObjectRef> UpdateChecked(nlohmann::json body, const WriteOptions& options, bool managed);
  absl::StatusOr<ObjectRef> Store(nlohmann::json body, const ObjectRef& previous);
  // The same of a body that has its defaults and addresses already.
  absl::StatusOr<ObjectRef> StoreDefaulted(nlohmann::json body, const ObjectRef& previous);
  void Notify(kube::WatchEventType type, const ObjectRef& object, const ObjectRef& previous);
  void TellWatches(const Change& change);
  // What follows from an object's end: dependents, owners and the namespace that waited for it.
  void DeleteDependents(const kube::Object& owner, Propagation propagation);
  void AfterRemoval(const kube::Object& gone);
  void Remove(const ObjectRef& object, ObjectRef last);
  // Marks an object as going.
  absl::Status MarkDeleting(const ObjectRef& object, int64_t grace_seconds, std::string_view finalizer);
  // Takes a finalizer away; the object goes if it was the last one.
  void DropFinalizer(const ObjectRef& object, std::string_view finalizer);
  std::vector<ObjectRef> Dependents(const std::string& uid) const;
  bool HasBlockingDependents(const kube::Object& owner) const;
  // The object that a reference means, if it still lives.
  ObjectRef OwnerOf(const kube::Object& dependent, const kube::OwnerReference& reference) const;
  void DefineScope(const kube::Object& definition);
  // Going, and not yet gone although nothing holds it by finalizers: a pod's grace period, a namespace's content.
  bool Lingers(const kube::Object& object, const std::string& name) const;
  bool NamespaceIsEmpty(const std::string& ns) const;
  absl::Status DeleteNamespace(const ObjectRef& object);
  // What `kind` names, as far as it is known; at most one unless it stands for any group.
  static absl::InlinedVector<const Kind*, 1> Find(const Kinds& kinds, const GroupKind& kind);
  static std::vector<ObjectRef> ListIn(const Kinds& kinds, std::string_view kind, std::string_view ns);
  // The one object that is meant; NotFound, or InvalidArgument if that is not clear.
  absl::StatusOr<ObjectRef> One(std::string_view kind, const NamespacedName& name) const;

  Host& host_;
  Options options_;
  NameId trace_name_;
  int64_t resource_version_;
  uint64_t created_ = 0;
  size_t object_count_ = 0;
  Kinds kinds_;
  std::set<std::pair<std::string, std::string>> cluster_scoped_;  // kind, group of definitions
  std::map<std::string, std::map<std::pair<std::string, NamespacedName>, bool>>
      dependents_;  // by owner uid; qualified kinds
  ServiceAllocator services_;
  std::unique_ptr<History> history_;
  std::map<std::string, Observers<const Change&>, std::less<>> observers_;  // by qualified kind
  bool introducing_ = false;
  std::vector<std::pair<std::string, Observer>> newcomers_;
  std::map<WatchId, WatchState> watches_;
  WatchId next_watch_ = 1;
  Faults faults_;
  std::unique_ptr<Stale> stale_;
  std::unique_ptr<EventStore> events_;
};

}  // namespace wavetank::fakekube
