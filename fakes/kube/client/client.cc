#include "fakes/kube/client/client.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/base/assert.h"
#include "core/base/buggify/buggify.h"
#include "core/base/json_access.h"
#include "core/kube/definitions.h"
#include "core/kube/label_selector.h"
#include "fakes/kube/client/served_group.h"
#include "fakes/kube/objects/kinds.h"
#include "fakes/kube/objects/selector.h"

namespace wavetank::fakekube {
namespace {

// How long a request waits for a server that does not answer (client-go's dial timeout), and how often a broken line
// is looked at again while events wait on it.
constexpr Duration kDialTimeout = 30s;
constexpr Duration kLineRetry = 200ms;
constexpr Duration kBookmarkInterval = 60s;
// client-go: rest/with_retry.go. A 429 with Retry-After is tried again by the client itself, so often.
constexpr int kMaxRetries = 10;

// The one object that a field selector means; "": several. As kube-apiserver knows it (apiserver:
// pkg/endpoints/request/requestinfo.go).
std::string NamedBy(const std::string& field_selector) {
  constexpr std::string_view kName = "metadata.name=";
  if (!field_selector.starts_with(kName) || field_selector.find(',') != std::string::npos) return {};
  return field_selector.substr(kName.size());
}

// Nothing but the status is another (metadata that users do not write left aside).
bool StatusAlone(const nlohmann::json& before, const nlohmann::json& after) {
  const auto same = [](const nlohmann::json& a, const nlohmann::json& b, std::string_view but_for) {
    return std::all_of(a.items().begin(), a.items().end(), [&](const auto& member) {
      return member.key() == but_for || member.key() == "metadata" || At(b, member.key()) == member.value();
    });
  };
  const nlohmann::json &was = At(before, "metadata"), &is = At(after, "metadata");
  return same(before, after, "status") && same(after, before, "status") && At(was, "labels") == At(is, "labels") &&
         At(was, "annotations") == At(is, "annotations");
}

// Outlives the client as long as callbacks are on their way.
struct Shared {
  ApiServer& server;
  Host& host;
  NameId name;
  ClientLatency latency;
  RandomStream stream;
  ClientPermit permit;  // null: may do everything

  absl::Status Permit(std::string_view verb, const kube::ResourceKind& kind, std::string ns, std::string one) const {
    if (permit == nullptr) return absl::OkStatus();
    return permit(
        {"", std::string(verb), std::string(kind.group), std::string(kind.resource), std::move(ns), std::move(one)});
  }
  // Of a write: creating or replacing what is there, or its status alone.
  absl::Status PermitWrite(const kube::Object& object) const {
    if (permit == nullptr) return absl::OkStatus();
    const std::string group(GroupOf(object.api_version)), plural = PluralOf(object.kind);
    const ObjectRef there = server.Get(Qualified(GroupKindOf(object)), {object.meta.ns, object.meta.name});
    // Of a creation an authorizer does not know the name (kubernetes: a POST to the collection).
    if (there == nullptr) return permit({"", "create", group, plural, object.meta.ns, ""});
    const std::string resource = StatusAlone(there->body, object.body) ? plural + "/status" : plural;
    absl::Status refused = permit({"", "update", group, resource, object.meta.ns, object.meta.name});
    // Clients do either, as their roles let them.
    return refused.ok() ? refused : permit({"", "patch", group, resource, object.meta.ns, object.meta.name});
  }

  // Round trip for a request now; nothing if nobody will answer.
  std::optional<Duration> RoundTrip(const CallFate& fate) {
    if (!fate.answered) return std::nullopt;
    Duration total = latency.request + fate.delay + BuggifyDelay(BuggifyPoint::kRequestLate);
    if (latency.transit != nullptr) {
      const std::optional<Duration> there = latency.transit(), back = latency.transit();
      if (!there || !back) return std::nullopt;
      total += *there + *back;
    }
    return total;
  }
};

// Events leave in order; each is delayed by itself, but never overtakes the one before.
class WatchStream final : public kube::Watch, public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(std::shared_ptr<Shared> shared, const kube::ResourceKind& kind, kube::LabelSelector labels,
              FieldSelector fields, std::string ns, std::string name, kube::WatchCallbacks callbacks)
      : shared_(std::move(shared)),
        resource_(kind),
        kind_(Qualified(kind)),
        labels_(std::move(labels)),
        fields_(std::move(fields)),
        ns_(std::move(ns)),
        name_(std::move(name)),
        callbacks_(std::move(callbacks)) {}

