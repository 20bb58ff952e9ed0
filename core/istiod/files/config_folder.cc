#include "core/istiod/files/config_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/base/json_access.h"
#include "core/base/status.h"
#include "core/config/kinds/typed_config.h"
#include "core/kube/time_format.h"
#include "core/kube/yaml.h"
#include "core/validation/istio_object.h"

namespace wavetank::pilot {
namespace {

// Whatever the version; Istio's kinds all have a group.
bool IsOf(const kube::ResourceKind& kind, std::string_view api_version, std::string_view name) {
  return kind.kind == name && api_version.starts_with(kind.group) &&
         api_version.substr(kind.group.size()).starts_with('/');
}

// istiod: collections.Pilot.
bool IsIstios(std::string_view api_version, std::string_view kind) {
  if (IsOf(kube::kinds::kProxyConfig, api_version, kind)) return true;
  for (int k = 0; k < config::kKinds; ++k) {
    if (IsOf(config::ResourceKindOf(static_cast<config::Kind>(k)), api_version, kind)) return true;
  }
  return false;
}

bool EndsAsYaml(std::string_view path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

}  // namespace

struct ConfigFolder::Follower final : kube::Watch {
  Follower(ConfigFolder& of, const kube::ResourceKind& wanted, kube::WatchCallbacks told)
      : folder(of), kind(wanted), callbacks(std::move(told)) {
    folder.followers_.push_back(this);
  }
  ~Follower() override { std::erase(folder.followers_, this); }

