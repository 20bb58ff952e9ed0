// A cache of one kind of object, kept current by list and watch: client-go's reflector and shared informer.
//
// Faults that it survives: a list or watch that fails or breaks (tried again with client-go's backoff), a watch whose
// version is gone (410: listed anew, and the differences delivered). Between break and recovery the cache is stale and
// says nothing of it, as in client-go.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "core/base/containers/named_refs.h"
#include "core/base/host.h"
#include "core/base/random.h"
#include "core/kube/client.h"

namespace wavetank::kube {

// Of an object, for NamedRefs.
struct ObjectNames {
  static std::string_view NamespaceOf(const ObjectRef& object) { return object->meta.ns; }
  static std::string_view NameOf(const ObjectRef& object) { return object->meta.name; }
};
using NamedObjects = NamedRefs<ObjectRef, ObjectNames>;

class Informer {
 public:
  // Called in the order in which the API server sent things, the cache already showing the new state.
  struct Handler {
    absl::AnyInvocable<void(const ObjectRef& object)> on_add;
    absl::AnyInvocable<void(const ObjectRef& old, const ObjectRef& current)> on_update;
    absl::AnyInvocable<void(const ObjectRef& last)> on_delete;
  };

  // `host` and `client` must outlive it. `backoff` draws the jitter of retries.
  Informer(Host& host, Client& client, const ResourceKind& kind, ListOptions options, RandomStream backoff);
  // For owners without a seed at hand: the jitter then follows from the kind alone, in every world alike.
  Informer(Client& client, Host& host, const ResourceKind& kind, ListOptions options = {});
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // What is in the cache already is delivered to the handler at once. Empty functions are allowed.
  void AddHandler(Handler handler);
  // Runs once, when the first list has been delivered; at once if it has.
  void OnSynced(Callback done);
  void WhenSynced(Callback done) { OnSynced(std::move(done)); }

  void Start();
  // No callback runs afterwards; the cache stays readable.
  void Stop();
  bool stopped() const { return alive_ == nullptr; }

  // The first list has been delivered.
  bool HasSynced() const { return synced_; }
  bool synced() const { return synced_; }
  ObjectRef Get(std::string_view ns, std::string_view name) const;
  ObjectRef Get(const NamespacedName& name) const { return Get(name.ns, name.name); }
  // In key order; an empty namespace is all of them. O(n log n).
  std::vector<ObjectRef> List(std::string_view ns = {}) const;
  const NamedObjects& objects() const { return objects_; }
  // Counts the changes of the cache.
  uint64_t revision() const { return revision_; }

 private:
  void ListNow();
  void WatchNow();
  void Retry(bool list);
  void RetryAfter(Duration delay, bool list);
  void Replace(const ObjectList& list);
  void Deliver(const WatchEvent& event);
  void Put(const ObjectRef& object);
  void Remove(const ObjectRef& last);

  Host& host_;
  Client& client_;
  ResourceKind kind_;
  ListOptions options_;
  RandomStream backoff_;

  NamedObjects objects_;
  uint64_t revision_ = 0;
  std::vector<std::unique_ptr<Handler>> handlers_;
  std::vector<Callback> on_synced_;
  std::unique_ptr<Watch> watch_;
  std::shared_ptr<char> alive_;  // null while stopped; callbacks of an earlier life see that it is gone
  int64_t resource_version_ = 0;
  bool synced_ = false;
  TimerId retry_ = kNoTimer;
  Duration next_backoff_;
  Time last_attempt_{}, watch_started_{};
};

}  // namespace wavetank::kube
