#include "core/envoyapi/go_json.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/json_text.h"

namespace wavetank::pilot {
namespace {

void AppendNumber(double value, std::string& out) {
  const double size = std::fabs(value);
  const bool exponent = size != 0 && (size < 1e-6 || size >= 1e21);
  char text[512];
  const auto end = std::to_chars(text, text + sizeof text, value,
                                 exponent ? std::chars_format::scientific : std::chars_format::fixed)
                       .ptr;
  out.append(text, end);
  // Go writes e-7, but e+21.
  if (exponent && out.size() >= 4 && out.compare(out.size() - 4, 3, "e-0") == 0) out.erase(out.size() - 2, 1);
}

void AppendEscaped(const nlohmann::json& value, std::string& out) {
  const std::string text = JsonText(value);  // in UTF-8, and escaped as far as any JSON has to be
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = std::string_view(text).substr(i);
    if (c == '<' || c == '>' || c == '&') {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
      out.append(escape);
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out.append(rest[2] == '\xA8' ? "\\u2028" : "\\u2029");
      i += 2;
    } else if (c == '\\') {
      const char next = text[++i];
      out.append(next == 'b' ? "\\u0008" : next == 'f' ? "\\u000c" : std::string{c, next});
    } else {
      out.push_back(c);
    }
  }
}

void Append(const nlohmann::json& value, std::string& out) {
  if (value.is_number()) return AppendNumber(value.get<double>(), out);
  if (!value.is_structured()) return AppendEscaped(value, out);
  out.push_back(value.is_object() ? '{' : '[');
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out.push_back(',');
    first = false;
    if (value.is_object()) {
      AppendEscaped(key, out);
      out.push_back(':');
    }
    Append(item, out);
  }
  out.push_back(value.is_object() ? '}' : ']');
}

}  // namespace

std::string GoStructJson(const nlohmann::json& value) {
  std::string out;
  Append(value, out);
  return out;
}

}  // namespace wavetank::pilot