  void Start(int64_t after, int attempt = 0) {
    if (closed_) return;
    const CallFate fate = shared_->server.FateOf(ApiCall::kWatch);
    if (fate.retry_after > Duration::zero() && attempt < kMaxRetries) {
      shared_->host.RunAfter(fate.retry_after, [weak = weak_from_this(), after, attempt] {
        if (const auto self = weak.lock()) self->Start(after, attempt + 1);
      });
      return;
    }
    if (!fate.answered) return EndLater(absl::UnavailableError("connection refused"));
    if (!fate.refusal.ok()) return EndLater(fate.refusal);
    if (absl::Status refused = shared_->Permit("watch", resource_, ns_, name_); !refused.ok()) return EndLater(refused);
    // etcd may have compacted what lies between, at any time.
    if (BuggifyFires(BuggifyPoint::kWatchExpired)) return EndLater(absl::OutOfRangeError("too old resource version"));
    const std::weak_ptr<WatchStream> weak = weak_from_this();
    absl::StatusOr<ApiServer::WatchId> id = shared_->server.StartWatch(kind_, after,
                                                                       {[weak](const Change& change) {
                                                                          if (const auto self = weak.lock())
                                                                            self->OnChange(change);
                                                                        },
                                                                        [weak](const absl::Status& reason) {
                                                                          if (const auto self = weak.lock()) {
                                                                            self->id_.reset();
                                                                            self->EndLater(reason);
                                                                          }
                                                                        }});
    if (!id.ok()) return EndLater(id.status());
    id_ = *id;
    Bookmark();
  }

  void Close() {
    closed_ = true;
    if (id_) shared_->server.StopWatch(*id_);
    id_.reset();
  }

 private:
  bool Selects(const kube::Object& object) const {
    return (ns_.empty() || object.meta.ns == ns_) && labels_.Matches(object.meta.labels) && fields_.Matches(object);
  }

  void OnChange(const Change& change) {
    WAVETANK_ASSERT(change.object != nullptr);
    WAVETANK_ASSERT(change.resource_version > version_, change.resource_version, version_);
    version_ = change.resource_version;  // nothing is told twice, or in another order
    // What follows comes behind the end, and so never.
    if (BuggifyFires(BuggifyPoint::kWatchBroken)) EndLater(absl::UnavailableError("unexpected EOF"));
    // As the real watch cache does: an object that leaves the selection is deleted for this watcher, one that enters
    // is added.
    const bool now = change.type != kube::WatchEventType::kDeleted && Selects(*change.object);
    const bool before = change.previous != nullptr && Selects(*change.previous);
    if (!now && !before) return;
    kube::WatchEvent event;
    event.type = now ? (before ? kube::WatchEventType::kModified : kube::WatchEventType::kAdded)
                     : kube::WatchEventType::kDeleted;
    event.object = change.object;
    Deliver(std::move(event), shared_->host.Now());
  }

  // TCP holds what is written while the line is cut, and hands it over in order when it is back.
  void Deliver(kube::WatchEvent event, Time written) {
    if (held_.empty() && Send(event, written)) return;
    held_.push_back({std::move(event), written, shared_->host.cause()});
    if (held_.size() == 1) TryAgainLater();
  }

