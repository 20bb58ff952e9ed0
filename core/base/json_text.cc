#include "core/base/json_text.h"

#include <algorithm>
#include <charconv>

#include "core/base/bounds.h"
#include "core/base/text/json_brackets.h"

namespace wavetank {
namespace {

using nlohmann::json;

std::string ByLibrary(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

// Stands between quotes as it is.
bool IsPlain(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte > 0x7e || byte == '"' || byte == '\\';
  });
}

template <typename Number>
void AppendNumber(Number number, std::string& out) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr);
}

void AppendQuoted(const std::string& text, std::string& out) {
  if (!IsPlain(text)) {
    out += ByLibrary(text, -1);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

// What ByLibrary prints in one line. The library passes each piece through a virtual call and looks at each byte's
// UTF-8; nearly all text is plain ASCII. It prints what is rare.
void Append(const json& value, std::string& out) {
  switch (value.type()) {
    case json::value_t::object: {
      char before = '{';
      for (const auto& [key, member] : value.get_ref<const json::object_t&>()) {
        out += before;
        AppendQuoted(key, out);
        out += ':';
        Append(member, out);
        before = ',';
      }
      out += before == '{' ? "{}" : "}";
      return;
    }
    case json::value_t::array: {
      char before = '[';
      for (const json& item : value.get_ref<const json::array_t&>()) {
        out += before;
        Append(item, out);
        before = ',';
      }
      out += before == '[' ? "[]" : "]";
      return;
    }
    case json::value_t::string:
      return AppendQuoted(value.get_ref<const std::string&>(), out);
    case json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case json::value_t::number_integer:
      return AppendNumber(value.get<int64_t>(), out);
    case json::value_t::number_unsigned:
      return AppendNumber(value.get<uint64_t>(), out);
    default:
      out += ByLibrary(value, -1);
  }
}

template <typename Json>
Json ParseAs(std::string_view text) {
  constexpr size_t kDeepest = bounds::kJsonDepth;
  if (text.size() > kDeepest && DeeperThan(text, kDeepest)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

nlohmann::json ParseJson(std::string_view text) { return ParseAs<nlohmann::json>(text); }

nlohmann::ordered_json ParseOrderedJson(std::string_view text) { return ParseAs<nlohmann::ordered_json>(text); }

std::string JsonText(const nlohmann::json& value, int indent) {
  if (indent >= 0) return ByLibrary(value, indent);
  std::string out;
  Append(value, out);
  return out;
}

std::string JsonText(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace wavetank
