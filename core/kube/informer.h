// A cache of all objects of one kind at one API server, kept up to date by list and watch, with handlers that hear of
// every change: client-go's shared informer.
//
// Survives whatever the server does: a watch that breaks is resumed where it was, history that is gone (410) is listed
// again and the difference delivered, refusals are retried with growing back-off. Handlers run on the host's thread,
// after the cache has changed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/base/random.h"
#include "core/kube/client.h"
#include "core/kube/object.h"

namespace wavetank::kube {

class Informer {
 public:
  struct Handler {
    std::function<void(const ObjectRef& object)> on_add;
    std::function<void(const ObjectRef& old, const ObjectRef& now)> on_update;
    std::function<void(const ObjectRef& last)> on_delete;
  };

  // `client` and `host` must outlive it.
  Informer(Client& client, Host& host, const ResourceKind& kind, ListOptions options = {});
  ~Informer();  // as Stop()

  void AddHandler(Handler handler) { handlers_.push_back(std::move(handler)); }
  void Start();
  // No handler runs afterwards; the cache stays as it is.
  void Stop();
  bool stopped() const { return stopped_; }

  // The first list has been delivered.
  bool HasSynced() const { return synced_; }
  // Runs once, when HasSynced becomes true (at once if it is).
  void WhenSynced(std::function<void()> fn);

  ObjectRef Get(const NamespacedName& name) const;
  // In key order.
  const std::map<NamespacedName, ObjectRef>& objects() const { return objects_; }
  // Those of one namespace.
  std::vector<ObjectRef> List(const std::string& ns) const;

 private:
  void Relist();
  void OnList(absl::StatusOr<ObjectList> list);
  void StartWatch();
  void OnEvent(const WatchEvent& event);
  void OnEnd(const absl::Status& status);
  void RetryLater(bool relist);
  void Put(const ObjectRef& object);
  void Remove(const NamespacedName& name, const ObjectRef& last);

  Client& client_;
  Host& host_;
  const ResourceKind kind_;
  const ListOptions options_;
  std::vector<Handler> handlers_;
  std::vector<std::function<void()>> when_synced_;
  std::map<NamespacedName, ObjectRef> objects_;
  std::unique_ptr<Watch> watch_;
  int64_t resource_version_ = 0;
  int failures_ = 0;
  bool synced_ = false;
  bool stopped_ = false;
  std::shared_ptr<Informer*> self_;  // null once it is gone: callbacks on their way find out
};

}  // namespace wavetank::kube
