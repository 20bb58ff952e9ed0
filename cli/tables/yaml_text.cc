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

// Digits with blanks between them, in a base of Go's: 0x1f, 0b1, 017.
bool IsInteger(std::string text) {
  std::erase(text, '_');
  std::string_view rest = text;
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  std::string_view digits = "0123456789";
  if (rest.size() > 2 && rest[0] == '0') {
    const std::string_view base = rest.substr(1, 1);
    if (base == "x" || base == "X") digits = "0123456789abcdefABCDEF";
    if (base == "b" || base == "B") digits = "01";
    if (base == "o" || base == "O") digits = "01234567";
    if (digits.size() != 10) rest.remove_prefix(2);
  }
  return !rest.empty() && rest.find_first_not_of(digits) == rest.npos;
}

// "[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?" (go-yaml: v2/resolve.go).
bool IsFloat(std::string text) {
  std::erase(text, '_');
  std::string_view rest = text;
  const auto skip_digits = [&] {
    const size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(end);
    return end;
  };
  const auto skip_sign = [&] {
    if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  };
  skip_sign();
  const size_t before = skip_digits();
  size_t behind = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    behind = skip_digits();
  }
  if (before == 0 && behind == 0) return false;
  if (rest.starts_with('e') || rest.starts_with('E')) {
    rest.remove_prefix(1);
    skip_sign();
    if (skip_digits() == 0) return false;
  }
  return rest.empty();
}

// 12:30:45, which YAML 1.1 takes for a number.
bool IsBase60(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || !IsDigit(text.front()) || text.find(':') == text.npos) return false;
  bool first = true;
  for (;;) {
    const size_t end = std::min(text.find(':'), text.size());
    std::string_view part = text.substr(0, end);
    if (end == text.size()) part = part.substr(0, part.find('.'));
    const bool digits = part.find_first_not_of(first ? "0123456789_" : "0123456789") == part.npos;
    if (!digits || part.empty() || (!first && (part.size() > 2 || (part.size() == 2 && part.front() > '5'))))
      return false;
    if (end == text.size()) return text.find_first_not_of("0123456789_.") == text.npos;
    text.remove_prefix(end + 1);
    first = false;
  }
}

// 2026-11-30, or with a time behind it (go-yaml: v2/resolve.go, parseTimestamp()).
bool IsDate(std::string_view text) {
  const auto digits = [&](size_t most) {
    size_t count = 0;
    while (count < most && count < text.size() && IsDigit(text[count])) ++count;
    text.remove_prefix(count);
    return count;
  };
  const auto literal = [&](std::string_view among) {
    if (text.empty() || among.find(text.front()) == among.npos) return false;
    text.remove_prefix(1);
    return true;
  };
  if (digits(5) != 4 || !literal("-") || digits(2) == 0 || !literal("-") || digits(2) == 0) return false;
  if (text.empty()) return true;
  const bool zoned = text.front() != ' ';
  if (!literal("Tt ") || digits(2) == 0 || !literal(":") || digits(2) == 0 || !literal(":") || digits(2) == 0)
    return false;
  if (literal(".") && digits(text.size()) == 0) return false;
  if (!zoned || text == "Z") return text == (zoned ? "Z" : "");
  return literal("+-") && digits(2) == 2 && literal(":") && digits(2) == 2 && text.empty();
}

// A reader would take the bare word for something else than text: it is quoted twice.
bool IsOther(const std::string& text) {
  static constexpr std::string_view kWords[] = {
      "",     "~",    "null", "Null", "NULL", "true", "True",  "TRUE",  "false", "False", "FALSE", "yes",  "Yes", "YES",
      "no",   "No",   "NO",   "on",   "On",   "ON",   "off",   "Off",   "OFF",   "y",     "Y",     "n",    "N",   "<<",
      ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};
  return std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords) || IsInteger(text) ||
         IsFloat(text) || IsBase60(text) || IsDate(text);
}

bool HasSpecial(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// The bare word would be no plain scalar (go-yaml: v2/emitterc.go, yaml_emitter_analyze_scalar()).
bool NeedsQuotes(std::string_view text) {
  if (text.starts_with("---") || text.starts_with("...")) return true;
  const char first = text.front();
  if (std::string_view("#,[]{}&*!|>'\"%@`").find(first) != text.npos) return true;
  const bool alone = text.size() == 1 || text[1] == ' ' || text[1] == '\t';
  if (alone && (first == '-' || first == '?' || first == ':')) return true;
  if (first == ' ' || text.back() == ' ' || text.back() == ':') return true;
  return text.find(": ") != text.npos || text.find(" #") != text.npos;
}

std::string Scalar(const json& value) {
  if (!value.is_string()) return JsonText(value);
  const std::string& text = value.get_ref<const std::string&>();
  if (HasSpecial(text) || IsOther(text)) return JsonText(value);
  if (!NeedsQuotes(text)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
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
