#include "core/config/schema/proto_json.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "core/base/duration.h"
#include "core/base/text/proto_json_name.h"

namespace wavetank::config {

ProtoJson::ProtoJson(const nlohmann::json& value, std::string path, absl::Status& status)
    : value_(value), path_(std::move(path)), status_(status) {
  if (!value_.is_object()) {
    FailAt(path_, "expected a mapping");
    return;
  }
  for (const auto& [key, item] : value_.items()) has_snake_ = has_snake_ || key.find('_') != std::string::npos;
}

const nlohmann::json* ProtoJson::Find(std::string_view camel) const {
  if (!value_.is_object()) return nullptr;
  auto it = value_.find(camel);
  if (it == value_.end() && has_snake_) {
    for (it = value_.begin(); it != value_.end(); ++it) {
      if (it.key().find('_') != std::string::npos && ProtoJsonName(it.key()) == camel) break;
    }
  }
  return it == value_.end() || it->is_null() ? nullptr : &*it;
}

std::string ProtoJson::PathOf(std::string_view name) const { return fmt::format("{}.{}", path_, name); }
void ProtoJson::Fail(std::string_view field, std::string_view what) { FailAt(PathOf(field), what); }

void ProtoJson::FailAt(const std::string& path, std::string_view what) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(fmt::format("{}: {}", path, what));
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, std::string& out) {
  if (!value.is_string()) return FailAt(path, "expected text");
  out = value.get_ref<const std::string&>();
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, bool& out) {
  if (!value.is_boolean()) return FailAt(path, "expected true or false");
  out = value.get<bool>();
}

std::optional<int64_t> ProtoJson::Integer(const nlohmann::json& value, const std::string& path, int64_t low,
                                          int64_t high) {
  std::optional<int64_t> number;
  if (value.is_number_unsigned()) {
    const auto wide = value.get<uint64_t>();
    if (wide <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) number = static_cast<int64_t>(wide);
  } else if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    int64_t parsed = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (error == std::errc() && at == text.data() + text.size()) number = parsed;
  }
  if (!number || *number < low || *number > high) {
    FailAt(path, fmt::format("expected an integer from {} to {}", low, high));
    return std::nullopt;
  }
  return number;
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, int32_t& out) {
  if (const auto n = Integer(value, path, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max())) {
    out = static_cast<int32_t>(*n);
  }
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, uint32_t& out) {
  if (const auto n = Integer(value, path, 0, std::numeric_limits<uint32_t>::max())) out = static_cast<uint32_t>(*n);
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, int64_t& out) {
  using Limits = std::numeric_limits<int64_t>;
  out = Integer(value, path, Limits::min(), Limits::max()).value_or(out);
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, uint64_t& out) {
  if (const auto n = Integer(value, path, 0, std::numeric_limits<int64_t>::max())) out = static_cast<uint64_t>(*n);
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, double& out) {
  if (!value.is_number()) return FailAt(path, "expected a number");
  out = value.get<double>();
}

void ProtoJson::Value(const nlohmann::json& value, const std::string& path, Duration& out) {
  std::optional<Duration> parsed;
  if (value.is_string()) parsed = ParseGoDuration(value.get_ref<const std::string&>());
  if (!parsed) return FailAt(path, "expected a duration such as \"10s\"");
  out = *parsed;
}

}  // namespace wavetank::config
