#include "core/base/text/token_text.h"

namespace wavetank {
namespace {

bool IsTokenLetter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

}  // namespace

std::optional<TokenPlace> FindToken(std::string_view text, size_t from) {
  for (size_t dot = text.find(".eyJ", from); dot != text.npos; dot = text.find(".eyJ", dot + 1)) {
    // A slash may be of a path before the token, or of one in base64 that is not for URLs.
    std::optional<size_t> begin;
    for (size_t i = dot; i >= from; --i) {
      if (i > from && IsTokenLetter(text[i - 1])) continue;
      if (text.substr(i, 3) == "eyJ") begin = i;
      if (i == from || (text[i - 1] != '+' && text[i - 1] != '/')) break;
    }
    if (!begin) continue;
    size_t end = dot;
    while (end < text.size() && (IsTokenLetter(text[end]) || text[end] == '.')) ++end;
    return TokenPlace{*begin, end};
  }
  return std::nullopt;
}

}  // namespace wavetank
