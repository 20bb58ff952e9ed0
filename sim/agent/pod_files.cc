#include "sim/agent/pod_files.h"

#include <set>

#include "core/base/json_access.h"
#include "core/kube/secret.h"
#include "fmt/format.h"

namespace wavetank::sim {
namespace {

using nlohmann::json;

// The proxy runs in "/": "./etc/certs" is "/etc/certs".
std::string Absolute(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(1);
  return path.starts_with('/') ? std::string(path) : fmt::format("/{}", path);
}

const json* Named(const json& list, std::string_view name) {
  for (const json& each : Items(list)) {
    if (Text(each, "name") == name) return &each;
  }
  return nullptr;
}

absl::Status Missing(std::string_view path) {
  return absl::NotFoundError(fmt::format("open {}: no such file or directory", path));
}

std::vector<std::string> KeysOf(const json& data) {
  std::vector<std::string> out;
  if (!data.is_object()) return out;
  for (const auto& [key, value] : data.items()) out.push_back(key);
  return out;
}

// The file of a volume that shows the key `file`, unless `items` gives it another name.
std::string KeyOf(const json& items, const std::string& file) {
  if (!items.is_array()) return file;
  for (const json& item : items) {
    if (Text(item, "path") == file) return Text(item, "key");
  }
  return "";
}

}  // namespace

const std::vector<PodFiles::Mount>& PodFiles::Mounts() {
  if (mounts_.has_value()) return *mounts_;
  mounts_.emplace();
  const json& spec = At(pod_->body, "spec");
  const json* container = Named(At(spec, "containers"), container_);
  if (container == nullptr) return *mounts_;
  for (const json& mount : Items(At(*container, "volumeMounts"))) {
    const json* volume = Named(At(spec, "volumes"), Text(mount, "name"));
    const json& path = At(mount, "mountPath");
    if (volume == nullptr || !path.is_string()) continue;
    std::string_view folder = path.get_ref<const std::string&>();
    while (folder.ends_with('/')) folder.remove_suffix(1);
    if (const json& secret = At(*volume, "secret"); secret.is_object()) {
      mounts_->push_back({folder, true, {pod_->meta.ns, Text(secret, "secretName")}, &At(secret, "items")});
    } else if (const json& config = At(*volume, "configMap"); config.is_object()) {
      mounts_->push_back({folder, false, {pod_->meta.ns, Text(config, "name")}, &At(config, "items")});
    }
  }
  return *mounts_;
}

absl::StatusOr<std::string> PodFiles::Read(std::string_view path) {
  const std::string full = Absolute(path);
  if (const auto it = written_.find(full); it != written_.end()) return it->second;
  for (const Mount& mount : Mounts()) {
    std::string_view file = full;
    if (!file.starts_with(mount.folder)) continue;
    file.remove_prefix(mount.folder.size());
    if (!file.starts_with('/')) continue;
    file.remove_prefix(1);
    const kube::ObjectRef object = api_.Get(KindOf(mount), mount.object);
    if (object == nullptr) continue;
    const std::string key = KeyOf(*mount.items, std::string(file));
    if (mount.secret) {
      const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(*object);
      if (!data.ok()) continue;
      if (const auto entry = data->find(key); entry != data->end()) return entry->second;
    } else if (const json& text = At(At(object->body, "data"), key); text.is_string()) {
      return text.get<std::string>();
    }
  }
  return Missing(path);
}

std::vector<std::string> PodFiles::List(std::string_view folder) {
  std::string below = Absolute(folder);
  if (!below.ends_with('/')) below += '/';
  std::set<std::string> out;
  const auto add = [&](const std::string& path) {
    if (path.starts_with(below)) out.insert(path);
  };
  for (const auto& [path, text] : written_) add(path);
  for (const Mount& mount : Mounts()) {
    const std::string at = fmt::format("{}/", mount.folder);
    // By the names that `items` give, or by those of the keys.
    if (mount.items->is_array()) {
      for (const json& item : *mount.items) add(at + Text(item, "path"));
    } else if (const kube::ObjectRef object = api_.Get(KindOf(mount), mount.object); object != nullptr) {
      for (const std::string& key : KeysOf(At(object->body, "data"))) add(at + key);
    }
  }
  return {out.begin(), out.end()};
}

absl::Status PodFiles::Write(std::string_view path, std::string_view bytes) {
  written_[Absolute(path)] = bytes;
  return absl::OkStatus();
}

}  // namespace wavetank::sim
