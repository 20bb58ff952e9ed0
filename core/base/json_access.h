// Reading of JSON that may have any shape: what is not there, or of another type, is null, empty or the default.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank {

inline const nlohmann::json& Null() {
  static const auto* const null = new nlohmann::json();
  return *null;
}

inline const nlohmann::json& At(const nlohmann::json& in, std::string_view key) {
  if (!in.is_object()) return Null();
  const auto it = in.find(key);
  return it == in.end() ? Null() : *it;
}

inline const nlohmann::json& At(const nlohmann::json& in, std::initializer_list<std::string_view> path) {
  const nlohmann::json* at = &in;
  for (const std::string_view key : path) at = &At(*at, key);
  return *at;
}

// The elements of a list; of anything else none.
inline const nlohmann::json& Items(const nlohmann::json& in) {
  static const auto* const empty = new nlohmann::json(nlohmann::json::array());
  return in.is_array() ? in : *empty;
}

inline std::string TextOf(const nlohmann::json& in, std::string_view otherwise = {}) {
  return in.is_string() ? in.get<std::string>() : std::string(otherwise);
}
inline std::string Text(const nlohmann::json& in, std::string_view key, std::string_view otherwise = {}) {
  return TextOf(At(in, key), otherwise);
}
inline int64_t NumberOf(const nlohmann::json& in, int64_t otherwise = 0) {
  return in.is_number_integer() ? in.get<int64_t>() : otherwise;
}
inline int64_t Number(const nlohmann::json& in, std::string_view key, int64_t otherwise = 0) {
  return NumberOf(At(in, key), otherwise);
}

}  // namespace wavetank
