#include "core/base/json/json_canonical.h"

#include <cmath>
#include <string>
#include <string_view>

namespace wavetank {
namespace {

// RFC 3629, as the library's printer checks it: no surrogates, nothing longer than it must be.
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0; };
    const unsigned first = byte(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4) return false;
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    const unsigned second = byte(i + 1);
    if (first == 0xE0 && second < 0xA0) return false;
    if (first == 0xED && second > 0x9F) return false;
    if (first == 0xF0 && second < 0x90) return false;
    if (first == 0xF4 && second > 0x8F) return false;
    i += length;
  }
  return true;
}

}  // namespace

bool IsWhatItsTextSays(const nlohmann::json& value) {
  switch (value.type()) {
    case nlohmann::json::value_t::object:
      for (const auto& [key, member] : value.items()) {
        if (!IsUtf8(key) || !IsWhatItsTextSays(member)) return false;
      }
      return true;
    case nlohmann::json::value_t::array:
      for (const nlohmann::json& item : value) {
        if (!IsWhatItsTextSays(item)) return false;
      }
      return true;
    case nlohmann::json::value_t::string:
      return IsUtf8(value.get_ref<const std::string&>());
    case nlohmann::json::value_t::number_integer:
      return value.get<int64_t>() < 0;
    case nlohmann::json::value_t::number_float:
      return std::isfinite(value.get<nlohmann::json::number_float_t>());
    case nlohmann::json::value_t::binary:
    case nlohmann::json::value_t::discarded:
      return false;
    default:
      return true;
  }
}

}  // namespace wavetank
