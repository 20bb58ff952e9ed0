#include "core/inject/template/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {

GoTemplate::Function Between(size_t least, size_t most, GoTemplate::Function body) {
  return [least, most, body = std::move(body)](const Arguments& in) -> absl::StatusOr<Value> {
    if (in.size() < least || in.size() > most) {
      return BadArgument(least == most
                             ? fmt::format("wrong number of args: want {} got {}", least, in.size())
                             : fmt::format("wrong number of args: want at least {} got {}", least, in.size()));
    }
    return body(in);
  };
}

int64_t WholeOf(const Value& value) {
  if (value.json.is_boolean()) return value.json.get<bool>() ? 1 : 0;
  if (value.json.is_number_float()) return static_cast<int64_t>(std::clamp(value.json.get<double>(), -9e18, 9e18));
  if (value.json.is_number()) return value.json.get<int64_t>();
  int64_t out = 0;
  if (value.text()) {
    const std::string& text = value.json.get_ref<const std::string&>();
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || stop != text.data() + text.size()) return static_cast<int64_t>(RealOf(value));
  }
  return out;
}

double RealOf(const Value& value) {
  if (value.json.is_number()) return value.json.get<double>();
  if (!value.text()) return 0;
  const std::string& text = value.json.get_ref<const std::string&>();
  double out = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && stop == text.data() + text.size() && std::isfinite(out) ? std::clamp(out, -9e18, 9e18)
                                                                                         : 0;
}

std::string QuotedText(std::string_view text) { return JsonText(nlohmann::json(text)); }

const nlohmann::json& ListOf(const Value& value) { return Items(value.json); }

std::string Formatted(const Value& value, std::string_view flags, char verb) {
  std::string out;
  const size_t point = flags.find('.');
  const int digits = point == flags.npos ? -1 : std::atoi(std::string(flags.substr(point + 1)).c_str());
  std::string width_text(flags.substr(0, point));
  const bool left = width_text.find('-') != std::string::npos, zeros = width_text.starts_with('0');
  width_text.erase(0, std::min(width_text.find_first_not_of("+-# 0"), width_text.size()));
  const size_t width = std::min<size_t>(static_cast<size_t>(std::max(0, std::atoi(width_text.c_str()))), 1000);
  switch (verb) {
    case 'd':
      out = value.json.is_number() ? fmt::format("{}", WholeOf(value))
                                   : fmt::format("%!d({}={})", value.text() ? "string" : "<nil>", Print(value));
      break;
    case 'f':
      out = fmt::format("{:.{}f}", RealOf(value), std::clamp(digits, digits < 0 ? 6 : 0, 30));
      break;
    case 'x':
      out = fmt::format("{:x}", WholeOf(value));
      break;
    case 'q':
      out = QuotedText(Print(value));
      break;
    case 't':
      out = IsTrue(value) ? "true" : "false";
      break;
    case 's':
    case 'v':
      out = Print(value);
      if (digits >= 0 && verb == 's') out.resize(std::min(out.size(), static_cast<size_t>(digits)));
      break;
    default:
      return fmt::format("%!{}({})", verb, Print(value));
  }
  if (out.size() >= width) return out;
  if (left) return out + std::string(width - out.size(), ' ');
  return std::string(width - out.size(), zeros && verb != 's' ? '0' : ' ') + out;
}

}  // namespace wavetank::pilot::gotemplate
