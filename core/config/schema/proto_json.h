// Reads protobuf messages out of JSON as istiod does: field names in lowerCamelCase or snake_case, durations as Go
// writes them ("1h30m", "1.5s"), 64-bit and smaller integers as numbers or text, enums by name or number, null as
// absent, unknown fields ignored. One field of the wrong type makes the whole message unreadable.
// (istiod: golang/protobuf's jsonpb with AllowUnknownFields, behind every Istio type's UnmarshalJSON and mesh config.)
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::config {

// The fields of one JSON object. Messages are read by an overload `void ReadMessage(ProtoJson&, T&)` found through T.
class ProtoJson {
 public:
  // Errors go to `status`, the first one wins; `path` is where `value` stands, for messages.
  ProtoJson(const nlohmann::json& value, std::string path, absl::Status& status);

  // The field's value; null when it is absent or null.
  const nlohmann::json* Find(std::string_view camel) const;
  bool Has(std::string_view camel) const { return Find(camel) != nullptr; }
  std::string PathOf(std::string_view name) const;
  void Fail(std::string_view field, std::string_view what);
  bool ok() const { return status_.ok(); }
  absl::Status& status() { return status_; }

  // Leaves `out` as it is when the field is absent.
  template <typename T>
  void Field(std::string_view camel, T& out) {
    if (const nlohmann::json* value = Find(camel)) Value(*value, PathOf(camel), out);
  }

  template <typename E>
  void Enum(std::string_view camel, E& out, std::initializer_list<std::pair<std::string_view, E>> names) {
    const nlohmann::json* value = Find(camel);
    if (value == nullptr) return;
    for (const auto& [name, e] : names) {
      if ((value->is_string() && value->get_ref<const std::string&>() == name) ||
          (value->is_number_integer() && value->get<int64_t>() == static_cast<int64_t>(e))) {
        out = e;
        return;
      }
    }
    if (value->is_number_integer()) return;  // an open enum: an unknown number means nothing here
    std::string known;
    for (const auto& [name, e] : names) known.append(known.empty() ? "" : ", ").append(name);
    Fail(camel, "expected one of " + known);
  }

 private:
  void Value(const nlohmann::json& value, const std::string& path, std::string& out);
  void Value(const nlohmann::json& value, const std::string& path, bool& out);
  void Value(const nlohmann::json& value, const std::string& path, int32_t& out);
  void Value(const nlohmann::json& value, const std::string& path, uint32_t& out);
  void Value(const nlohmann::json& value, const std::string& path, int64_t& out);
  void Value(const nlohmann::json& value, const std::string& path, uint64_t& out);
  void Value(const nlohmann::json& value, const std::string& path, double& out);
  void Value(const nlohmann::json& value, const std::string& path, Duration& out);

  template <typename T>
  void Value(const nlohmann::json& value, const std::string& path, std::optional<T>& out) {
    out.emplace(T{});  // emplace() alone fails in clang for classes nested in the one that holds the optional
    Value(value, path, *out);
  }
  template <typename T>
  void Value(const nlohmann::json& value, const std::string& path, std::vector<T>& out) {
    if (!value.is_array()) return FailAt(path, "expected a list");
    out.clear();
    out.reserve(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      Value(value[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
    }
  }
  template <typename T, typename Less>
  void Value(const nlohmann::json& value, const std::string& path, std::map<std::string, T, Less>& out) {
    if (!value.is_object()) return FailAt(path, "expected a mapping");
    out.clear();
    for (const auto& [key, item] : value.items()) Value(item, path + "." + key, out[key]);
  }
  template <typename T>
  requires std::is_class_v<T>
  void Value(const nlohmann::json& value, const std::string& path, T& out) {
    ProtoJson fields(value, path, status_);
    if (status_.ok()) ReadMessage(fields, out);
  }
  std::optional<int64_t> Integer(const nlohmann::json& value, const std::string& path, int64_t low, int64_t high);
  void FailAt(const std::string& path, std::string_view what);

  const nlohmann::json& value_;
  std::string path_;
  absl::Status& status_;
  bool has_snake_ = false;
};

}  // namespace wavetank::config
