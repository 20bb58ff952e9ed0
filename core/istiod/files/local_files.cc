#include "core/istiod/files/local_files.h"

#include <utility>

namespace wavetank::pilot {

std::optional<std::string> LocalFiles::Read(std::string_view path) const {
  if (files_ == nullptr || path.empty()) return std::nullopt;
  absl::StatusOr<std::string> text = files_->Read(path);
  return text.ok() ? std::optional(*std::move(text)) : std::nullopt;
}

void LocalFiles::Watch(const std::string& path, std::function<void(const std::string& text)> changed) {
  watched_[path] = {Read(path).value_or(""), std::move(changed)};
  if (!std::exchange(looking_, true)) LookLater();
}

LocalFiles::Folder LocalFiles::ReadFolder(std::string_view folder) const {
  Folder out;
  if (files_ == nullptr || folder.empty()) return out;
  for (std::string& path : files_->List(folder)) {
    if (std::optional<std::string> text = Read(path)) out.emplace(std::move(path), *std::move(text));
  }
  return out;
}

void LocalFiles::WatchFolder(const std::string& folder, std::function<void(const Folder& now)> changed) {
  folders_.push_back({folder, ReadFolder(folder), std::move(changed)});
  if (!std::exchange(looking_, true)) LookLater();
}

void LocalFiles::LookLater() {
  host_.RunAfter(period_, [this, alive = std::weak_ptr<char>(alive_)] {
    if (alive.expired()) return;
    Look();
    if (!alive.expired()) LookLater();
  });
}

void LocalFiles::Look() {
  for (auto& [path, watched] : watched_) {
    std::optional<std::string> text = Read(path);
    if (!text || *text == watched.last) continue;
    watched.last = *std::move(text);
    watched.changed(watched.last);
  }
  for (WatchedFolder& folder : folders_) {
    Folder now = ReadFolder(folder.path);
    if (now == folder.last) continue;
    folder.last = std::move(now);
    folder.changed(folder.last);
  }
}

}  // namespace wavetank::pilot