  ConfigFolder& folder;
  const kube::ResourceKind kind;
  kube::WatchCallbacks callbacks;
};

ConfigFolder::ConfigFolder(LocalFiles& files, Host& host, std::string folder, const Profile& profile, Warn warn)
    : host_(host), profile_(profile), warn_(std::move(warn)) {
  const LocalFiles::Folder first = files.ReadFolder(folder);
  if (first.empty()) {
    // And nothing is watched where nothing is.
    warn_(fmt::format("failure during filepath.Walk: lstat {}: no such file or directory", folder));
    warn_(fmt::format("checkAndUpdate Error Caught file-monitor: lstat {}: no such file or directory", folder));
    return;
  }
  Take(first);
  files.WatchFolder(folder, [this, alive = std::weak_ptr<char>(alive_)](const LocalFiles::Folder& now) {
    if (!alive.expired()) Take(now);
  });
}

ConfigFolder::~ConfigFolder() = default;

void ConfigFolder::Take(const LocalFiles::Folder& folder) {
  absl::StatusOr<Objects> now = Read(folder);
  if (!now.ok()) {
    warn_(std::string(Message(now.status())));
    warn_(fmt::format("failure during filepath.Walk: {}", Message(now.status())));
    warn_(fmt::format("checkAndUpdate Error Caught file-monitor: {}", Message(now.status())));
    return;
  }
  ++version_;
  const Objects before = std::exchange(objects_, *std::move(now));
  for (const auto& [key, object] : before) {
    if (!objects_.contains(key)) Tell({kube::WatchEventType::kDeleted, object});
  }
  for (auto& [key, object] : objects_) {
    const auto was = before.find(key);
    if (was == before.end()) {
      Tell({kube::WatchEventType::kAdded, object});
    } else if (was->second->body != object->body) {
      Tell({kube::WatchEventType::kModified, object});
    } else {
      object = was->second;
    }
  }
}

absl::StatusOr<ConfigFolder::Objects> ConfigFolder::Read(const LocalFiles::Folder& folder) const {
  Objects out;
  for (const auto& [path, text] : folder) {
    if (!EndsAsYaml(path)) continue;
    if (absl::Status status = ReadFile(path, text, &out); !status.ok())
      return absl::InvalidArgumentError(fmt::format("Failed to parse {}: {}", path, Message(status)));
  }
  return out;
}

absl::Status ConfigFolder::ReadFile(const std::string& path, const std::string& text, Objects* out) const {
  absl::StatusOr<std::vector<kube::YamlDocument>> documents = kube::ParseYamlDocuments(text, path);
  if (!documents.ok())
    return absl::InvalidArgumentError(fmt::format("cannot parse proto message: {}", Message(documents.status())));
  for (kube::YamlDocument& document : *documents) {
    nlohmann::json& body = document.value;
    const std::string api_version = Text(body, "apiVersion"), kind = Text(body, "kind");
    if (!IsIstios(api_version, kind)) continue;
    const validation::Verdict verdict = validation::Judge(body, profile_);
    if (!verdict.denied.empty()) return absl::InvalidArgumentError(verdict.denied);
    absl::StatusOr<kube::ObjectRef> object = kube::Object::FromJson(std::move(body));
    if (!object.ok())
      return absl::InvalidArgumentError(fmt::format("cannot parse proto message: {}", Message(object.status())));
    (*out)[(*object)->Key()] = Dated(*object);
  }
  return absl::OkStatus();
}

// What names no date is as old as its first reading (istiod: pilot/pkg/config/memory/store.go, Create).
kube::ObjectRef ConfigFolder::Dated(const kube::ObjectRef& object) const {
  if (!Text(At(object->body, "metadata"), "creationTimestamp").empty()) return object;
  const auto known = objects_.find(object->Key());
  const int64_t seconds =
      known == objects_.end()
          ? std::chrono::duration_cast<std::chrono::seconds>(host_.WallClock().time_since_epoch()).count()
          : known->second->meta.creation_unix_seconds;
  auto out = std::make_shared<kube::Object>(*object);
  out->meta.creation_unix_seconds = seconds;
  out->body["metadata"]["creationTimestamp"] = kube::FormatRfc3339(seconds);
  return out;
}

void ConfigFolder::Tell(const kube::WatchEvent& event) {
  const std::vector<Follower*> followers = followers_;
  for (Follower* follower : followers) {
    if (!IsOf(follower->kind, event.object->api_version, event.object->kind)) continue;
    host_.Post([this, alive = std::weak_ptr<char>(alive_), follower, event] {
      if (alive.expired()) return;
      // It may have ended meanwhile.
      if (std::find(followers_.begin(), followers_.end(), follower) != followers_.end())
        follower->callbacks.on_event(event);
    });
  }
}

void ConfigFolder::List(const kube::ResourceKind& kind, const kube::ListOptions&,
                        absl::AnyInvocable<void(absl::StatusOr<kube::ObjectList>)> done) {
  kube::ObjectList list;
  list.resource_version = version_;
  for (const auto& [key, object] : objects_) {
    if (IsOf(kind, object->api_version, object->kind)) list.items.push_back(object);
  }
  host_.Post([alive = std::weak_ptr<char>(alive_), list = std::move(list), done = std::move(done)]() mutable {
    if (!alive.expired()) done(std::move(list));
  });
}

std::unique_ptr<kube::Watch> ConfigFolder::StartWatch(const kube::ResourceKind& kind, const kube::ListOptions&,
                                                      int64_t resource_version, kube::WatchCallbacks callbacks) {
  auto watch = std::make_unique<Follower>(*this, kind, std::move(callbacks));
  if (resource_version < version_) {
    // It changed between the list and this: list again.
    host_.Post([this, alive = std::weak_ptr<char>(alive_), follower = watch.get()] {
      if (alive.expired()) return;
      if (std::find(followers_.begin(), followers_.end(), follower) != followers_.end())
        follower->callbacks.on_end(absl::OutOfRangeError("the folder changed"));
    });
  }
  return watch;
}

void ConfigFolder::Apply(kube::ObjectRef, absl::AnyInvocable<void(absl::StatusOr<kube::ObjectRef>)> done) {
  host_.Post([done = std::move(done)]() mutable { done(absl::PermissionDeniedError("files are not written")); });
}

void ConfigFolder::Delete(const kube::ResourceKind&, const kube::NamespacedName&,
                          absl::AnyInvocable<void(absl::Status)> done) {
  host_.Post([done = std::move(done)]() mutable { done(absl::PermissionDeniedError("files are not written")); });
}

}  // namespace wavetank::pilot
