#include "core/profile/image_release.h"

#include "core/profile/releases.h"

namespace wavetank::pilot {

std::string_view TagOf(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t colon = image.rfind(':');
  if (colon == image.npos || image.find('/', colon) != image.npos) return {};  // a registry's port
  return image.substr(colon + 1);
}

int MinorOfImage(std::string_view image) {
  const std::string_view tag = TagOf(image);
  return tag.starts_with("1.") ? MinorOf(tag) : 0;
}

}  // namespace wavetank::pilot