  void TryAgainLater() {
    shared_->host.RunAfter(kLineRetry, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr || self->closed_) return;
      while (!self->held_.empty()) {
        Held& first = self->held_.front();
        const ScopedCause cause(self->shared_->host, first.cause);
        if (!self->Send(first.event, first.written)) return self->TryAgainLater();
        self->held_.pop_front();
      }
    });
  }

  // False, and nothing has happened: the line is cut.
  bool Send(kube::WatchEvent& event, Time written) {
    Duration delay = shared_->latency.watch_delay + shared_->server.FateOf(ApiCall::kWatchEvent).delay +
                     BuggifyDelay(BuggifyPoint::kWatchEventLate);
    if (shared_->latency.watch_jitter.count() > 0) {
      delay += Duration(shared_->stream.Between(0, shared_->latency.watch_jitter.count()));
    }
    if (shared_->latency.transit != nullptr) {
      const std::optional<Duration> transit = shared_->latency.transit();
      if (!transit) return false;
      delay += *transit;
    }
    WAVETANK_ASSERT(delay >= Duration::zero(), delay);
    const Time at = std::max(shared_->host.Now() + delay, last_);
    WAVETANK_ASSERT(at >= last_, at, last_);  // none overtakes another
    last_ = at;
    const std::weak_ptr<WatchStream> weak = weak_from_this();
    shared_->host.RunAfter(at - shared_->host.Now(), [weak, event = std::move(event), written] {
      const auto self = weak.lock();
      if (self == nullptr || self->closed_) return;
      Host& host = self->shared_->host;
      if (event.type != kube::WatchEventType::kBookmark) {
        host.Emit({TraceKind::kWatchDelivered,
                   self->shared_->name,
                   host.Intern(event.object->Key()),
                   event.object->meta.resource_version,
                   (host.Now() - written).count(),
                   {}});
      }
      self->callbacks_.on_event(event);
    });
    return true;
  }

  void EndLater(absl::Status reason) {
    const std::weak_ptr<WatchStream> weak = weak_from_this();
    const Time at = std::max(shared_->host.Now() + shared_->latency.request, last_);
    last_ = at;
    shared_->host.RunAfter(at - shared_->host.Now(), [weak, reason = std::move(reason)] {
      const auto self = weak.lock();
      if (self == nullptr || self->closed_) return;
      self->Close();
      self->callbacks_.on_end(reason);
    });
  }

  void Bookmark() {
    const std::weak_ptr<WatchStream> weak = weak_from_this();
    shared_->host.RunAfter(kBookmarkInterval, [weak] {
      const auto self = weak.lock();
      if (self == nullptr || self->closed_ || !self->id_) return;
      auto mark = std::make_shared<kube::Object>();
      mark->kind = ParseGroupKind(self->kind_).kind;
      mark->meta.resource_version = self->shared_->server.VisibleVersion();
      // Not before events that are still on their way.
      if (self->held_.empty()) {
        self->Deliver({kube::WatchEventType::kBookmark, std::move(mark)}, self->shared_->host.Now());
      }
      self->Bookmark();
    });
  }

  std::shared_ptr<Shared> shared_;
  const kube::ResourceKind resource_;  // of texts that live for ever
  const std::string kind_;
  const kube::LabelSelector labels_;
  const FieldSelector fields_;
  const std::string ns_;
  const std::string name_;  // of the one object that it is of
  kube::WatchCallbacks callbacks_;
  std::optional<ApiServer::WatchId> id_;
  int64_t version_ = 0;  // of the last change
  Time last_{};
  struct Held {
    kube::WatchEvent event;
    Time written;
    CauseId cause;
  };
  std::deque<Held> held_;  // by a line that is cut
  bool closed_ = false;
};

// What the caller holds; the stream itself may still have events on their way.
class WatchHandle final : public kube::Watch {
 public:
  explicit WatchHandle(std::shared_ptr<WatchStream> stream) : stream_(std::move(stream)) {}
  ~WatchHandle() override { stream_->Close(); }

 private:
  std::shared_ptr<WatchStream> stream_;
};

class NetworkClient final : public kube::Client, public kube::DefinitionWatcher {
 public:
  NetworkClient(ApiServer& server, Host& host, std::string name, uint64_t seed, ClientLatency latency,
                ClientPermit permit)
      : shared_(std::make_shared<Shared>(Shared{server, host, host.Intern(name), std::move(latency),
                                                RandomStream(seed, "kube client/" + name), std::move(permit)})) {}

  void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override {
    Request<kube::ObjectList>(
        ApiCall::kRead,
        [kind = Qualified(kind), options, resource = kind,
         shared = shared_.get()](ApiServer& server) -> absl::StatusOr<kube::ObjectList> {
          const std::string one = NamedBy(options.field_selector);
          absl::Status refused = shared->Permit(one.empty() ? "list" : "get", resource, options.ns, one);
          if (!refused.ok()) return refused;
          absl::StatusOr<kube::LabelSelector> labels = kube::LabelSelector::Parse(options.label_selector);
          if (!labels.ok()) return labels.status();
          absl::StatusOr<FieldSelector> fields = FieldSelector::Parse(options.field_selector);
          if (!fields.ok()) return fields.status();
          kube::ObjectList list = server.ListForClients(kind, options.ns);
          if (labels->empty() && fields->empty()) return list;
          std::erase_if(list.items, [&](const ObjectRef& object) {
            return !labels->Matches(object->meta.labels) || !fields->Matches(*object);
          });
          return list;
        },
        std::move(done));
  }

