#include "record/rest_client.h"

#include <utility>

#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/text/json_brackets.h"
#include "core/base/text/percent.h"
#include "fmt/format.h"

namespace wavetank::record {
namespace {

using kube::ListOptions;
using kube::ObjectRef;
using kube::ResourceKind;
using nlohmann::json;

constexpr size_t kMaxErrorBytes = 64 << 10;

// As a part of a URL.
std::string Escaped(std::string_view text) { return PercentEncoded(text, "-._"); }

// What a server says about itself, on one line and not without end.
std::string Printable(std::string text) {
  constexpr size_t kMax = 300;
  if (text.size() > kMax) text.resize(kMax);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = ' ';
  }
  return text;
}

// An HTTP code with the Status object that should come along.
absl::Status StatusOf(int code, std::string_view body) {
  std::string message;
  if (const absl::StatusOr<json> parsed = ParseHostileJson(body.substr(0, kMaxErrorBytes));
      parsed.ok() && parsed->is_object()) {
    if (const auto it = parsed->find("message"); it != parsed->end() && it->is_string()) {
      message = Printable(it->get<std::string>());
    }
  }
  const std::string text = message.empty() ? fmt::format("HTTP {}", code) : fmt::format("HTTP {}: {}", code, message);
  switch (code) {
    case 401:
      return absl::UnauthenticatedError(text);
    case 403:
      return absl::PermissionDeniedError(text);
    case 404:
      return absl::NotFoundError(text);
    case 410:
      return absl::OutOfRangeError(text);
    case 429:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

const json* Find(const json& in, const char* key) {
  if (!in.is_object()) return nullptr;
  const auto it = in.find(key);
  return it == in.end() ? nullptr : &*it;
}

std::string Text(const json* in, const char* key) {
  const json* found = in == nullptr ? nullptr : Find(*in, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

// A list's items do not say what they are.
absl::StatusOr<ObjectRef> Read(json body, const ResourceKind& kind) {
  if (body.is_object()) {
    body["apiVersion"] = kind.ApiVersion();
    body["kind"] = std::string(kind.kind);
  }
  return kube::Object::FromJson(std::move(body));
}

absl::StatusOr<int64_t> Version(const json& in) {
  const json* metadata = Find(in, "metadata");
  const std::string text = Text(metadata, "resourceVersion");
  int64_t value = 0;
  if (text.empty() || text.size() > 18) return absl::UnavailableError("it has no resourceVersion that is a number");
  for (const char c : text) {
    if (c < '0' || c > '9') return absl::UnavailableError("it has no resourceVersion that is a number");
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

absl::StatusOr<json> ParseHostileJson(std::string_view text, int max_depth) {
  // json's own copying and printing recurse, so that depth is looked at before anything is built.
  if (DeeperThan(text, static_cast<size_t>(max_depth)))
    return absl::InvalidArgumentError(fmt::format("JSON is nested deeper than {} levels", max_depth));
  json parsed = ParseJson(text);
  if (parsed.is_discarded()) return absl::InvalidArgumentError("this is no JSON");
  return parsed;
}

// One list, page after page.
class RestClient::Listing : public std::enable_shared_from_this<RestClient::Listing> {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)>;
  Listing(RestClient& client, const ResourceKind& kind, ListOptions options, Done done)
      : client_(client), kind_(kind), options_(std::move(options)), done_(std::move(done)) {}

  void Ask() {
    body_.clear();
    code_ = 0;
    std::string more;
    if (!whole_) more = fmt::format("limit={}", client_.limits_.page);
    if (!continue_.empty()) more += "&continue=" + Escaped(continue_);
    Transport::Callbacks callbacks;
    callbacks.on_code = [this](int code) { code_ = code; };
    callbacks.on_data = [this](std::string_view piece) {
      if (body_.size() + piece.size() > client_.limits_.max_page_bytes) {
        return Finish(absl::UnavailableError(
            fmt::format("a page of the list is larger than {} bytes", client_.limits_.max_page_bytes)));
      }
      body_ += piece;
    };
    callbacks.on_end = [this](absl::Status status) { End(std::move(status)); };
    call_ = client_.transport_.Get(Target(kind_, options_, more), false, std::move(callbacks));
  }

 private:
  void End(absl::Status status) {
    if (status.ok() && code_ != 200) status = StatusOf(code_, body_);
    if (absl::IsOutOfRange(status) && !continue_.empty()) {
      // The list's later pages have been forgotten: all at once, as client-go's pager does.
      whole_ = true;
      continue_.clear();
      list_ = {};
      return Ask();
    }
    const std::string key = Target(kind_, options_, "");
    const bool never = !client_.listed_.contains(key);
    if (absl::IsNotFound(status) || (never && absl::IsPermissionDenied(status))) {
      client_.Report(kind_, options_, status);
      return Finish(kube::ObjectList{});
    }
    if (!status.ok()) return Finish(std::move(status));
    absl::StatusOr<json> parsed = ParseHostileJson(body_);
    if (!parsed.ok()) return Finish(absl::UnavailableError(std::string(Message(parsed.status()))));
    absl::StatusOr<int64_t> version = Version(*parsed);
    if (!version.ok()) return Finish(version.status());
    // Pages of one list are one state; what is asked for after them must not miss what happened meanwhile.
    if (list_.resource_version == 0) list_.resource_version = *version;
    const auto items = parsed->find("items");
    if (items != parsed->end() && items->is_array()) {
      for (json& item : *items) {
        absl::StatusOr<ObjectRef> object = Read(std::move(item), kind_);
        if (object.ok()) {
          list_.items.push_back(*std::move(object));
        } else {
          client_.Report(kind_, options_, object.status());
        }
      }
    } else if (items != parsed->end() && !items->is_null()) {
      return Finish(absl::UnavailableError("the answer is no list"));
    }
    const json* metadata = Find(*parsed, "metadata");
    const std::string next = Text(metadata, "continue");
    if (next.empty()) {
      client_.listed_.insert(key);
      return Finish(std::move(list_));
    }
    // Whoever gives the same page forever is stopped.
    if (next == continue_ || ++pages_ > 100'000) return Finish(absl::UnavailableError("the list has no end"));
    continue_ = next;
    Ask();
  }

  void Finish(absl::StatusOr<kube::ObjectList> result) {
    const std::shared_ptr<Listing> self = shared_from_this();
    call_.reset();
    client_.under_way_.erase(self);
    if (!result.ok()) client_.Report(kind_, options_, result.status());
    if (Done done = std::exchange(done_, nullptr); done != nullptr) done(std::move(result));
  }

  RestClient& client_;
  const ResourceKind kind_;
  const ListOptions options_;
  Done done_;
  std::unique_ptr<Transport::Call> call_;
  std::string body_, continue_;
  int code_ = 0, pages_ = 0;
  bool whole_ = false;
  kube::ObjectList list_;
};

class RestClient::Watching final : public kube::Watch {
 public:
  Watching(RestClient& client, const ResourceKind& kind, ListOptions options, kube::WatchCallbacks callbacks)
      : client_(client), kind_(kind), options_(std::move(options)), callbacks_(std::move(callbacks)) {}
  ~Watching() override { client_.host_.Cancel(timer_); }

  void Start(int64_t resource_version) {
    if (resource_version == 0) {
      timer_ = client_.host_.RunAfter(Duration::zero(), [this] {
        timer_ = kNoTimer;
        End(absl::OutOfRangeError("there was nothing to watch"));
      });
      return;
    }
    const int64_t least = client_.limits_.watch_timeout / 1s;
    const Duration lasts = client_.jitter_.Between(least, 2 * least) * Duration(1s);
    const std::string more = fmt::format("allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}&watch=true",
                                         resource_version, lasts / 1s);
    Transport::Callbacks callbacks;
    callbacks.on_code = [this](int code) { code_ = code; };
    callbacks.on_data = [this](std::string_view piece) { Take(piece); };
    callbacks.on_end = [this](const absl::Status& status) {
      if (!status.ok()) return Broken(status);
      if (code_ != 200) return Broken(StatusOf(code_, line_));
      End(absl::UnavailableError("the watch's time is over"));
    };
    call_ = client_.transport_.Get(Target(kind_, options_, more), true, std::move(callbacks));
    timer_ = client_.host_.RunAfter(lasts + client_.limits_.watch_grace, [this] {
      timer_ = kNoTimer;
      Broken(absl::UnavailableError("the watch has not ended when it should have: connection lost"));
    });
  }

 private:
  void Take(std::string_view piece) {
    const std::weak_ptr<char> alive = alive_;
    if (code_ != 200) {
      if (line_.size() < kMaxErrorBytes) line_ += piece;
      return;
    }
    while (!piece.empty() && !ended_) {
      const size_t end = piece.find('\n');
      const std::string_view part = piece.substr(0, end);
      if (line_.size() + part.size() > client_.limits_.max_line_bytes) {
        // What the object is like now cannot be known from here on: list it anew, where pages may be larger.
        return Broken(
            absl::OutOfRangeError(fmt::format("an event is larger than {} bytes", client_.limits_.max_line_bytes)));
      }
      line_ += part;
      if (end == std::string_view::npos) return;
      piece.remove_prefix(end + 1);
      const std::string line = std::exchange(line_, {});
      if (!line.empty()) Event(line);
      if (alive.expired()) return;
    }
  }

  void Event(const std::string& line) {
    absl::StatusOr<json> parsed = ParseHostileJson(line);
    if (!parsed.ok() || !parsed->is_object()) {
      return Broken(absl::OutOfRangeError("an event of the watch cannot be read: it is no JSON object"));
    }
    const std::string type = Text(&*parsed, "type");
    const auto object = parsed->find("object");
    if (object == parsed->end() || !object->is_object()) {
      return Broken(absl::OutOfRangeError("an event of the watch holds no object"));
    }
    if (type == "ERROR") {
      const json* code = Find(*object, "code");
      const int number = code != nullptr && code->is_number_integer() ? code->get<int>() : 500;
      return Broken(StatusOf(number, JsonText(*object)));
    }
    kube::WatchEvent event{};
    if (type == "BOOKMARK") {
      const absl::StatusOr<int64_t> version = Version(*object);
      if (!version.ok()) return;
      auto bookmark = std::make_shared<kube::Object>();
      bookmark->meta.resource_version = *version;
      event = {kube::WatchEventType::kBookmark, std::move(bookmark)};
    } else {
      if (type == "ADDED") {
        event.type = kube::WatchEventType::kAdded;
      } else if (type == "MODIFIED") {
        event.type = kube::WatchEventType::kModified;
      } else if (type == "DELETED") {
        event.type = kube::WatchEventType::kDeleted;
      } else {
        return;  // of a later Kubernetes
      }
      absl::StatusOr<ObjectRef> read = Read(std::move(*object), kind_);
      if (!read.ok()) return client_.Report(kind_, options_, read.status());
      event.object = *std::move(read);
    }
    callbacks_.on_event(event);
  }

  void Broken(const absl::Status& status) {
    // A version that is too old is everyday life, but an unreadable event is not.
    client_.Report(kind_, options_, status);
    // What was there and is no longer served (404) has to be listed, to see that it is gone.
    End(absl::IsNotFound(status) ? absl::OutOfRangeError(std::string(Message(status))) : status);
  }

  void End(absl::Status status) {
    if (std::exchange(ended_, true)) return;
    call_.reset();
    client_.host_.Cancel(std::exchange(timer_, kNoTimer));
    callbacks_.on_end(std::move(status));
  }

  RestClient& client_;
  const ResourceKind kind_;
  const ListOptions options_;
  kube::WatchCallbacks callbacks_;
  std::unique_ptr<Transport::Call> call_;
  TimerId timer_ = kNoTimer;
  std::string line_;
  int code_ = 0;
  bool ended_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

RestClient::RestClient(Host& host, Transport& transport, RandomStream jitter, RestLimits limits)
    : host_(host), transport_(transport), jitter_(jitter), limits_(limits) {}

RestClient::~RestClient() = default;

std::string RestClient::Target(const ResourceKind& kind, const ListOptions& options, std::string_view more) {
  std::string out =
      kind.group.empty() ? fmt::format("/api/{}", kind.version) : fmt::format("/apis/{}/{}", kind.group, kind.version);
  if (!options.ns.empty() && kind.namespaced) out += "/namespaces/" + Escaped(options.ns);
  out += fmt::format("/{}", kind.resource);
  char separator = '?';
  const auto add = [&](std::string_view text) {
    out += separator;
    out += text;
    separator = '&';
  };
  if (!options.label_selector.empty()) add("labelSelector=" + Escaped(options.label_selector));
  if (!options.field_selector.empty()) add("fieldSelector=" + Escaped(options.field_selector));
  if (!more.empty()) add(more);
  return out;
}

void RestClient::Report(const ResourceKind& kind, const ListOptions& options, const absl::Status& why) {
  if (on_problem) on_problem(kind, options, why);
}

void RestClient::List(const ResourceKind& kind, const ListOptions& options,
                      absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) {
  auto listing = std::make_shared<Listing>(*this, kind, options, std::move(done));
  under_way_.insert(listing);
  listing->Ask();
}

std::unique_ptr<kube::Watch> RestClient::StartWatch(const ResourceKind& kind, const ListOptions& options,
                                                    int64_t resource_version, kube::WatchCallbacks callbacks) {
  auto watch = std::make_unique<Watching>(*this, kind, options, std::move(callbacks));
  watch->Start(resource_version);
  return watch;
}

void RestClient::Apply(ObjectRef, absl::AnyInvocable<void(absl::StatusOr<ObjectRef>)> done) {
  host_.Post([done = std::move(done)]() mutable { done(absl::UnimplementedError("a recording changes nothing")); });
}

void RestClient::Delete(const ResourceKind&, const kube::NamespacedName&, absl::AnyInvocable<void(absl::Status)> done) {
  host_.Post([done = std::move(done)]() mutable { done(absl::UnimplementedError("a recording changes nothing")); });
}

}  // namespace wavetank::record
