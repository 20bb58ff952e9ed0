// One cluster's API server: versioned objects, optimistic concurrency, watches with a bounded history.
//
// Fault model (Faults, set by scenario steps): it may not answer at all, answer late, drop watches, forget history so
// that watchers get 410 Gone, or refuse credentials. Clients must survive each of these at any time.
//
// This class is synchronous and knows no latency: clients over a network are made by ClientFor() (client.h),
// controllers observe it directly. Any kind is accepted; what it does not know it keeps as JSON.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/kube/client.h"
#include "core/kube/object.h"
#include "fakes/kube/kinds.h"
#include "fakes/kube/service_allocator.h"

namespace wavetank::fakekube {

using kube::NamespacedName;
using kube::ObjectRef;

struct Faults {
  bool unreachable = false;
  bool unauthorized = false;
  Duration extra_latency{};
};

struct Change {
  int64_t resource_version = 0;
  kube::WatchEventType type{};
  ObjectRef object;
  ObjectRef previous;  // null for kAdded
};

class ApiServer {
 public:
  struct Options {
    std::string name;  // of the cluster
    std::string service_cidr = "10.96.0.0/16";
    // Events kept for watches that start in the past; older ones are 410 Gone.
    size_t history = 4096;
    int64_t first_resource_version = 1000;
    // Objects of a namespace that does not exist: make it, or NotFound as a real server says.
    bool create_namespaces = false;
  };

  ApiServer(Host& host, const Options& options);

  const std::string& name() const { return options_.name; }
  Host& host() { return host_; }
  int64_t resource_version() const { return resource_version_; }

  // `kind` below is a text as kinds.h reads it.

  // The body is defaulted as an API server would. AlreadyExists if it is there.
  absl::StatusOr<ObjectRef> Create(nlohmann::json body);
  // Replaces. A resourceVersion in the body that is not the stored one is Aborted (409 Conflict); NotFound if it is
  // not there. Writing what is there already changes nothing. `status` and what the server allocated (clusterIP,
  // nodePorts) stay unless the body names them.
  absl::StatusOr<ObjectRef> Update(nlohmann::json body);
  // Create or update, as `kubectl apply` of a whole manifest. A resourceVersion of what is not there any more is stale.
  absl::StatusOr<ObjectRef> Apply(nlohmann::json body);
  // JSON merge patch (RFC 7386). InvalidArgument if `kind` has no group and several groups hold that name.
  absl::StatusOr<ObjectRef> Patch(std::string_view kind, const NamespacedName& name, const nlohmann::json& patch);
  // Dependents go with it (ownerReferences). A pod first terminates: it gets a deletionTimestamp, and is gone when the
  // kubelet finalizes it.
  absl::Status Delete(std::string_view kind, const NamespacedName& name);
  // Removes at once, whatever it is.
  absl::Status Finalize(std::string_view kind, const NamespacedName& name);

  ObjectRef Get(std::string_view kind, const NamespacedName& name) const;  // null if it is not there
  // In order of group, then key. O(objects of the kind) or, with a namespace, O(objects in it).
  std::vector<ObjectRef> List(std::string_view kind, std::string_view ns = {}) const;

  // Observers run within the write, in order of registration, after the store has changed. They may write.
  using Observer = std::function<void(const Change&)>;
  // A kind without group must be one of Kubernetes' own.
  void Observe(std::string_view kind, Observer observer);

  // Watches. `after` is a resourceVersion; OutOfRange if its successors are no longer all there.
  using WatchId = uint64_t;
  struct WatchSink {
    std::function<void(const Change&)> on_change;
    std::function<void(absl::Status)> on_end;
  };
  absl::StatusOr<WatchId> StartWatch(std::string_view kind, int64_t after, WatchSink sink);
  void StopWatch(WatchId id) { watches_.erase(id); }
  void DropWatches(const absl::Status& reason);
  void ForgetHistory();

  Faults& faults() { return faults_; }
  size_t objects() const { return object_count_; }

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
  struct WatchState {
    std::string kind;  // as it was named
    WatchSink sink;
  };

  absl::StatusOr<ObjectRef> Store(nlohmann::json body, const ObjectRef& previous);
  void Notify(kube::WatchEventType type, const ObjectRef& object, const ObjectRef& previous);
  void DeleteDependents(const std::string& uid);
  // What `kind` names, as far as it is known; at most one unless it stands for any group.
  std::vector<const Kind*> Find(const GroupKind& kind) const;
  // The one object that is meant; NotFound, or InvalidArgument if that is not clear.
  absl::StatusOr<ObjectRef> One(std::string_view kind, const NamespacedName& name) const;

  Host& host_;
  const Options options_;
  NameId trace_name_;
  int64_t resource_version_;
  uint64_t created_ = 0;
  size_t object_count_ = 0;
  std::map<KindLess::Key, Kind, KindLess> kinds_;
  std::map<std::string, std::map<std::pair<std::string, NamespacedName>, bool>>
      dependents_;  // by owner uid; qualified kinds
  ServiceAllocator services_;
  std::deque<Change> history_;
  int64_t history_floor_;
  std::map<std::string, std::vector<Observer>, std::less<>> observers_;  // by qualified kind
  std::map<WatchId, WatchState> watches_;
  WatchId next_watch_ = 1;
  Faults faults_;
};

// What a real API server fills in: protocols of ports, types, replicas, Secrets' stringData. What is allocated (cluster
// IPs, node ports) is not among it.
void SetDefaults(nlohmann::json& body);

}  // namespace wavetank::fakekube
