// Those that want to be told of something, and the handle that ends it: a callback is called while its Subscription
// lives, and never after, also if it ends itself or another one from within a call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace wavetank {

// Ends with this handle. May outlive whatever it was got from.
class [[nodiscard]] Subscription {
 public:
  Subscription() = default;
  explicit Subscription(std::shared_ptr<const void> callback) : callback_(std::move(callback)) {}
  void Cancel() { callback_.reset(); }
  bool active() const { return callback_ != nullptr; }

 private:
  std::shared_ptr<const void> callback_;
};

// Several, which end together.
class Subscriptions {
 public:
  void Add(Subscription subscription) { all_.push_back(std::move(subscription)); }
  void Clear() { all_.clear(); }

 private:
  std::vector<Subscription> all_;
};

// In order of registration. A callback may add others, which are told of the same event, too.
template <class... Args>
class Observers {
 public:
  using Callback = std::function<void(Args...)>;

  Subscription Add(Callback callback) {
    auto kept = std::make_shared<const Callback>(std::move(callback));
    callbacks_.push_back(kept);
    return Subscription(std::move(kept));
  }

  // Nobody is there to be told, so that what is told need not be made.
  bool empty() const {
    return std::all_of(callbacks_.begin(), callbacks_.end(), [](const auto& callback) { return callback.expired(); });
  }

  void Tell(Args... args) {
    ++depth_;
    bool ended = false;
    // By index: a callback may add another.
    for (size_t i = 0; i < callbacks_.size(); ++i) {
      const std::shared_ptr<const Callback> callback = callbacks_[i].lock();
      if (callback != nullptr) (*callback)(args...);
      ended = ended || callback == nullptr;
    }
    if (--depth_ == 0 && ended) std::erase_if(callbacks_, [](const auto& callback) { return callback.expired(); });
  }

 private:
  std::vector<std::weak_ptr<const Callback>> callbacks_;
  int depth_ = 0;
};

}  // namespace wavetank
