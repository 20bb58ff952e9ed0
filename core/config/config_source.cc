#include "core/config/config_source.h"

#include <algorithm>
#include <utility>

namespace wavetank::config {

std::vector<Kind> AllKinds() {
  std::vector<Kind> out;
  for (int i = 0; i < kKinds; ++i) out.push_back(static_cast<Kind>(i));
  return out;
}

ConfigSource::ConfigSource(kube::Client& client, Host& host, ConfigStore& store, const std::vector<Kind>& kinds)
    : host_(host),
      store_(store),
      trace_name_(host.Intern("config")),
      self_(std::make_shared<ConfigSource*>(this)) {
  for (const Kind kind : kinds) {
    auto informer = std::make_unique<kube::Informer>(client, host, ResourceKindOf(kind));
    informer->AddHandler({[this, kind](const kube::ObjectRef& o) { Enqueue(kind, o, false); },
                          [this, kind](const kube::ObjectRef&, const kube::ObjectRef& o) { Enqueue(kind, o, false); },
                          [this, kind](const kube::ObjectRef& o) { Enqueue(kind, o, true); }});
    informers_.push_back(std::move(informer));
  }
}

ConfigSource::~ConfigSource() { Stop(); }

void ConfigSource::Start() {
  for (const auto& informer : informers_) {
    informer->WhenSynced([this] { OnListed(); });
    informer->Start();
  }
}

void ConfigSource::Stop() {
  *self_ = nullptr;
  for (const auto& informer : informers_) informer->Stop();
  queue_.clear();
}

void ConfigSource::OnListed() {
  if (!std::all_of(informers_.begin(), informers_.end(), [](const auto& i) { return i->HasSynced(); })) return;
  running_ = true;
  initial_ = queue_.size();
  if (initial_ == 0) {
    synced_ = true;
    if (on_synced) on_synced();
  }
  MaybeRun();
}

void ConfigSource::Enqueue(Kind kind, const kube::ObjectRef& object, bool gone) {
  queue_.push_back({host_.cause(), kind, object, gone});
  MaybeRun();
}

void ConfigSource::MaybeRun() {
  if (!running_ || working_ || queue_.empty()) return;
  working_ = true;
  host_.Spend({WorkKind::kRegistryEvent, 1}, [self = self_] {
    if (*self != nullptr) (*self)->RunNext();
  });
}

void ConfigSource::RunNext() {
  const std::shared_ptr<ConfigSource*> self = self_;
  {
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    ScopedCause cause(host_, item.cause);
    host_.Emit({TraceKind::kRegistryEvent, trace_name_, host_.Intern(item.object->Key()), 0, 0, {}});
    Handle(item);
  }
  if (*self == nullptr) return;
  working_ = false;
  if (initial_ > 0 && --initial_ == 0) {
    synced_ = true;
    if (on_synced) on_synced();
    if (*self == nullptr) return;
  }
  MaybeRun();
}

void ConfigSource::Handle(const Item& item) {
  if (item.gone) return store_.Delete(item.kind, item.object->meta.name, item.object->meta.ns);
  absl::StatusOr<AnyConfigRef> config = ParseConfig(*item.object);
  if (config.ok()) return store_.Put(*std::move(config));
  if (on_unreadable) on_unreadable(*item.object, config.status());
}

}  // namespace wavetank::config
