#include "core/istiod/local_files.h"

#include <utility>

namespace wavetank::pilot {

std::optional<std::string> LocalFiles::Read(std::string_view path) const {
  if (files_ == nullptr || path.empty()) return std::nullopt;
  absl::StatusOr<std::string> text = files_->Read(path);
  return text.ok() ? std::optional(*std::move(text)) : std::nullopt;
}

void LocalFiles::Watch(const std::string& path, std::function<void(const std::string& text)> changed) {
  const bool first = watched_.empty();
  watched_[path] = {Read(path).value_or(""), std::move(changed)};
  if (first) LookLater();
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
}

}  // namespace wavetank::pilot
