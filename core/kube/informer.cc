#include "core/kube/informer.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace wavetank::kube {
namespace {
// client-go: tools/cache/reflector.go, NewReflector's backoffManager. Doubles, and starts over after kReset of peace.
constexpr Duration kFirstBackoff = 800ms, kMaxBackoff = 30s, kReset = 2min;
// client-go calls a watch that ends within a second "very short" and takes it for a failure.
constexpr Duration kShortWatch = 1s;
}  // namespace

Informer::Informer(Host& host, Client& client, const ResourceKind& kind, ListOptions options, RandomStream backoff)
    : host_(host),
      client_(client),
      kind_(kind),
      options_(std::move(options)),
      backoff_(backoff),
      next_backoff_(kFirstBackoff) {}

Informer::Informer(Client& client, Host& host, const ResourceKind& kind, ListOptions options)
    : Informer(host, client, kind, std::move(options), RandomStream(0, kind.resource)) {}

Informer::~Informer() { Stop(); }

void Informer::AddHandler(Handler handler) {
  handlers_.push_back(std::make_unique<Handler>(std::move(handler)));
  Handler& added = *handlers_.back();
  if (!added.on_add) return;
  for (const ObjectRef& object : objects_.All()) added.on_add(object);
}

void Informer::OnSynced(Callback done) {
  if (synced_) {
    done();
  } else {
    on_synced_.push_back(std::move(done));
  }
}

void Informer::Start() {
  if (alive_ != nullptr) return;
  alive_ = std::make_shared<char>();
  ListNow();
}

void Informer::Stop() {
  alive_.reset();
  watch_.reset();
  host_.Cancel(std::exchange(retry_, kNoTimer));
}

ObjectRef Informer::Get(std::string_view ns, std::string_view name) const {
  const ObjectRef* found = objects_.Find(ns, name);
  return found == nullptr ? nullptr : *found;
}

std::vector<ObjectRef> Informer::List(std::string_view ns) const {
  return ns.empty() ? objects_.All() : objects_.In(ns);
}

void Informer::ListNow() {
  WAVETANK_ASSERT(watch_ == nullptr);  // its events would be older than the list
  client_.List(kind_, options_, [this, alive = std::weak_ptr(alive_)](absl::StatusOr<ObjectList> list) {
    if (alive.expired()) return;
    if (!list.ok()) return Retry(true);
    Replace(*list);
    if (!alive.expired()) WatchNow();
  });
}

void Informer::WatchNow() {
  const std::weak_ptr<char> alive = alive_;
  WatchCallbacks callbacks;
  callbacks.on_event = [this, alive](const WatchEvent& event) {
    if (!alive.expired()) Deliver(event);
  };
  callbacks.on_end = [this, alive](absl::Status status) {
    if (alive.expired()) return;
    const bool list = status.code() == absl::StatusCode::kOutOfRange;
    // A watch that was running and broke is resumed at once; one that could not even start, or was refused with 429
    // until the client gave up, waits.
    if (!list && !absl::IsResourceExhausted(status) && host_.Now() - watch_started_ >= kShortWatch)
      return RetryAfter(Duration::zero(), false);
    Retry(list);
  };
  WAVETANK_ASSERT(watch_ == nullptr);  // two would deliver everything twice
  watch_started_ = host_.Now();
  watch_ = client_.StartWatch(kind_, options_, resource_version_, std::move(callbacks));
}

void Informer::Retry(bool list) {
  const Time now = host_.Now();
  if (now - last_attempt_ > kReset) next_backoff_ = kFirstBackoff;
  last_attempt_ = now;
  WAVETANK_ASSERT(next_backoff_ >= kFirstBackoff, next_backoff_);
  WAVETANK_ASSERT(next_backoff_ <= kMaxBackoff, next_backoff_);
  const Duration base = next_backoff_;
  next_backoff_ = std::min(kMaxBackoff, next_backoff_ * 2);
  RetryAfter(base + Duration(static_cast<int64_t>(backoff_.Below(static_cast<uint64_t>(base.count())))), list);
}

void Informer::RetryAfter(Duration delay, bool list) {
  WAVETANK_ASSERT(alive_ != nullptr);  // nothing is tried again once it was stopped
  host_.Cancel(retry_);
  // The callback that reports the end may stand inside the watch: it is released later, not here.
  retry_ = host_.RunAfter(delay, [this, list, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    retry_ = kNoTimer;
    watch_.reset();
    if (list) {
      ListNow();
    } else {
      WatchNow();
    }
  });
}

void Informer::Replace(const ObjectList& list) {
  const std::weak_ptr<char> alive = alive_;
  resource_version_ = list.resource_version;
  NamedObjects gone = objects_;
  for (const ObjectRef& object : list.items) gone.Erase(object->meta.ns, object->meta.name);
  for (const ObjectRef& object : list.items) {
    Put(object);
    if (alive.expired()) return;
  }
  for (const ObjectRef& last : gone.All()) {
    Remove(last);
    if (alive.expired()) return;
  }
  if (synced_) return;
  synced_ = true;
  for (Callback& done : std::exchange(on_synced_, {})) {
    done();
    if (alive.expired()) return;
  }
}

void Informer::Deliver(const WatchEvent& event) {
  if (event.object == nullptr) return;
  WAVETANK_ASSERT(alive_ != nullptr);
  resource_version_ = std::max(resource_version_, event.object->meta.resource_version);
  switch (event.type) {
    case WatchEventType::kAdded:
    case WatchEventType::kModified:
      return Put(event.object);
    case WatchEventType::kDeleted:
      return Remove(event.object);
    case WatchEventType::kBookmark:
      return;
  }
}

void Informer::Put(const ObjectRef& object) {
  WAVETANK_ASSERT(object != nullptr);
  const std::weak_ptr<char> alive = alive_;
  const ObjectRef old = objects_.Put(object);
  ++revision_;
  if (old != nullptr && old->meta.resource_version == object->meta.resource_version) return;
  for (size_t i = 0; i < handlers_.size() && !alive.expired(); ++i) {
    if (old == nullptr) {
      if (handlers_[i]->on_add) handlers_[i]->on_add(object);
    } else if (handlers_[i]->on_update) {
      handlers_[i]->on_update(old, object);
    }
  }
}

void Informer::Remove(const ObjectRef& last) {
  const std::weak_ptr<char> alive = alive_;
  WAVETANK_ASSERT(last != nullptr);
  if (objects_.Erase(last->meta.ns, last->meta.name) == nullptr) return;
  WAVETANK_ASSERT(!objects_.Contains(last->meta.ns, last->meta.name), last->meta.ns, last->meta.name);
  ++revision_;
  for (size_t i = 0; i < handlers_.size() && !alive.expired(); ++i) {
    if (handlers_[i]->on_delete) handlers_[i]->on_delete(last);
  }
}

}  // namespace wavetank::kube
