#include "core/registry/crd_client.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/text/parse_bool.h"

namespace wavetank::config {

using pilot::ConfigKind;

pilot::ConfigKind ConfigKindOf(Kind kind) {
  switch (kind) {
    case Kind::kAuthorizationPolicy:
      return ConfigKind::kAuthorizationPolicy;
    case Kind::kDestinationRule:
      return ConfigKind::kDestinationRule;
    case Kind::kEnvoyFilter:
      return ConfigKind::kEnvoyFilter;
    case Kind::kGateway:
      return ConfigKind::kGateway;
    case Kind::kPeerAuthentication:
      return ConfigKind::kPeerAuthentication;
    case Kind::kRequestAuthentication:
      return ConfigKind::kRequestAuthentication;
    case Kind::kServiceEntry:
      return ConfigKind::kServiceEntry;
    case Kind::kSidecar:
      return ConfigKind::kSidecar;
    case Kind::kTelemetry:
      return ConfigKind::kTelemetry;
    case Kind::kVirtualService:
      return ConfigKind::kVirtualService;
    case Kind::kWasmPlugin:
      return ConfigKind::kWasmPlugin;
    case Kind::kWorkloadEntry:
      break;
  }
  return ConfigKind::kWorkloadEntry;
}

CrdClient::CrdClient(kube::Client& client, Host& host, ConfigStore& store, pilot::XdsUpdater& updater, Options options)
    : client_(client), host_(host), store_(store), updater_(updater), options_(std::move(options)) {
  if (options_.workload_entries_only) {
    Watch(ResourceKindOf(Kind::kWorkloadEntry), static_cast<int>(Kind::kWorkloadEntry), nullptr);
    return;
  }
  for (int k = 0; k < kKinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    Watch(ResourceKindOf(kind), k, nullptr);
    // istiod: pilot/pkg/bootstrap/server.go, initRegistryEventHandlers.
    if (kind == Kind::kServiceEntry || kind == Kind::kWorkloadEntry) continue;
    store_.AddHandler(kind, [this](ConfigEvent event, const AnyConfigRef* old, const AnyConfigRef& now) {
      if (event == ConfigEvent::kUpdate && !NeedsPush(*old, now)) return;
      const ConfigMeta& meta = MetaOf(now);
      Push(ConfigKindOf(meta.kind), meta.name, meta.ns);
    });
  }
  raw_.push_back(std::make_unique<RawKind>(RawKind{ConfigKind::kProxyConfig, {}}));
  Watch(kube::kinds::kProxyConfig, -1, raw_.back().get());
}

CrdClient::~CrdClient() = default;

void CrdClient::Watch(const kube::ResourceKind& resource, int typed, RawKind* raw) {
  const Changed take = [this, typed, raw](const kube::ObjectRef& object, bool deleted) {
    if (raw != nullptr) {
      OnRaw(*raw, object, deleted);
    } else {
      OnTyped(static_cast<Kind>(typed), object, deleted);
    }
  };
  if (options_.more_sources.empty()) {
    Follow(client_, resource, take);
    return;
  }
  // What the first source has that has one of that name, wherever something changed.
  auto sources = std::make_shared<std::vector<const kube::Informer*>>();
  const Changed look = [take, sources](const kube::ObjectRef& object, bool) {
    for (const kube::Informer* source : *sources) {
      if (const kube::ObjectRef there = source->Get(object->meta.ns, object->meta.name); there != nullptr)
        return take(there, false);
    }
    take(object, true);
  };
  sources->push_back(&Follow(client_, resource, look));
  for (kube::Client* source : options_.more_sources) sources->push_back(&Follow(*source, resource, look));
}

const kube::Informer& CrdClient::Follow(kube::Client& source, const kube::ResourceKind& resource,
                                        const Changed& changed) {
  auto informer = std::make_unique<kube::Informer>(source, host_, resource);
  informer->AddHandler(
      {.on_add = [changed](const kube::ObjectRef& object) { changed(object, false); },
       .on_update = [changed](const kube::ObjectRef&, const kube::ObjectRef& object) { changed(object, false); },
       .on_delete = [changed](const kube::ObjectRef& object) { changed(object, true); }});
  followed_.push_back({std::move(informer), changed});
  return *followed_.back().informer;
}

void CrdClient::Start() {
  for (const Followed& one : followed_) {
    one.informer->OnSynced([this] { MaybeSynced(); });
    one.informer->Start();
  }
}

void CrdClient::Stop() {
  alive_ = std::make_shared<char>();
  for (const Followed& one : followed_) one.informer->Stop();
  queue_.clear();
}

void CrdClient::OnNamespacesRead(const std::vector<std::string>& namespaces) {
  for (const Followed& one : followed_) {
    for (const std::string& ns : namespaces) {
      for (const kube::ObjectRef& object : one.informer->List(ns)) one.changed(object, false);
    }
  }
}

void CrdClient::MaybeSynced() {
  for (const Followed& one : followed_) {
    if (!one.informer->HasSynced()) return;
  }
  informers_synced_ = true;
  // The queue has caught up when this task has run.
  Enqueue([this] {
    synced_ = true;
    for (Callback& done : std::exchange(on_synced_, {})) done();
  });
}

void CrdClient::OnSynced(Callback done) {
  if (synced_) {
    done();
  } else {
    on_synced_.push_back(std::move(done));
  }
}

void CrdClient::Enqueue(Callback task) {
  queue_.emplace_back(host_.cause(), std::move(task));
  if (!informers_synced_ || scheduled_) return;
  scheduled_ = true;
  host_.Post([this, alive = std::weak_ptr<char>(alive_)] {
    if (!alive.expired()) RunQueue();
  });
}

void CrdClient::RunQueue() {
  scheduled_ = false;
  while (!queue_.empty()) {
    auto [cause, task] = std::move(queue_.front());
    queue_.pop_front();
    ScopedCause scoped(host_, cause);
    task();
  }
}

// istiod: pkg/config/model.go, ObjectInRevision; crdclient/client.go, addCRD.
bool CrdClient::Exists(const kube::Object& object) const {
  if (options_.reads && !options_.reads(object.meta.ns)) return false;
  const auto it = object.meta.labels.find("istio.io/rev");
  return it == object.meta.labels.end() || it->second == options_.revision;
}

namespace {

// Whether an agent says that what a WorkloadEntry stands for is healthy; true where none is to say anything, false
// until one does (istiod: serviceentry/controller.go, isHealthy).
bool IsHealthy(const kube::Object& entry) {
  const auto probed = entry.meta.annotations.find("proxy.istio.io/health-checks-enabled");
  if (probed == entry.meta.annotations.end() || !ParseBool(probed->second).value_or(false)) return true;
  for (const nlohmann::json& condition : Items(At(entry.body, {"status", "conditions"}))) {
    if (Text(condition, "type") == "Healthy") return Text(condition, "status") == "True";
  }
  return false;
}

}  // namespace

void CrdClient::OnTyped(Kind kind, const kube::ObjectRef& object, bool deleted) {
  if (deleted) unreadable_.erase(object->Key());
  // What is not healthy is as good as deleted: nothing follows it.
  if (kind == Kind::kWorkloadEntry && options_.health_checks && !IsHealthy(*object)) deleted = true;
  if (deleted || !Exists(*object)) {
    // An object that moved to another revision is gone, as one whose namespace is read no more.
    AnyConfigRef last = store_.Erase(kind, object->meta.name, object->meta.ns);
    if (!std::visit([](const auto& ref) { return ref != nullptr; }, last)) return;
    Enqueue([this, last = std::move(last)] { store_.Notify(ConfigEvent::kDelete, nullptr, last); });
    return;
  }
  absl::StatusOr<AnyConfigRef> now = ParseConfig(*object);
  if (!now.ok()) {
    unreadable_[object->Key()] = now.status();
    return;
  }
  unreadable_.erase(object->Key());
  AnyConfigRef old = store_.Replace(*now);
  const bool had = std::visit([](const auto& ref) { return ref != nullptr; }, old);
  Enqueue([this, had, old = std::move(old), now = *std::move(now)] {
    store_.Notify(had ? ConfigEvent::kUpdate : ConfigEvent::kAdd, had ? &old : nullptr, now);
  });
}

void CrdClient::OnRaw(RawKind& raw, const kube::ObjectRef& object, bool deleted) {
  const kube::NamespacedName key{object->meta.ns, object->meta.name};
  const auto it = raw.objects.find(key);
  if (deleted || !Exists(*object)) {
    if (it == raw.objects.end()) return;
    raw.objects.erase(it);
  } else if (it != raw.objects.end()) {
    const nlohmann::json& before = it->second->body;
    const nlohmann::json& after = object->body;
    const auto speaks = [](const kube::Labels& labels) {
      for (const auto& [name, value] : labels) {
        if (name.find("istio.io") != std::string::npos) return true;
      }
      return false;
    };
    const bool push = before.value("spec", nlohmann::json()) != after.value("spec", nlohmann::json()) ||
                      speaks(it->second->meta.labels) || speaks(it->second->meta.annotations) ||
                      speaks(object->meta.labels) || speaks(object->meta.annotations);
    it->second = object;
    if (!push) return;
  } else {
    raw.objects.emplace(key, object);
  }
  Enqueue([this, kind = raw.kind, key] { Push(kind, key.name, key.ns); });
}

std::vector<kube::ObjectRef> CrdClient::Objects() const {
  std::vector<kube::ObjectRef> out;
  std::set<std::string> seen;  // where there are several sources
  for (const Followed& one : followed_) {
    for (const kube::ObjectRef& object : one.informer->List()) {
      if (!Exists(*object)) continue;
      if (options_.more_sources.empty() || seen.insert(object->Key()).second) out.push_back(object);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a->kind < b->kind; });
  return out;
}

const std::map<kube::NamespacedName, kube::ObjectRef>& CrdClient::Raw(pilot::ConfigKind kind) const {
  static const std::map<kube::NamespacedName, kube::ObjectRef>* const none =
      new std::map<kube::NamespacedName, kube::ObjectRef>();
  for (const auto& raw : raw_) {
    if (raw->kind == kind) return raw->objects;
  }
  return *none;
}

void CrdClient::Push(pilot::ConfigKind kind, const std::string& name, const std::string& ns) {
  updater_.ConfigUpdate({.full = true,
                         .configs_updated = {{kind, name, ns}},
                         .start = host_.Now(),
                         .reasons = Reason(pilot::TriggerReason::kConfig)});
}

}  // namespace wavetank::config
