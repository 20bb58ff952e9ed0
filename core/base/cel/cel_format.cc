#include "core/base/cel/cel_format.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "core/base/cel/cel_functions.h"
#include "fmt/format.h"

namespace wavetank::cel {
namespace {

constexpr int kPrecision = 6;
constexpr int kMostPrecision = 1000;  // what a text of 1 MiB could hold of them is no use to anyone

// Go: strconv.Quote, of what is printable ASCII or UTF-8.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
      case '\\':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        static_cast<unsigned char>(c) < 0x20 || c == 0x7f
            ? void(out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c)))
            : void(out += c);
    }
  }
  return out + '"';
}

CelValue Bad(std::string_view clause, const CelValue& value) {
  return CelFailure(fmt::format("error during formatting: {}, was given {}", clause, TypeNameOf(value)));
}
constexpr std::string_view kStringClause =
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps";

CelValue AsString(const CelValue& value);

// An element of a list or map, so that it could stand in an expression.
CelValue AsElement(const CelValue& value) {
  if (const auto* real = value.As<double>()) {
    if (std::isnan(*real)) return CelText("\"NaN\"");
    if (std::isinf(*real)) return CelText(*real > 0 ? "\"+Inf\"" : "\"-Inf\"");
    return CelText(fmt::format("{:.{}f}", *real, kPrecision));
  }
  CelValue out = AsString(value);
  const auto* const text = out.As<std::string>();
  if (text == nullptr) return out;
  if (value.As<std::string>() != nullptr) return CelText(Quoted(*text));
  if (value.As<CelBytes>() != nullptr) return CelText("b" + Quoted(*text));
  if (value.As<absl::Duration>() != nullptr) return CelText(fmt::format("duration({})", Quoted(*text)));
  if (value.As<absl::Time>() != nullptr) return CelText(fmt::format("timestamp({})", Quoted(*text)));
  return out;
}

CelValue AsString(const CelValue& value) {
  if (value.As<CelNull>() != nullptr) return CelText("null");
  if (const auto* type = value.As<CelType>()) return CelText(type->name);
  if (const auto* list = value.As<std::shared_ptr<const CelList>>()) {
    std::string out = "[";
    for (const CelValue& one : **list) {
      const CelValue part = AsElement(one);
      if (part.failed()) return part;
      if (&one != &(*list)->front()) out += ", ";
      out += *part.As<std::string>();
    }
    return CelText(out + "]");
  }
  if (const auto* map = value.As<std::shared_ptr<const CelMap>>(); map != nullptr && TypeNameOf(value) == "map") {
    if (!(*map)->size()) return Bad(kStringClause, value);
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const CelValue& key : (*map)->Keys()) {
      const CelValue name = AsElement(key), part = AsElement((*map)->Get(key));
      if (name.failed()) return name;
      if (part.failed()) return part;
      pairs.emplace_back(*name.As<std::string>(), *part.As<std::string>());
    }
    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string out = "{";
    for (const auto& [key, part] : pairs) out += fmt::format("{}{}:{}", out.size() > 1 ? ", " : "", key, part);
    return CelText(out + "}");
  }
  CelValue out = TextOf(value);
  return out.failed() ? Bad(kStringClause, value) : out;
}

std::optional<double> RealOf(const CelValue& value) {
  if (const auto* real = value.As<double>()) return *real;
  const auto* const text = value.As<std::string>();
  if (text == nullptr) return std::nullopt;
  if (*text == "NaN") return std::nan("");
  if (*text == "Infinity") return HUGE_VAL;
  if (*text == "-Infinity") return -HUGE_VAL;
  return std::nullopt;
}

// Go: golang.org/x/text/message of American English.
std::optional<std::string> NoNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  return std::nullopt;
}
std::string Fixed(double value, int precision) {
  if (const auto word = NoNumber(value)) return *word;
  std::string out = fmt::format("{:.{}f}", value, precision);
  const size_t first = out.starts_with('-') ? 1 : 0;
  for (size_t at = std::min(out.find('.'), out.size()); at > first + 3;) out.insert(at -= 3, ",");
  return out;
}
std::string Scientific(double value, int precision) {
  if (const auto word = NoNumber(value)) return *word;
  static constexpr std::string_view kRaised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  const std::string plain = fmt::format("{:.{}e}", value, precision);
  const size_t e = plain.find('e');
  std::string out = plain.substr(0, e) + "\u202f×\u202f10";
  for (const char c : plain.substr(e + 1)) {
    if (c == '-') out += "⁻";
    if (c >= '0' && c <= '9') out += kRaised[c - '0'];
  }
  return out;
}

