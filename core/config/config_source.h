// Feeds a ConfigStore from the custom resources of one cluster (istiod: pilot/pkg/config/kube/crdclient).
//
// Events of all kinds go through one queue, which starts once every kind has been listed; the store therefore changes,
// and its handlers run, one event at a time in the order in which the API server sent them.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/host.h"
#include "core/config/store.h"
#include "core/kube/informer.h"

namespace wavetank::config {

// Every kind that a store holds.
std::vector<Kind> AllKinds();

class ConfigSource {
 public:
  // `client`, `host` and `store` must outlive it.
  ConfigSource(kube::Client& client, Host& host, ConfigStore& store, const std::vector<Kind>& kinds);
  ~ConfigSource();
  ConfigSource(const ConfigSource&) = delete;
  ConfigSource& operator=(const ConfigSource&) = delete;

  void Start();  // once
  // Informers stop, what waits is dropped; the store keeps what it has.
  void Stop();

  // What was there at the start has been handled.
  bool HasSynced() const { return synced_; }
  bool Idle() const { return !working_ && queue_.empty(); }

  std::function<void()> on_synced;
  // An object that cannot be read is left out; the version before stays.
  std::function<void(const kube::Object& object, const absl::Status& why)> on_unreadable;

 private:
  struct Item {
    CauseId cause;
    Kind kind;
    kube::ObjectRef object;
    bool gone;
  };

  void Enqueue(Kind kind, const kube::ObjectRef& object, bool gone);
  void OnListed();
  void MaybeRun();
  void RunNext();
  void Handle(const Item& item);

  Host& host_;
  ConfigStore& store_;
  NameId trace_name_;
  std::vector<std::unique_ptr<kube::Informer>> informers_;
  std::deque<Item> queue_;
  size_t initial_ = 0;  // items still to handle until synced
  bool running_ = false, working_ = false, synced_ = false;
  std::shared_ptr<ConfigSource*> self_;
};

}  // namespace wavetank::config
