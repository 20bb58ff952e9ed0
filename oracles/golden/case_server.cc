#include "oracles/golden/case_server.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "core/kube/credentials/kubeconfig.h"
#include "core/kube/label_selector.h"
#include "core/kube/types.h"
#include "fakes/kube/objects/selector.h"

namespace wavetank::golden {

using kube::ObjectRef;
using nlohmann::json;

namespace {

std::string HexSha1(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
  std::string out;
  for (unsigned int i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

}  // namespace

struct CaseServer::Subscription {
  std::string kind, ns;
  kube::LabelSelector labels;
  fakekube::FieldSelector fields;
  kube::WatchCallbacks callbacks;

  bool Selects(const kube::Object& object) const {
    return object.kind == kind && (ns.empty() || object.meta.ns == ns) && labels.Matches(object.meta.labels) &&
           fields.Matches(object);
  }
};

class CaseClient final : public kube::Client {
 public:
  CaseClient(CaseServer& server, Time first_answer) : server_(server), first_answer_(first_answer) {}

  void List(const kube::ResourceKind& kind, const kube::ListOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) override {
    absl::StatusOr<std::shared_ptr<CaseServer::Subscription>> selection = Select(kind, options);
    const Duration wait = std::max<Duration>(first_answer_ - server_.host_.Now(), 0ms);
    server_.host_.RunAfter(wait,
                           [&server = server_, selection = std::move(selection), done = std::move(done)]() mutable {
                             if (!selection.ok()) return done(selection.status());
                             kube::ObjectList list;
                             list.resource_version = server.resource_version_;
                             for (const auto& [key, object] : server.objects_) {
                               if ((*selection)->Selects(*object)) list.items.push_back(object);
                             }
                             done(std::move(list));
                           });
  }

  std::unique_ptr<kube::Watch> StartWatch(const kube::ResourceKind& kind, const kube::ListOptions& options, int64_t,
                                          kube::WatchCallbacks callbacks) override {
    // The list that the version comes from was answered at this very instant, so nothing lies between.
    std::shared_ptr<CaseServer::Subscription> watch = Select(kind, options).value();
    watch->callbacks = std::move(callbacks);
    server_.watches_.push_back(watch);
    return std::make_unique<Handle>(std::move(watch));
  }

  void Apply(ObjectRef object, absl::AnyInvocable<void(absl::StatusOr<ObjectRef>)> done) override {
    server_.host_.Post([&server = server_, object = std::move(object), done = std::move(done)]() mutable {
      const absl::Status status = server.Apply(object->body);
      if (!status.ok()) return done(status);
      done(server.objects_.at({object->kind, {object->meta.ns, object->meta.name}}));
    });
  }

  void Delete(const kube::ResourceKind& kind, const kube::NamespacedName& name,
              absl::AnyInvocable<void(absl::Status)> done) override {
    json body = {{"apiVersion", kind.ApiVersion()}, {"kind", kind.kind}, {"metadata", {{"name", name.name}}}};
    if (!name.ns.empty()) body["metadata"]["namespace"] = name.ns;
    server_.host_.Post(
        [&server = server_, body = std::move(body), done = std::move(done)]() mutable { done(server.Delete(body)); });
  }

 private:
  struct Handle final : kube::Watch {
    explicit Handle(std::shared_ptr<CaseServer::Subscription> w) : watch(std::move(w)) {}
    std::shared_ptr<CaseServer::Subscription> watch;
  };

  static absl::StatusOr<std::shared_ptr<CaseServer::Subscription>> Select(const kube::ResourceKind& kind,
                                                                          const kube::ListOptions& options) {
    auto out = std::make_shared<CaseServer::Subscription>();
    out->kind = std::string(kind.kind);
    out->ns = options.ns;
    absl::StatusOr<kube::LabelSelector> labels = kube::LabelSelector::Parse(options.label_selector);
    if (!labels.ok()) return labels.status();
    absl::StatusOr<fakekube::FieldSelector> fields = fakekube::FieldSelector::Parse(options.field_selector);
    if (!fields.ok()) return fields.status();
    out->labels = *std::move(labels);
    out->fields = *std::move(fields);
    return out;
  }

  CaseServer& server_;
  const Time first_answer_;
};

std::unique_ptr<kube::Client> CaseServer::MakeClient(Time first_answer) {
  return std::make_unique<CaseClient>(*this, first_answer);
}

absl::Status CaseServer::Apply(json body) {
  json& metadata = body["metadata"];
  const std::string kind = body.value("kind", ""), ns = metadata.value("namespace", ""),
                    name = metadata.value("name", "");
  metadata["resourceVersion"] = std::to_string(++resource_version_);
  const std::string hash = HexSha1(fmt::format("{}/{}/{}", kind, ns, name));
  metadata["uid"] = fmt::format("{}-{}-{}-{}-{}", hash.substr(0, 8), hash.substr(8, 4), hash.substr(12, 4),
                                hash.substr(16, 4), hash.substr(20, 12));
  if (kind == "Namespace") metadata["labels"]["kubernetes.io/metadata.name"] = name;
  absl::StatusOr<ObjectRef> object = kube::Object::FromJson(std::move(body));
  if (!object.ok()) return object.status();
  ObjectRef& slot = objects_[{kind, {ns, name}}];
  const ObjectRef previous = std::exchange(slot, *object);
  Notify(previous == nullptr ? kube::WatchEventType::kAdded : kube::WatchEventType::kModified, *object, previous);
  return absl::OkStatus();
}

absl::Status CaseServer::Delete(const json& body) {
  absl::StatusOr<ObjectRef> named = kube::Object::FromJson(body);
  if (!named.ok()) return named.status();
  const auto it = objects_.find({(*named)->kind, {(*named)->meta.ns, (*named)->meta.name}});
  if (it == objects_.end()) return absl::NotFoundError(fmt::format("{} is not there", (*named)->Key()));
  ++resource_version_;
  const ObjectRef last = it->second;
  objects_.erase(it);
  Notify(kube::WatchEventType::kDeleted, last, last);
  return absl::OkStatus();
}

std::string CaseServer::PodAt(std::string_view ns, std::string_view ip) const {
  for (const auto& [key, object] : objects_) {
    if (object->kind == "Pod" && object->meta.ns == ns && kube::ParsePod(*object).ip == ip) return object->meta.name;
  }
  return {};
}

size_t CaseServer::WatchCount() const {
  return static_cast<size_t>(
      std::count_if(watches_.begin(), watches_.end(), [](const auto& watch) { return !watch.expired(); }));
}

void CaseServer::Notify(kube::WatchEventType type, const ObjectRef& object, const ObjectRef& previous) {
  std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
  for (const std::weak_ptr<Subscription>& weak : watches_) {
    const std::shared_ptr<Subscription> watch = weak.lock();
    // client-go's fake tracker, which stands behind the recordings, knows no selectors in its watches, but istiod's
    // informers list with them; a real API server deletes for a watcher what leaves its selection.
    const bool now = type != kube::WatchEventType::kDeleted && watch->Selects(*object);
    const bool before = previous != nullptr && watch->Selects(*previous);
    if (!now && !before) continue;
    const kube::WatchEventType seen = !now     ? kube::WatchEventType::kDeleted
                                      : before ? kube::WatchEventType::kModified
                                               : kube::WatchEventType::kAdded;
    host_.Post([weak, event = kube::WatchEvent{seen, object}] {
      if (const std::shared_ptr<Subscription> alive = weak.lock()) alive->callbacks.on_event(event);
    });
  }
}

absl::StatusOr<std::unique_ptr<kube::Client>> CaseClientFactory::Connect(const std::string& cluster_id,
                                                                         const std::string& kubeconfig) {
  absl::StatusOr<kube::KubeConfig> parsed = kube::ParseKubeConfig(kubeconfig, "cluster " + cluster_id);
  if (!parsed.ok()) return parsed.status();
  std::string_view server = parsed->server;
  if (const size_t scheme = server.find("://"); scheme != std::string_view::npos) server.remove_prefix(scheme + 3);
  const auto it = servers_.find(std::string(server.substr(0, server.find_first_of(".:/"))));
  if (it == servers_.end()) return absl::UnavailableError(fmt::format("nobody answers at {}", parsed->server));
  // As the recordings were made: a remote cluster answers once those before it have synced, and 30 ms were quiet.
  first_answer_ = std::max(first_answer_, host_.Now()) + 30ms;
  return it->second->MakeClient(first_answer_);
}

}  // namespace wavetank::golden
