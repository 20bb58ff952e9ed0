#include "fakes/kube/http/api/go_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/base/json_text.h"

namespace wavetank::fakekube::http {
namespace {

using nlohmann::json;

bool DigitChar(char c) { return c >= '0' && c <= '9'; }

// Go: src/encoding/json/scanner.go. Reads one value; the first byte that does not fit, and what was expected there,
// make the error.
class JsonComplaint {
 public:
  explicit JsonComplaint(std::string_view text) : text_(text) {}
  std::string Find() {
    if (Value(0)) {
      Blank();
      if (at_ < text_.size()) Fail("after top-level value");
    }
    return error_;
  }

 private:
  static constexpr int kDeepest = 10'000;  // Go's own limit

  void Blank() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  char Here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  static bool Control(char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }
  // strconv.Quote; with the marks around it that are taken off below.
  static std::string GoEscape(char c) {
    static constexpr std::string_view kNamed = "\a\b\t\n\v\f\r", kNames = "abtnvfr";
    const size_t named = kNamed.find(c);
    return named != std::string_view::npos ? fmt::format("\"\\{}\"", kNames[named])
                                           : fmt::format("\"\\x{:02x}\"", int{c});
  }
  bool Fail(const std::string& where) {
    if (at_ >= text_.size()) {
      error_ = "unexpected end of JSON input";
    } else {
      const char c = text_[at_];
      const std::string shown = c == '\''    ? "\\'"
                                : c == '"'   ? "\""
                                : Control(c) ? GoEscape(c)
                                             : JsonText(json(std::string(1, c)));
      error_ =
          fmt::format("invalid character '{}' {}", shown.size() > 2 ? shown.substr(1, shown.size() - 2) : shown, where);
    }
    return false;
  }
  bool Value(int depth) {
    Blank();
    if (depth > kDeepest) {
      error_ = "exceeded max depth";
      return false;
    }
    switch (Here()) {
      case '{':
        return Object(depth);
      case '[':
        return Array(depth);
      case '"':
        return Text();
      case 't':
        return Literal("true");
      case 'f':
        return Literal("false");
      case 'n':
        return Literal("null");
      default:
        return Here() == '-' || DigitChar(Here()) ? Number() : Fail("looking for beginning of value");
    }
  }
  bool Object(int depth) {
    ++at_;
    Blank();
    if (Here() == '}') return ++at_ > 0;
    for (;;) {
      Blank();
      if (Here() != '"') return Fail("looking for beginning of object key string");
      if (!Text()) return false;
      Blank();
      if (Here() != ':') return Fail("after object key");
      ++at_;
      if (!Value(depth + 1)) return false;
      Blank();
      if (Here() == '}') return ++at_ > 0;
      if (Here() != ',') return Fail("after object key:value pair");
      ++at_;
    }
  }
  bool Array(int depth) {
    ++at_;
    Blank();
    if (Here() == ']') return ++at_ > 0;
    for (;;) {
      if (!Value(depth + 1)) return false;
      Blank();
      if (Here() == ']') return ++at_ > 0;
      if (Here() != ',') return Fail("after array element");
      ++at_;
    }
  }
  bool Text() {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return ++at_ > 0;
      if (static_cast<unsigned char>(c) < 0x20) return Fail("in string literal");
      if (c != '\\') continue;
      ++at_;
      if (Here() == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          if (std::isxdigit(static_cast<unsigned char>(Here())) == 0)
            return Fail("in \\u hexadecimal character escape");
        }
      } else if (std::string_view("bfnrt\\/\"").find(Here()) == std::string_view::npos || at_ >= text_.size()) {
        return Fail("in string escape code");
      }
    }
    return Fail("");
  }
  bool Literal(std::string_view word) {
    for (const char c : word) {
      if (Here() != c) return Fail(fmt::format("in literal {} (expecting '{}')", word, c));
      ++at_;
    }
    return true;
  }
  bool Number() {
    if (Here() == '-') ++at_;
    if (!DigitChar(Here())) return Fail("in numeric literal");
    if (Here() == '0') {
      ++at_;
    } else {
      while (DigitChar(Here())) ++at_;
    }
    if (Here() == '.') {
      ++at_;
      if (!DigitChar(Here())) return Fail("after decimal point in numeric literal");
      while (DigitChar(Here())) ++at_;
    }
    if (Here() == 'e' || Here() == 'E') {
      ++at_;
      if (Here() == '+' || Here() == '-') ++at_;
      if (!DigitChar(Here())) return Fail("in exponent of numeric literal");
      while (DigitChar(Here())) ++at_;
    }
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string error_;
};

// apimachinery: pkg/labels/selector.go.
class SelectorComplaint {
 public:
  explicit SelectorComplaint(std::string_view text) {
    constexpr std::string_view kSpecial = "=!(),><";
    for (size_t at = 0; at < text.size();) {
      const auto blank = [&](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
      if (blank(text[at])) {
        ++at;
        continue;
      }
      size_t end = at;
      if (kSpecial.find(text[at]) == std::string_view::npos) {
        while (end < text.size() && !blank(text[end]) && kSpecial.find(text[end]) == std::string_view::npos) ++end;
      } else {
        end = at + 1;
        const std::string_view two = text.substr(at, 2);
        if (two == "==" || two == "!=") end = at + 2;
      }
      words_.emplace_back(text.substr(at, end - at));
      at = end;
    }
  }
  std::string Find() {
    if (!Here().empty() && !Word(Here()) && Here() != "!")
      return fmt::format("found '{}', expected: !, identifier, or 'end of string'", Here());
    while (at_ < words_.size()) {
      if (std::string wrong = Requirement(); !wrong.empty()) return "unable to parse requirement: " + wrong;
      if (at_ == words_.size()) return "";
      if (Here() != ",") return fmt::format("found '{}', expected: ',' or 'end of string'", Here());
      ++at_;
      if (!Word(Here()) && Here() != "!") return fmt::format("found '{}', expected: identifier after ','", Here());
    }
    return "";
  }

 private:
  std::string Here() const { return at_ < words_.size() ? words_[at_] : ""; }
  static bool Word(const std::string& text) {
    return !text.empty() && std::string_view("=!(),><").find(text[0]) == std::string_view::npos;
  }
  std::string Requirement() {
    const bool absent = Here() == "!";
    if (absent) ++at_;
    if (!Word(Here())) return fmt::format("found '{}', expected: identifier", Here());
    ++at_;
    if (absent || Here().empty() || Here() == ",") return "";
    const std::string op = Here();
    if (op != "in" && op != "notin" && op != "=" && op != "==" && op != "!=" && op != ">" && op != "<")
      return fmt::format("found '{}', expected: in, notin, =, ==, !=, gt, lt", op);
    ++at_;
    if (op != "in" && op != "notin") {
      // Nothing is the empty value.
      if (Word(Here())) {
        ++at_;
      } else if (!Here().empty() && Here() != ",") {
        return fmt::format("found '{}', expected: identifier", Here());
      }
      return "";
    }
    if (Here() != "(") return fmt::format("found '{}' expected: '('", Here());
    for (++at_; Here() != ")";) {
      if (Word(Here())) {
        ++at_;
        if (Here() != "," && Here() != ")") return fmt::format("found '{}', expected: ',' or ')'", Here());
      } else if (Here() == ",") {
        ++at_;
      } else {
        return fmt::format("found '{}', expected: ',', ')' or identifier", Here());
      }
    }
    ++at_;
    return "";
  }

  std::vector<std::string> words_;
  size_t at_ = 0;
};

}  // namespace

std::string GoJsonError(std::string_view text) { return JsonComplaint(text).Find(); }

std::string GoSelectorError(std::string_view selector) { return SelectorComplaint(selector).Find(); }

std::string GoText(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "<nil>";
  if (!value.is_structured()) return JsonText(value);
  std::string out;
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (!out.empty()) out += " ";
    if (value.is_object()) out += it.key() + ":";
    out += GoText(*it);
  }
  return (value.is_object() ? "map[" : "[") + out + "]";
}

std::string GoSyntax(const json& value) {
  if (value.is_null()) return "interface {}(nil)";
  if (!value.is_structured()) return JsonText(value);
  std::string out;
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (!out.empty()) out += ", ";
    if (value.is_object()) out += JsonText(json(it.key())) + ":";
    out += GoSyntax(*it);
  }
  return (value.is_object() ? "map[string]interface {}{" : "[]interface {}{") + out + "}";
}

std::string UnrecognizedObject(std::string_view kind, std::string_view wrong, std::string_view body) {
  constexpr size_t kShown = 30;
  std::string shown(body.substr(0, kShown));
  if (!shown.starts_with("{")) shown = absl::BytesToHexString(shown);
  if (body.size() > kShown) shown += " ...";
  return fmt::format("the object provided is unrecognized (must be of type {}): {} ({})", kind, wrong, shown);
}

}  // namespace wavetank::fakekube::http
