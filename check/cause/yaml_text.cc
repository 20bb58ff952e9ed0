#include "check/cause/yaml_text.h"

#include <algorithm>
#include <cctype>

#include "core/base/json_text.h"

namespace wavetank::check {
namespace {

using nlohmann::ordered_json;

// Words and numbers of YAML 1.1, and whatever begins or holds a sign of its own, are quoted.
bool Plain(const std::string& text) {
  static constexpr std::string_view kWords[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text.empty() || std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords)) return false;
  if (std::isalpha(static_cast<unsigned char>(text.front())) == 0 && text.front() != '/') return false;
  if (text.back() == ':') return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) {
                       return std::isalnum(c) != 0 ||
                              std::string_view("-_./@|:= ").find(static_cast<char>(c)) != std::string_view::npos;
                     }) &&
         text.find(": ") == std::string::npos && text.back() != ' ';
}

std::string Scalar(const ordered_json& value) {
  if (value.is_string() && Plain(value.get_ref<const std::string&>())) return value.get<std::string>();
  return JsonText(value);
}

void Write(const ordered_json& value, size_t indent, std::string* out) {
  const std::string pad(indent, ' ');
  const auto entry = [&](const std::string& head, const ordered_json& item) {
    *out += head;
    if (!item.is_structured() || item.empty()) {
      *out += " " + Scalar(item) + "\n";
    } else {
      *out += "\n";
      Write(item, indent + 2, out);
    }
  };
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) entry(pad + Scalar(key) + ":", item);
    return;
  }
  for (const ordered_json& item : value) {
    if (!item.is_structured() || item.empty()) {
      *out += pad + "- " + Scalar(item) + "\n";
      continue;
    }
    // The first line of an item stands beside its dash.
    std::string text;
    Write(item, indent + 2, &text);
    text[indent] = '-';
    *out += text;
  }
}

}  // namespace

std::string YamlText(const ordered_json& value) {
  if (!value.is_structured() || value.empty()) return Scalar(value) + "\n";
  std::string out;
  Write(value, 0, &out);
  return out;
}

}  // namespace wavetank::check