std::string InBase(const char* of_unsigned, const CelValue& value) {
  uint64_t magnitude = 0;
  std::string sign;
  if (const auto* number = value.As<int64_t>()) {
    sign = *number < 0 ? "-" : "";
    magnitude = *number < 0 ? ~static_cast<uint64_t>(*number) + 1 : static_cast<uint64_t>(*number);
  } else {
    magnitude = *value.As<uint64_t>();
  }
  return sign + fmt::format(fmt::runtime(of_unsigned), magnitude);
}
bool IsInteger(const CelValue& value) { return value.As<int64_t>() != nullptr || value.As<uint64_t>() != nullptr; }

CelValue Formatted(char clause, std::optional<int> precision, const CelValue& value) {
  switch (clause) {
    case 's':
      return AsString(value);
    case 'd':
      if (!IsInteger(value)) return Bad("decimal clause can only be used on integers", value);
      return CelText(InBase("{}", value));
    case 'f':
    case 'e': {
      const std::optional<double> real = RealOf(value);
      if (!real) {
        return Bad(clause == 'f' ? "fixed-point clause can only be used on doubles"
                                 : "scientific clause can only be used on doubles",
                   value);
      }
      return CelText((clause == 'f' ? Fixed : Scientific)(*real, precision.value_or(kPrecision)));
    }
    case 'b':
      if (const bool* flag = value.As<bool>()) return CelText(*flag ? "1" : "0");
      if (!IsInteger(value)) return Bad("only integers and bools can be formatted as binary", value);
      return CelText(InBase("{:b}", value));
    case 'o':
      if (!IsInteger(value)) return Bad("octal clause can only be used on integers", value);
      return CelText(InBase("{:o}", value));
    case 'x':
    case 'X': {
      const auto* const text = value.As<std::string>();
      const auto* const bytes = value.As<CelBytes>();
      if (text != nullptr || bytes != nullptr) {
        std::string out;
        for (const char c : text != nullptr ? *text : bytes->bytes) {
          const auto byte = static_cast<unsigned char>(c);
          out += clause == 'x' ? fmt::format("{:02x}", byte) : fmt::format("{:02X}", byte);
        }
        return CelText(out);
      }
      if (!IsInteger(value)) return Bad("only integers, byte buffers, and strings can be formatted as hex", value);
      return CelText(InBase(clause == 'x' ? "{:x}" : "{:X}", value));
    }
    default:
      return CelFailure(
          fmt::format("could not parse formatting clause: unrecognized formatting clause \"{}\"", clause));
  }
}

}  // namespace

CelValue FormatText(const std::string& text, const CelList& values) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '%') {
      out += text[++i];
      continue;
    }
    if (next >= values.size()) return CelFailure(fmt::format("index {} out of range", next));
    if (++i >= text.size()) return CelFailure("unexpected end of string");
    std::optional<int> precision;
    if (text[i] == '.') {
      const size_t begin = ++i;
      while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
      constexpr std::string_view kWhere = "could not parse formatting clause: error while parsing precision: ";
      if (i >= text.size()) return CelFailure(std::string(kWhere) + "could not find end of precision specifier");
      int value = 0;
      const std::string digits = text.substr(begin, i - begin);
      if (!absl::SimpleAtoi(digits, &value)) {
        return CelFailure(
            fmt::format("{}error while converting precision to integer: strconv.Atoi: parsing {}: invalid syntax",
                        kWhere, Quoted(digits)));
      }
      precision = std::min(value, kMostPrecision);
    }
    const CelValue part = Formatted(text[i], precision, values[next++]);
    if (part.failed()) return part;
    out += *part.As<std::string>();
  }
  return CelText(out);
}

}  // namespace wavetank::cel
