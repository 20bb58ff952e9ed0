#include "core/base/text/percent.h"

namespace wavetank {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// `keep(i)`: whether the broken escape at `i` stays as it is; else nothing is decoded.
template <class Keep>
std::optional<std::string> Decode(std::string_view text, bool plus, Keep keep) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%';
    const int high = escape && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = escape && i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high << 4 | low);
      i += 2;
    } else if (escape && !keep(i)) {
      return std::nullopt;
    } else {
      out += plus && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> PercentDecoded(std::string_view text, bool plus, std::string_view* broken) {
  return Decode(text, plus, [&](size_t at) {
    if (broken != nullptr) *broken = text.substr(at, 3);
    return false;
  });
}

std::string PercentDecodedLoosely(std::string_view text, bool plus) {
  return *Decode(text, plus, [](size_t) { return true; });
}

std::string PercentEncoded(std::string_view text, std::string_view kept) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || kept.find(c) != kept.npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

}  // namespace wavetank
