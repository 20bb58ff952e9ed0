// Counts what a controller still has to do, so that a cluster can say whether it is settled. Work is scheduled through
// it, never behind its back.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/host.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::fakekube {

class PendingWork {
 public:
  explicit PendingWork(Host& host) : host_(host), count_(std::make_shared<int64_t>(0)) {}
  // Callbacks do not run after its end.
  ~PendingWork() { *count_ = -1; }

  bool idle() const { return *count_ == 0; }
  // The same, but for what is tried again in vain: only others can change what comes of that.
  bool idle_but_for_vain() const { return *count_ == *vain_; }

  template <class Fn>
  void After(Duration delay, Fn fn) {
    WAVETANK_ASSERT(delay >= Duration::zero(), delay);
    WAVETANK_ASSERT(*count_ >= 0, *count_);
    ++*count_;
    host_.RunAfter(delay, [count = count_, fn = std::move(fn)]() mutable {
      if (*count < 0) return;
      WAVETANK_ASSERT(*count > 0);  // what runs was counted: a cluster is not settled before it
      --*count;
      fn();
    });
  }

  // Of what has failed so often that it is tried as seldom as it ever will be.
  template <class Fn>
  void InVain(Duration delay, Fn fn) {
    ++*vain_;
    After(delay, [vain = vain_, fn = std::move(fn)]() mutable {
      --*vain;
      fn();
    });
  }

 private:
  Host& host_;
  std::shared_ptr<int64_t> count_;
  std::shared_ptr<int64_t> vain_ = std::make_shared<int64_t>(0);  // of them
};

// A controller's objects that have to be looked at: each once, however often it is asked for until then.
class NameQueue {
 public:
  using Sync = std::function<void(const NamespacedName&)>;
  NameQueue(PendingWork& pending, Sync sync) : pending_(pending), sync_(std::move(sync)) {}

  void Add(const NamespacedName& name) {
    if (!names_.insert(name).second) return;
    pending_.After(kDelay + BuggifyDelay(BuggifyPoint::kControllerLate), [this, name] {
      const size_t was_waiting = names_.erase(name);
      WAVETANK_ASSERT(was_waiting == 1, name.ns, name.name);
      sync_(name);
    });
  }

 private:
  static constexpr Duration kDelay = 5ms;  // the controller's own watch and queue

  PendingWork& pending_;
  Sync sync_;
  std::set<NamespacedName> names_;
};

}  // namespace wavetank::fakekube
