#include "core/validation/names.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

// Where a reader of "text %NAME% %NAME(argument)% %NAME([\"a\", \"b\"])%" stands.
enum class HeaderPart { kText, kName, kArguments, kListItem, kString, kBehindItem, kBehindList, kBehindArguments };

// What is wrong with the variables, as istiod has it from Envoy 1.5's parser (istiod: header_value_validator.go).
std::string VariableProblem(const std::string& value) {
  constexpr std::string_view kBegin = "invalid header configuration. ";
  const auto wrong = [&](std::string_view what) { return fmt::format("{}{}", kBegin, what); };
  HeaderPart part = HeaderPart::kText;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    const bool last = i + 1 == value.size();
    switch (part) {
      case HeaderPart::kText:
        if (c != '%') break;
        if (last) return wrong("Un-escaped %");
        if (value[i + 1] == '%') {
          ++i;
        } else {
          part = HeaderPart::kName;
        }
        break;
      case HeaderPart::kName:
        if (c == '%') part = HeaderPart::kText;
        if (c == '(') part = HeaderPart::kArguments;
        break;
      case HeaderPart::kArguments:
        if (c != ' ') part = c == '[' ? HeaderPart::kListItem : HeaderPart::kString;
        break;
      case HeaderPart::kListItem:
        if (c == '"') {
          part = HeaderPart::kString;
        } else if (c != ' ') {
          return wrong("Expecting '\"'");
        }
        break;
      case HeaderPart::kString:
        if (c == '\\') {
          if (last) return wrong("Un-terminated backslash in JSON string");
          ++i;
        } else if (c == ')') {
          part = HeaderPart::kBehindArguments;
        } else if (c == '"') {
          part = HeaderPart::kBehindItem;
        }
        break;
      case HeaderPart::kBehindItem:
        if (c == ',') {
          part = HeaderPart::kListItem;
        } else if (c == ']') {
          part = HeaderPart::kBehindList;
        } else if (c != ' ') {
          return wrong("Expecting ',', ']', or whitespace");
        }
        break;
      case HeaderPart::kBehindList:
        if (c == ')') {
          part = HeaderPart::kBehindArguments;
        } else if (c != ' ') {
          return wrong("Expecting ')' or whitespace after '{}', but found '{}'");
        }
        break;
      case HeaderPart::kBehindArguments:
        if (c == '%') {
          part = HeaderPart::kText;
        } else if (c != ' ') {
          return wrong("Expecting '%' or whitespace after");
        }
        break;
    }
  }
  return part == HeaderPart::kText ? "" : wrong(fmt::format("Un-terminated variable expression '{}'", value));
}

}  // namespace

std::string HeaderValue(const std::string& value) {
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      return fmt::format("header value configuration {} is invalid", value);
    }
  }
  const std::string wrong = VariableProblem(value);
  return wrong.empty() ? "" : "header value configuration: " + wrong;
}

}  // namespace wavetank::validation
