#include "wavetank/value.h"

#include <charconv>
#include <cmath>

namespace wavetank {
namespace {

void PrintText(const std::string& text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  *out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (c == '\n') {
      *out += "\\n";
    } else if (byte < 0x20) {
      *out += "\\u00";
      *out += kHex[byte >> 4];
      *out += kHex[byte & 15];
    } else {
      *out += c;
    }
  }
  *out += '"';
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 63));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xe0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 63));
    *out += static_cast<char>(0x80 | (code & 63));
  } else {
    *out += static_cast<char>(0xf0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 63));
    *out += static_cast<char>(0x80 | (code >> 6 & 63));
    *out += static_cast<char>(0x80 | (code & 63));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool All(Value* out) { return Read(out, 0) && (Space(), at_ == text_.size()); }

 private:
  static constexpr int kDeepest = 200;

  void Space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool Take(std::string_view word) {
    Space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool Read(Value* out, int depth) {
    if (depth > kDeepest) return false;
    Space();
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '{':
        return ReadMap(out, depth);
      case '[':
        return ReadList(out, depth);
      case '"': {
        std::string text;
        if (!ReadText(&text)) return false;
        *out = std::move(text);
        return true;
      }
      case 't':
        *out = true;
        return Take("true");
      case 'f':
        *out = false;
        return Take("false");
      case 'n':
        *out = Value();
        return Take("null");
      default:
        return ReadNumber(out);
    }
  }

  bool ReadMap(Value* out, int depth) {
    Value::Map map;
    if (!Take("{")) return false;
    if (!Take("}")) {
      do {
        Space();
        std::string key;
        if (!ReadText(&key) || !Take(":") || !Read(&map[key], depth + 1)) return false;
      } while (Take(","));
      if (!Take("}")) return false;
    }
    *out = std::move(map);
    return true;
  }

  bool ReadList(Value* out, int depth) {
    Value::List list;
    if (!Take("[")) return false;
    if (!Take("]")) {
      do {
        list.emplace_back();
        if (!Read(&list.back(), depth + 1)) return false;
      } while (Take(","));
      if (!Take("]")) return false;
    }
    *out = std::move(list);
    return true;
  }

  bool ReadNumber(Value* out) {
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    int64_t integer = 0;
    const auto [after, error] = std::from_chars(begin, end, integer);
    if (error == std::errc() && (after == end || std::string_view(".eE").find(*after) == std::string_view::npos)) {
      *out = integer;
      at_ += static_cast<size_t>(after - begin);
      return true;
    }
    double number = 0;
    const auto [stop, wrong] = std::from_chars(begin, end, number);
    if (wrong != std::errc()) return false;
    *out = number;
    at_ += static_cast<size_t>(stop - begin);
    return true;
  }

  bool ReadHex(uint32_t* out) {
    if (at_ + 4 > text_.size()) return false;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, *out, 16);
    at_ += 4;
    return error == std::errc() && end == text_.data() + at_;
  }

  bool ReadText(std::string* out) {
    if (at_ == text_.size() || text_[at_] != '"') return false;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c != '\\') {
        *out += c;
        continue;
      }
      if (++at_ == text_.size() || !ReadEscaped(out)) return false;
    }
    return false;
  }

  // After a backslash; stands on the last character of it afterwards.
  bool ReadEscaped(std::string* out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const char c = text_[at_];
    if (c != 'u') {
      const size_t index = kNames.find(c);
      if (index == std::string_view::npos) return false;
      *out += kMeant[index];
      return true;
    }
    ++at_;
    uint32_t code = 0, low = 0;
    if (!ReadHex(&code)) return false;
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      if (!ReadHex(&low)) return false;
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      if (low < 0xdc00 || low > 0xdfff) return false;
    }
    AppendUtf8(code, out);
    --at_;
    return true;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

void PrintNumber(double value, std::string* out) {
  if (!std::isfinite(value)) {
    *out += "null";  // as JSON has no word for it
    return;
  }
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out->append(buffer, error == std::errc() ? end : buffer);
}

}  // namespace

Value::Value(const std::vector<std::string>& texts) : held_(List(texts.begin(), texts.end())) {}
Value::Value(const std::map<std::string, std::string>& texts) : held_(Map(texts.begin(), texts.end())) {}

bool Value::Flag() const {
  const bool* const held = std::get_if<bool>(&held_);
  return held != nullptr && *held;
}

int64_t Value::Integer() const {
  const int64_t* const held = std::get_if<int64_t>(&held_);
  return held == nullptr ? 0 : *held;
}

double Value::Number() const {
  const double* const held = std::get_if<double>(&held_);
  return held == nullptr ? static_cast<double>(Integer()) : *held;
}

const std::string& Value::Text() const {
  static const auto* const none = new std::string();
  const std::string* const held = std::get_if<std::string>(&held_);
  return held == nullptr ? *none : *held;
}

const Value::List& Value::Items() const {
  static const auto* const none = new List();
  const List* const held = std::get_if<List>(&held_);
  return held == nullptr ? *none : *held;
}

const Value::Map& Value::Entries() const {
  static const auto* const none = new Map();
  const Map* const held = std::get_if<Map>(&held_);
  return held == nullptr ? *none : *held;
}

const Value& Value::operator[](std::string_view key) const {
  static const auto* const none = new Value();
  const Map& map = Entries();
  const auto it = map.find(key);
  return it == map.end() ? *none : it->second;
}

Value& Value::Set(std::string_view key, Value value) {
  if (!IsMap()) held_ = Map();
  return std::get_if<Map>(&held_)->insert_or_assign(std::string(key), std::move(value)).first->second;
}

std::string Value::Print() const {
  std::string out;
  if (const bool* const flag = std::get_if<bool>(&held_)) {
    out = *flag ? "true" : "false";
  } else if (const int64_t* const integer = std::get_if<int64_t>(&held_)) {
    out = std::to_string(*integer);
  } else if (const double* const number = std::get_if<double>(&held_)) {
    PrintNumber(*number, &out);
  } else if (IsText()) {
    PrintText(Text(), &out);
  } else if (IsList()) {
    for (const Value& item : Items()) out += (out.empty() ? "[" : ", ") + item.Print();
    out += out.empty() ? "[]" : "]";
  } else if (IsMap()) {
    for (const auto& [key, value] : Entries()) {
      out += out.empty() ? "{" : ", ";
      PrintText(key, &out);
      out += ": " + value.Print();
    }
    out += out.empty() ? "{}" : "}";
  } else {
    out = "null";
  }
  return out;
}

bool Value::Parse(std::string_view text, Value* out) {
  if (Parser(text).All(out)) return true;
  *out = Value();
  return false;
}

}  // namespace wavetank
