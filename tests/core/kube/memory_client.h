// An API server in a map, for tests of single controllers: answers after a fixed delay, and breaks when told to.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/host.h"
#include "core/kube/client.h"

namespace wavetank::kube {

class MemoryClient final : public Client {
 public:
  explicit MemoryClient(Host& host, Duration delay = 1ms) : host_(host), delay_(delay) {}

  bool refusing = false;  // nobody answers
  bool gone = false;      // every watch's version is gone
  int lists = 0, watches = 0, applies = 0;

  // Writes as some other client would; `body` needs no resourceVersion.
  void Put(nlohmann::json body) {
    body["metadata"]["resourceVersion"] = std::to_string(++version_);
    const ObjectRef object = Object::FromJson(std::move(body)).value();
    const Key key{object->kind, object->meta.ns, object->meta.name};
    const ObjectRef before = std::exchange(objects_[key], object);
    Notify({before != nullptr ? WatchEventType::kModified : WatchEventType::kAdded, object}, before);
  }
  void Remove(const ResourceKind& kind, const std::string& ns, const std::string& name) {
    const Key key{std::string(kind.kind), ns, name};
    ++version_;
    Notify({WatchEventType::kDeleted, objects_.at(key)});
    objects_.erase(key);
  }
  void BreakWatches(absl::Status status) {
    for (const auto& watch : std::exchange(running_, {})) {
      host_.Post([w = std::weak_ptr(watch), status] {
        if (const auto alive = w.lock()) alive->callbacks.on_end(status);
      });
    }
  }
  ObjectRef Find(const ResourceKind& kind, const std::string& ns, const std::string& name) const {
    const auto it = objects_.find(Key{std::string(kind.kind), ns, name});
    return it == objects_.end() ? nullptr : it->second;
  }

  void List(const ResourceKind& kind, const ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<ObjectList>)> done) override {
    ++lists;
    host_.RunAfter(delay_, [this, kind, options, done = std::move(done)]() mutable {
      if (refusing) return done(absl::UnavailableError("connection refused"));
      ObjectList out;
      out.resource_version = version_;
      for (const auto& [key, object] : objects_) {
        if (Matches(*object, kind, options)) out.items.push_back(object);
      }
      done(std::move(out));
    });
  }
  std::unique_ptr<Watch> StartWatch(const ResourceKind& kind, const ListOptions& options, int64_t,
                                    WatchCallbacks callbacks) override {
    ++watches;
    auto running = std::make_shared<Running>(Running{kind, options, std::move(callbacks)});
    if (refusing || gone) {
      const absl::Status status =
          gone ? absl::OutOfRangeError("too old resource version") : absl::UnavailableError("connection refused");
      host_.RunAfter(delay_, [w = std::weak_ptr(running), status] {
        if (const auto alive = w.lock()) alive->callbacks.on_end(status);
      });
    } else {
      running_.push_back(running);
    }
    return std::make_unique<Handle>(std::move(running));
  }
  void Apply(ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<ObjectRef>)> done) override {
    ++applies;
    host_.RunAfter(delay_, [this, object, done = std::move(done)]() mutable {
      if (refusing) return done(absl::UnavailableError("connection refused"));
      const Key key{object->kind, object->meta.ns, object->meta.name};
      const auto it = objects_.find(key);
      const int64_t stored = it == objects_.end() ? 0 : it->second->meta.resource_version;
      if (object->meta.resource_version != 0 && object->meta.resource_version != stored) {
        return done(absl::AbortedError("the object has been modified"));
      }
      nlohmann::json body = object->body;
      if (!object->meta.uid.empty() && it != objects_.end() && it->second->meta.uid != object->meta.uid)
        return done(absl::AbortedError("the uid is another object's, of the same name"));
      if (!object->meta.uid.empty() && it == objects_.end())
        body["metadata"]["uid"] = "uid-" + std::to_string(version_);  // the server's choice
      Put(std::move(body));
      done(objects_.at(key));
    });
  }
  void Delete(const ResourceKind& kind, const NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override {
    Remove(kind, name.ns, name.name);
    host_.RunAfter(delay_, [done = std::move(done)]() mutable { done(absl::OkStatus()); });
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;
  struct Running {
    ResourceKind kind;
    ListOptions options;
    WatchCallbacks callbacks;
  };
  struct Handle final : Watch {
    explicit Handle(std::shared_ptr<Running> r) : running(std::move(r)) {}
    std::shared_ptr<Running> running;
  };

  static bool Matches(const Object& object, const ResourceKind& kind, const ListOptions& options) {
    if (object.kind != kind.kind || (!options.ns.empty() && object.meta.ns != options.ns)) return false;
    // "key=value" alone.
    if (const size_t equals = options.label_selector.find('='); equals != std::string::npos) {
      const auto label = object.meta.labels.find(options.label_selector.substr(0, equals));
      if (label == object.meta.labels.end() || label->second != options.label_selector.substr(equals + 1)) return false;
    }
    constexpr std::string_view kName = "metadata.name=";
    return !options.field_selector.starts_with(kName) ||
           object.meta.name == options.field_selector.substr(kName.size());
  }
  // `before`: what the object was until now. An object that leaves or enters a watch's selection is deleted or added.
  void Notify(WatchEvent changed, const ObjectRef& before = nullptr) {
    std::erase_if(running_, [](const auto& r) { return r.use_count() == 1; });
    for (const auto& watch : running_) {
      WatchEvent event = changed;
      const bool matches = Matches(*event.object, watch->kind, watch->options);
      const bool matched = before != nullptr && Matches(*before, watch->kind, watch->options);
      if (!matches && !matched) continue;
      if (before != nullptr && matches != matched)
        event.type = matches ? WatchEventType::kAdded : WatchEventType::kDeleted;
      host_.RunAfter(delay_, [w = std::weak_ptr(watch), event] {
        if (const auto alive = w.lock()) alive->callbacks.on_event(event);
      });
    }
  }

  Host& host_;
  Duration delay_;
  std::map<Key, ObjectRef> objects_;
  std::vector<std::shared_ptr<Running>> running_;
  int64_t version_ = 0;
};

}  // namespace wavetank::kube
