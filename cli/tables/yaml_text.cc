#include "cli/tables/yaml_text.h"

#include <algorithm>
#include <string_view>

#include "core/base/json_text.h"

namespace wavetank::cli::tables {
namespace {

using nlohmann::json;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether a reader would take the bare word for something else than text, or for other text.
bool NeedsQuotes(std::string_view text) {
  if (text.empty()) return true;
  static constexpr std::string_view kWords[] = {"true", "True", "TRUE", "false", "False", "FALSE", "null", "Null",
                                                "NULL", "~",    "yes",  "Yes",   "YES",   "no",    "No",   "NO",
                                                "on",   "On",   "ON",   "off",   "Off",   "OFF",   "y",    "Y",
                                                "n",    "N",    ".nan", ".NaN",  ".NAN",  ".inf",  ".Inf", ".INF"};
  if (std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords)) return true;
  const char first = text.front();
  if (std::string_view("!&*-?:|>%@`\"'#,[]{}= \t<").find(first) != std::string_view::npos) {
    // A dash before a word begins text, as does a colon or a question mark.
    if (!(text.size() > 1 && (first == '-' || first == '?' || first == ':') && text[1] != ' ' && !IsDigit(text[1]) &&
          text[1] != '.')) {
      return true;
    }
  }
  if (IsDigit(first) || first == '+' || first == '.' || (first == '-' && text.size() > 1)) {
    // Numbers and dates.
    if (text.find_first_not_of("0123456789+-.:eExXabcdefABCDEF_oTZ") == text.npos) return true;
  }
  if (text.back() == ' ' || text.back() == ':') return true;
  if (text.find(": ") != text.npos || text.find(" #") != text.npos) return true;
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string Scalar(const json& value) {
  if (!value.is_string()) return JsonText(value);
  const std::string& text = value.get_ref<const std::string&>();
  if (!NeedsQuotes(text)) return text;
  const bool plain = std::none_of(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\'' || c == 0x7f; });
  if (plain && !IsDigit(text.empty() ? '0' : text.front()) && text != "true" && text != "false" && text != "null") {
    return "'" + text + "'";
  }
  return JsonText(value);
}

bool Multiline(const json& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  return text.find('\n') != std::string::npos &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }) &&
         text.front() != ' ' && text.front() != '\n';
}

void Block(const json& value, size_t indent, std::string& out) {
  const std::string& text = value.get_ref<const std::string&>();
  const bool ends = text.back() == '\n';
  const bool keeps = ends && text.size() > 1 && text[text.size() - 2] == '\n';
  out += keeps ? "|+\n" : ends ? "|\n" : "|-\n";
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out.append(indent, ' ');
    out.append(text, begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
}

void Write(const json& value, size_t indent, std::string& out);

// What follows "key:" or "-".
void Value(const json& value, size_t indent, bool in_list, std::string& out) {
  if (Multiline(value)) {
    out += ' ';
    return Block(value, indent + 2, out);
  }
  if (!value.is_structured()) {
    out += ' ' + Scalar(value) + '\n';
    return;
  }
  if (value.empty()) {
    out += value.is_array() ? " []\n" : " {}\n";
    return;
  }
  if (in_list) {
    // The first line stands behind the dash.
    std::string inner;
    Write(value, indent + 2, inner);
    out += ' ' + inner.substr(indent + 2);
    return;
  }
  out += '\n';
  Write(value, value.is_array() ? indent : indent + 2, out);
}

void Write(const json& value, size_t indent, std::string& out) {
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      out.append(indent, ' ');
      out += Scalar(json(key)) + ":";
      Value(item, indent, false, out);
    }
    return;
  }
  for (const json& item : value) {
    out.append(indent, ' ');
    out += '-';
    Value(item, indent, true, out);
  }
}

}  // namespace

std::string YamlText(const json& value) {
  if (!value.is_structured()) return Scalar(value) + "\n";
  if (value.empty()) return value.is_array() ? "[]\n" : "{}\n";
  std::string out;
  Write(value, 0, out);
  return out;
}

}  // namespace wavetank::cli::tables
