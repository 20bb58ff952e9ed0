// The border between the control plane and one cluster's API server: what client-go's dynamic client offers, reduced to
// what istiod uses. fakes/kube implements it in the simulator; a recorded or a real cluster can implement it too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/kube/object.h"

namespace wavetank::kube {

struct ListOptions {
  std::string ns;              // empty: all namespaces
  std::string label_selector;  // Kubernetes syntax; empty: everything
  std::string field_selector;  // "metadata.name=x,metadata.namespace=y"; empty: everything
};

struct ObjectList {
  std::vector<ObjectRef> items;  // in key order
  int64_t resource_version = 0;
};

enum class WatchEventType : uint8_t { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type;
  ObjectRef object;  // for kDeleted the last state; for kBookmark only meta.resource_version matters
};

// A running watch; destroying it ends the watch, and neither callback runs afterwards.
class Watch {
 public:
  virtual ~Watch() = default;
};

struct WatchCallbacks {
  absl::AnyInvocable<void(const WatchEvent&)> on_event;
  // The stream ended: OutOfRange is Kubernetes' 410 Gone (relist), Unavailable a broken connection (watch again),
  // Unauthenticated 401.
  absl::AnyInvocable<void(absl::Status)> on_end;
};

// Callbacks come later, never from inside the call that asked for them.
class Client {
 public:
  virtual ~Client() = default;

  virtual void List(const ResourceKind& kind, const ListOptions& options,
                    absl::AnyInvocable<void(absl::StatusOr<ObjectList>)> done) = 0;

  // Events after `resource_version`, in order.
  virtual std::unique_ptr<Watch> StartWatch(const ResourceKind& kind, const ListOptions& options,
                                            int64_t resource_version, WatchCallbacks callbacks) = 0;

  // Creates or replaces. An object that names a resourceVersion other than the stored one is Aborted (409 Conflict).
  virtual void Apply(ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<ObjectRef>)> done) = 0;

  virtual void Delete(const ResourceKind& kind, const NamespacedName& name,
                      absl::AnyInvocable<void(absl::Status)> done) = 0;
};

// Makes the client of a cluster from a kubeconfig that was already validated. The factory belongs to the host: in the
// simulator the kubeconfig's server names one of the world's API servers.
class ClientFactory {
 public:
  virtual ~ClientFactory() = default;
  // Unavailable when no server answers at that address.
  virtual absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& cluster_id,
                                                          const std::string& kubeconfig) = 0;
};

}  // namespace wavetank::kube
