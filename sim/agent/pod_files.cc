#include "sim/agent/pod_files.h"

#include <set>
#include <utility>

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

absl::StatusOr<std::string> PodFiles::Read(std::string_view path) {
  const std::string full = Absolute(path);
  if (const auto it = written_.find(full); it != written_.end()) return it->second;
  const json& spec = At(pod_->body, "spec");
  const json* container = Named(At(spec, "containers"), container_);
  if (container == nullptr) return Missing(path);
  for (const json& mount : Items(At(*container, "volumeMounts"))) {
    std::string folder = Text(mount, "mountPath");
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (!full.starts_with(folder + "/")) continue;
    const std::string file = full.substr(folder.size() + 1);
    const json* volume = Named(At(spec, "volumes"), Text(mount, "name"));
    if (volume == nullptr) continue;
    if (const json& secret = At(*volume, "secret"); secret.is_object()) {
      const kube::ObjectRef object = api_.Get("Secret", {pod_->meta.ns, Text(secret, "secretName")});
      if (object == nullptr) continue;
      const absl::StatusOr<kube::SecretData> data = kube::ReadSecretData(*object);
      if (!data.ok()) continue;
      const auto entry = data->find(KeyOf(At(secret, "items"), file));
      if (entry != data->end()) return entry->second;
    } else if (const json& config = At(*volume, "configMap"); config.is_object()) {
      const kube::ObjectRef object = api_.Get("ConfigMap", {pod_->meta.ns, Text(config, "name")});
      if (object == nullptr) continue;
      const json& text = At(At(object->body, "data"), KeyOf(At(config, "items"), file));
      if (text.is_string()) return text.get<std::string>();
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
  const json& spec = At(pod_->body, "spec");
  const json* container = Named(At(spec, "containers"), container_);
  if (container == nullptr) return {out.begin(), out.end()};
  for (const json& mount : Items(At(*container, "volumeMounts"))) {
    const json* volume = Named(At(spec, "volumes"), Text(mount, "name"));
    if (volume == nullptr) continue;
    std::string at = Text(mount, "mountPath");
    if (!at.ends_with('/')) at += '/';
    // By the names that `items` give, or by those of the keys.
    const auto entries = [&](const json& source, const std::vector<std::string>& keys) {
      const json& items = At(source, "items");
      if (!items.is_array()) {
        for (const std::string& key : keys) add(at + key);
        return;
      }
      for (const json& item : items) add(at + Text(item, "path"));
    };
    if (const json& secret = At(*volume, "secret"); secret.is_object()) {
      const kube::ObjectRef object = api_.Get("Secret", {pod_->meta.ns, Text(secret, "secretName")});
      entries(secret, object == nullptr ? std::vector<std::string>() : KeysOf(At(object->body, "data")));
    } else if (const json& config = At(*volume, "configMap"); config.is_object()) {
      const kube::ObjectRef object = api_.Get("ConfigMap", {pod_->meta.ns, Text(config, "name")});
      entries(config, object == nullptr ? std::vector<std::string>() : KeysOf(At(object->body, "data")));
    }
  }
  return {out.begin(), out.end()};
}

absl::Status PodFiles::Write(std::string_view path, std::string_view bytes) {
  if (full_) return absl::ResourceExhaustedError(fmt::format("write {}: no space left on device", path));
  written_[Absolute(path)] = bytes;
  return absl::OkStatus();
}

}  // namespace wavetank::sim