  // Nothing is sent for it: what the watch of definitions costs is not modelled.
  void WhenServed(const std::string& group, const std::vector<std::string>& kinds,
                  std::function<void()> served) override {
    auto later = [&host = shared_->host, served = std::move(served)] { host.Post(served); };
    served_.push_back(std::make_unique<ServedGroup>(shared_->server, group, kinds, std::move(later)));
  }

  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options,
                                          int64_t resource_version, kube::WatchCallbacks callbacks) override {
    // Selectors were checked by the List before.
    absl::StatusOr<kube::LabelSelector> labels = kube::LabelSelector::Parse(options.label_selector);
    absl::StatusOr<FieldSelector> fields = FieldSelector::Parse(options.field_selector);
    auto stream = std::make_shared<WatchStream>(shared_, kind, labels.value_or(kube::LabelSelector()),
                                                fields.value_or(FieldSelector()), options.ns,
                                                NamedBy(options.field_selector), std::move(callbacks));
    stream->Start(resource_version);
    return std::make_unique<WatchHandle>(std::move(stream));
  }

  void Apply(ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<ObjectRef>)> done) override {
    Request<ObjectRef>(
        ApiCall::kWrite,
        [object = std::move(object), shared = shared_.get()](ApiServer& server) -> absl::StatusOr<ObjectRef> {
          if (absl::Status refused = shared->PermitWrite(*object); !refused.ok()) return refused;
          return server.Apply(object->body, {.namespace_must_exist = true});
        },
        std::move(done));
  }

  void Delete(const kube::ResourceKind& kind, const NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override {
    Request<bool>(
        ApiCall::kWrite,
        [kind = Qualified(kind), name, resource = kind,
         shared = shared_.get()](ApiServer& server) -> absl::StatusOr<bool> {
          if (absl::Status refused = shared->Permit("delete", resource, name.ns, name.name); !refused.ok())
            return refused;
          absl::Status status = server.Delete(kind, name);
          if (!status.ok()) return status;
          return true;
        },
        [done = std::move(done)](absl::StatusOr<bool> result) mutable { done(result.status()); });
  }

 private:
  template <class Result, class Work>
  void Request(ApiCall call, Work work, absl::AnyInvocable<void(absl::StatusOr<Result>)> done) {
    Send<Result>(shared_, call, std::move(work), std::move(done), 0);
  }

  template <class Result, class Work>
  static void Send(std::shared_ptr<Shared> shared, ApiCall call, Work work,
                   absl::AnyInvocable<void(absl::StatusOr<Result>)> done, int attempt) {
    Host& host = shared->host;
    const CallFate sent = shared->server.FateOf(call);
    const std::optional<Duration> round_trip = shared->RoundTrip(sent);
    if (!round_trip) {
      host.RunAfter(sent.answered ? kDialTimeout : shared->latency.request, [done = std::move(done)]() mutable {
        done(absl::UnavailableError("no answer from the API server"));
      });
      return;
    }
    // Executed halfway: what the server says is what it knew then.
    const Duration half = *round_trip / 2;
    host.RunAfter(half, [shared = std::move(shared), call, rest = *round_trip - half, work = std::move(work),
                         done = std::move(done), attempt]() mutable {
      CallFate fate = shared->server.FateOf(call);
      if (BuggifyFires(BuggifyPoint::kRequestThrottled)) fate.retry_after = std::max<Duration>(fate.retry_after, 1s);
      Host& here = shared->host;
      if (fate.retry_after > Duration::zero() && attempt < kMaxRetries) {
        here.RunAfter(rest + fate.retry_after, [shared = std::move(shared), call, work = std::move(work),
                                                done = std::move(done), attempt]() mutable {
          Send<Result>(std::move(shared), call, std::move(work), std::move(done), attempt + 1);
        });
        return;
      }
      absl::StatusOr<Result> result = fate.refusal.ok() ? work(shared->server) : absl::StatusOr<Result>(fate.refusal);
      if (BuggifyFires(BuggifyPoint::kAnswerLost)) result = absl::UnavailableError("http2: client connection lost");
      here.RunAfter(rest, [result = std::move(result), done = std::move(done)]() mutable { done(std::move(result)); });
    });
  }

  std::vector<std::unique_ptr<ServedGroup>> served_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<kube::Client> MakeClient(ApiServer& server, Host& host, std::string name, uint64_t seed,
                                         ClientLatency latency, ClientPermit permit) {
  return std::make_unique<NetworkClient>(server, host, std::move(name), seed, std::move(latency), std::move(permit));
}

}  // namespace wavetank::fakekube
