// How many bytes an object's annotations may have together (apimachinery: pkg/api/validation/objectmeta.go,
// TotalAnnotationSizeLimitB).
#pragma once

#include <cstddef>

#include "core/base/json_access.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube {

inline constexpr size_t kMaxAnnotationsBytes = 256 << 10;

// Names and values of metadata.annotations; 0 of what is no mapping. O(annotations).
inline size_t AnnotationsBytes(const nlohmann::json& annotations) {
  size_t bytes = 0;
  if (!annotations.is_object()) return bytes;
  for (const auto& [name, value] : annotations.items()) bytes += name.size() + TextOf(value).size();
  return bytes;
}

}  // namespace wavetank::fakekube
