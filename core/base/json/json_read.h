// More of json_access.h: members, counts and flags of JSON that may have any shape.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/json_access.h"

namespace wavetank {

// The members of a mapping, to iterate over; of anything else none.
inline auto Members(const nlohmann::json& in) {
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  return (in.is_object() ? in : *empty).items();
}

// Whole numbers from 0 on.
inline uint64_t CountOf(const nlohmann::json& in, uint64_t otherwise = 0) {
  if (in.is_number_unsigned()) return in.get<uint64_t>();
  return in.is_number_integer() && in.get<int64_t>() >= 0 ? in.get<uint64_t>() : otherwise;
}
inline uint64_t Count(const nlohmann::json& in, std::string_view key, uint64_t otherwise = 0) {
  return CountOf(At(in, key), otherwise);
}
inline bool FlagOf(const nlohmann::json& in, bool otherwise = false) {
  return in.is_boolean() ? in.get<bool>() : otherwise;
}
inline bool Flag(const nlohmann::json& in, std::string_view key, bool otherwise = false) {
  return FlagOf(At(in, key), otherwise);
}

}  // namespace wavetank
