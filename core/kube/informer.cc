#include "core/kube/informer.h"

#include <algorithm>
#include <utility>

namespace wavetank::kube {
namespace {

// client-go's reflector back-off: 800 ms doubling to 30 s (without its jitter, which draws from no named stream).
constexpr Duration kFirstBackoff = 800ms;
constexpr Duration kMaxBackoff = 30s;

}  // namespace

Informer::Informer(Client& client, Host& host, const ResourceKind& kind, ListOptions options)
    : client_(client),
      host_(host),
      kind_(kind),
      options_(std::move(options)),
      self_(std::make_shared<Informer*>(this)) {}

Informer::~Informer() { Stop(); }

void Informer::Start() { Relist(); }

void Informer::Stop() {
  stopped_ = true;
  watch_.reset();
  *self_ = nullptr;
}

void Informer::WhenSynced(std::function<void()> fn) {
  if (synced_) return fn();
  when_synced_.push_back(std::move(fn));
}

ObjectRef Informer::Get(const NamespacedName& name) const {
  const auto it = objects_.find(name);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<ObjectRef> Informer::List(const std::string& ns) const {
  std::vector<ObjectRef> out;
  for (auto it = objects_.lower_bound({ns, ""}); it != objects_.end() && it->first.ns == ns; ++it) {
    out.push_back(it->second);
  }
  return out;
}

void Informer::Relist() {
  watch_.reset();
  client_.List(kind_, options_, [self = self_](absl::StatusOr<ObjectList> list) {
    if (*self != nullptr) (*self)->OnList(std::move(list));
  });
}

void Informer::OnList(absl::StatusOr<ObjectList> list) {
  if (!list.ok()) return RetryLater(true);
  failures_ = 0;
  resource_version_ = list->resource_version;
  // What is no longer there went while nobody watched.
  std::map<NamespacedName, ObjectRef> present;
  for (const ObjectRef& object : list->items) present[{object->meta.ns, object->meta.name}] = object;
  std::vector<std::pair<NamespacedName, ObjectRef>> gone;
  for (const auto& [name, object] : objects_) {
    if (present.count(name) == 0) gone.emplace_back(name, object);
  }
  const std::shared_ptr<Informer*> self = self_;
  for (const auto& [name, object] : gone) {
    Remove(name, object);
    if (*self == nullptr) return;
  }
  for (const ObjectRef& object : list->items) {
    Put(object);
    if (*self == nullptr) return;
  }
  StartWatch();
  if (synced_) return;
  synced_ = true;
  std::vector<std::function<void()>> when = std::move(when_synced_);
  for (auto& fn : when) fn();
}

void Informer::StartWatch() {
  WatchCallbacks callbacks;
  callbacks.on_event = [self = self_](const WatchEvent& event) {
    if (*self != nullptr) (*self)->OnEvent(event);
  };
  callbacks.on_end = [self = self_](const absl::Status& status) {
    if (*self != nullptr) (*self)->OnEnd(status);
  };
  watch_ = client_.StartWatch(kind_, options_, resource_version_, std::move(callbacks));
}

void Informer::OnEvent(const WatchEvent& event) {
  failures_ = 0;
  resource_version_ = std::max(resource_version_, event.object->meta.resource_version);
  switch (event.type) {
    case WatchEventType::kAdded:
    case WatchEventType::kModified:
      return Put(event.object);
    case WatchEventType::kDeleted:
      return Remove({event.object->meta.ns, event.object->meta.name}, event.object);
    case WatchEventType::kBookmark:
      return;
  }
}

void Informer::OnEnd(const absl::Status& status) {
  // 410 Gone: what happened since is unknown, list again at once. Anything else: resume, not too fast.
  if (absl::IsOutOfRange(status)) return Relist();
  RetryLater(false);
}

void Informer::RetryLater(bool relist) {
  const Duration delay = std::min<Duration>(kMaxBackoff, kFirstBackoff * (int64_t{1} << std::min(failures_++, 10)));
  host_.RunAfter(delay, [self = self_, relist] {
    if (*self == nullptr) return;
    if (relist || !(*self)->synced_) {
      (*self)->Relist();
    } else {
      (*self)->StartWatch();
    }
  });
}

void Informer::Put(const ObjectRef& object) {
  ObjectRef& slot = objects_[{object->meta.ns, object->meta.name}];
  const ObjectRef old = std::exchange(slot, object);
  const std::shared_ptr<Informer*> self = self_;
  for (size_t i = 0; i < handlers_.size() && *self != nullptr; ++i) {
    if (old == nullptr) {
      if (handlers_[i].on_add) handlers_[i].on_add(object);
    } else if (old->meta.resource_version != object->meta.resource_version) {
      if (handlers_[i].on_update) handlers_[i].on_update(old, object);
    }
  }
}

void Informer::Remove(const NamespacedName& name, const ObjectRef& last) {
  if (objects_.erase(name) == 0) return;
  const std::shared_ptr<Informer*> self = self_;
  for (size_t i = 0; i < handlers_.size() && *self != nullptr; ++i) {
    if (handlers_[i].on_delete) handlers_[i].on_delete(last);
  }
}

}  // namespace wavetank::kube
