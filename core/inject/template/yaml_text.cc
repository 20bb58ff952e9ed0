// YAML as sigs.k8s.io/yaml writes it, for toYaml.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/json_text.h"
#include "core/inject/template/value.h"
#include "fmt/format.h"

namespace wavetank::pilot::gotemplate {
namespace {

using nlohmann::json;

// Whether a reader would take it for something else than this string, or for no scalar at all.
bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  static constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords)) return true;
  if (std::string_view("-?:,[]{}#&*!|>'\"%@` .+").find(text.front()) != std::string_view::npos) return true;
  if (std::isdigit(static_cast<unsigned char>(text.front())) != 0) return true;
  if (text.back() == ' ' || text.back() == ':') return true;
  return text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos ||
         std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string Scalar(const json& in) {
  if (in.is_null()) return "null";
  if (!in.is_string()) return JsonText(in);
  const std::string& text = in.get_ref<const std::string&>();
  return NeedsQuotes(text) ? JsonText(in) : text;
}

void Write(const json& in, size_t indent, bool after_dash, std::string& out) {
  const std::string space(indent, ' ');
  bool first = after_dash;
  const auto member = [&](const std::string& head, const json& value, size_t deeper) {
    out += (first ? std::string() : space) + head;
    first = false;
    if (value.is_structured() && !value.empty()) {
      const bool dash = head == "-";
      out += dash ? " " : "\n";
      return Write(value, deeper, dash, out);
    }
    out += " " + (value.is_structured() ? std::string(value.is_object() ? "{}" : "[]") : Scalar(value)) + "\n";
  };
  if (in.is_object()) {
    for (const auto& [key, value] : in.items()) {
      // Lists stand under their key, not to its right.
      member(Scalar(key) + ":", value, value.is_array() ? indent : indent + 2);
    }
  } else {
    for (const json& value : in) member("-", value, indent + 2);
  }
}

}  // namespace

std::string YamlText(const json& in) {
  const json whole = WithWholeNumbers(in);
  if (!whole.is_structured()) return Scalar(whole) + "\n";
  if (whole.empty()) return whole.is_object() ? "{}\n" : "[]\n";
  std::string out;
  Write(whole, 0, false, out);
  return out;
}

}  // namespace wavetank::pilot::gotemplate
