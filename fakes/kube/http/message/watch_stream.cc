#include "fakes/kube/http/message/watch_stream.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "fakes/kube/http/message/status.h"

namespace wavetank::fakekube::http {

using nlohmann::json;

Line LineCache::Event(std::string_view type, const ObjectRef& object, int64_t resource_version, const Form& form,
                      const std::string& form_key) {
  if (object_ != object || resource_version_ != resource_version) {
    object_ = object;
    resource_version_ = resource_version;
    lines_.clear();
  }
  const std::string key = std::string(type) + form_key;
  Line& line = lines_[key];
  if (line != nullptr) return line;
  Shared& shared = shared_[{object.get(), resource_version, key}];
  // An object at the same address may be another one's successor.
  if (shared.object.lock() == object) line = shared.line.lock();
  if (line == nullptr) {
    line = std::make_shared<const std::string>(fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type,
                                                           RenderObject(*Seen(object, form), form, resource_version)));
    shared = {object, line};
  }
  const Line found = line;
  Sweep();
  return found;
}

// As often as half of them may have gone, so that a line costs the same however many there are.
void LineCache::Sweep() {
  constexpr size_t kFew = 256;
  if (shared_.size() < 2 * swept_ + kFew) return;
  std::erase_if(shared_, [](const auto& entry) { return entry.second.line.expired(); });
  swept_ = shared_.size();
}

WatchStream::WatchStream(ApiServer& server, std::shared_ptr<LineCache> cache, Form form, Options options)
    : server_(server),
      cache_(std::move(cache)),
      form_(std::move(form)),
      form_key_(form_.CacheKey()),
      options_(std::move(options)) {}

WatchStream::~WatchStream() {
  if (id_ != 0) server_.StopWatch(id_);
}

bool WatchStream::Matches(const kube::Object& object) const {
  return (options_.ns.empty() || object.meta.ns == options_.ns) && options_.labels.Matches(object.meta.labels) &&
         options_.fields.Matches(object);
}

void WatchStream::On(const Change& change) {
  const bool is = change.type != kube::WatchEventType::kDeleted && Matches(*change.object);
  const bool was =
      change.type != kube::WatchEventType::kAdded && change.previous != nullptr && Matches(*change.previous);
  if (!is && !was) return;
  form_.now_unix_seconds = server_.UnixNow();
  // Who watches must never see a version twice: what has gone shows the version at which it went.
  if (is) {
    write_(cache_->Event(was ? "MODIFIED" : "ADDED", change.object, change.resource_version, form_, form_key_));
  } else {
    const bool deleted = change.type == kube::WatchEventType::kDeleted;
    write_(
        cache_->Event("DELETED", deleted ? change.object : change.previous, change.resource_version, form_, form_key_));
  }
}

void WatchStream::Fail(const absl::Status& status) {
  id_ = 0;
  if (status.code() == absl::StatusCode::kOutOfRange) {
    const json failure = FailureStatus(410, "Expired", Message(status));
    write_(std::make_shared<const std::string>(JsonText(json{{"type", "ERROR"}, {"object", failure}}) + "\n"));
  }
  if (auto end = std::exchange(end_, nullptr)) end();
}

void WatchStream::Start(std::function<void(Line)> write, std::function<void()> end) {
  write_ = std::move(write);
  end_ = std::move(end);
  int64_t after = options_.after;
  if (after < 0) {
    after = server_.VisibleVersion();
    for (const ObjectRef& object : server_.ListForClients(form_.resource->StoreKind(), options_.ns).items) {
      if (Matches(*object)) write_(cache_->Event("ADDED", object, object->meta.resource_version, form_, form_key_));
    }
    if (options_.tell_end_of_initial) write_(BookmarkLine(true));
  }
  const absl::StatusOr<ApiServer::WatchId> id = server_.StartWatch(
      form_.resource->StoreKind(), after,
      {[this](const Change& change) { On(change); }, [this](const absl::Status& reason) { Fail(reason); }});
  if (!id.ok()) return Fail(id.status());
  id_ = *id;
}

Line WatchStream::Bookmark() const { return BookmarkLine(false); }

Line WatchStream::BookmarkLine(bool end_of_initial) const {
  return std::make_shared<const std::string>(fmt::format(
      "{{\"type\":\"BOOKMARK\",\"object\":{}}}\n", RenderBookmark(form_, server_.VisibleVersion(), end_of_initial)));
}

}  // namespace wavetank::fakekube::http
