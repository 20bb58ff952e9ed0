#include "cli/tables/yaml_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json_text.h"

namespace wavetank::cli::tables {
namespace {

using nlohmann::json;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether a reader would take the bare word for something else than text, or for other text.
bool NeedsQuotes(std::string_view text) {
  if (text.empty() || text == "<<") return true;
  static constexpr std::string_view kWords[] = {"true", "True", "TRUE", "false", "False", "FALSE", "null", "Null",
                                                "NULL", "~",    "yes",  "Yes",   "YES",   "no",    "No",   "NO",
                                                "on",   "On",   "ON",   "off",   "Off",   "OFF",   "y",    "Y",
                                                "n",    "N",    ".nan", ".NaN",  ".NAN",  ".inf",  ".Inf", ".INF"};
  if (std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords)) return true;
  const char first = text.front();
  if (std::string_view("!&*-?:|>%@`\"'#,[]{}= \t").find(first) != std::string_view::npos) {
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

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The number that begins at `i`, and where it ends.
std::pair<int64_t, size_t> NumberAt(const std::string& text, size_t i) {
  int64_t number = 0;
  for (; i < text.size() && IsDigit(text[i]) && number < int64_t{1} << 50; ++i) number = number * 10 + (text[i] - '0');
  return {number, i};
}

// Where keys first differ, letters come last, and numbers count as such (go-yaml: v2/sorter.go).
bool KeyBefore(const std::string& a, const std::string& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  if (i == a.size() || i == b.size()) return a.size() < b.size();
  if (IsLetter(a[i]) || IsLetter(b[i])) return IsLetter(a[i]) == IsLetter(b[i]) ? a[i] < b[i] : IsLetter(b[i]);
  const auto [of_a, end_a] = NumberAt(a, i);
  const auto [of_b, end_b] = NumberAt(b, i);
  if (of_a != of_b) return of_a < of_b;
  return end_a != end_b ? end_a < end_b : a[i] < b[i];
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
    std::vector<std::string> keys;
    for (const auto& [key, item] : value.items()) keys.push_back(key);
    std::sort(keys.begin(), keys.end(), KeyBefore);
    for (const std::string& key : keys) {
      const json& item = value.at(key);
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
