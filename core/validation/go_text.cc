#include "core/validation/go_text.h"

#include <re2/re2.h>

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

// One rune of UTF-8; a length of 0: the first byte begins none.
struct Rune {
  uint32_t value = 0;
  size_t length = 0;
};
Rune FirstRune(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  const uint32_t first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return {};
  if (length == 1) return {first, 1};
  uint32_t value = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  const bool shortest = length == 2 || (length == 3 ? value >= 0x800 : value >= 0x10000);
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  return shortest && !surrogate && value <= 0x10ffff ? Rune{value, length} : Rune{};
}

// Of those beyond ASCII: controls, spaces, marks of direction, private use, no characters. (unicode.IsPrint knows the
// unassigned ones, too.)
bool IsPrint(uint32_t rune) {
  constexpr std::pair<uint32_t, uint32_t> kHidden[] = {
      {0x80, 0xa0},     {0xad, 0xad},     {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
      {0x2028, 0x202f}, {0x205f, 0x206f}, {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},
      {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff}};
  return std::none_of(std::begin(kHidden), std::end(kHidden),
                      [&](const auto& range) { return rune >= range.first && rune <= range.second; });
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// What is wrong in an address, and from where on; nothing is.
struct AddressFault {
  std::string what;
  std::string_view at;
};

AddressFault InV4(std::string_view text) {
  int value = 0, dots = 0;
  size_t digits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsDigit(text[i])) {
      if (digits == 1 && value == 0) return {"IPv4 field has octet with leading zero", {}};
      value = value * 10 + (text[i] - '0');
      ++digits;
      if (value > 255) return {"IPv4 field has value >255", {}};
    } else if (text[i] == '.') {
      if (i == 0 || i + 1 == text.size() || text[i - 1] == '.') {
        return {"IPv4 field must have at least one digit", text.substr(i)};
      }
      if (dots == 3) return {"IPv4 address too long", {}};
      ++dots;
      value = 0;
      digits = 0;
    } else {
      return {"unexpected character", text.substr(i)};
    }
  }
  return {dots < 3 ? "IPv4 address too short" : "", {}};
}

AddressFault InV6(std::string_view text) {
  if (const size_t zone = text.find('%'); zone != std::string_view::npos) {
    if (zone + 1 == text.size()) return {"zone must be a non-empty string", {}};
    text = text.substr(0, zone);
  }
  int bytes = 0;
  bool gap = false;
  if (text.starts_with("::")) {
    gap = true;
    text.remove_prefix(2);
    if (text.empty()) return {};
  }
  while (bytes < 16) {
    const size_t digits = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), IsHexDigit) - text.begin());
    if (digits > 4) return {"each group must have 4 or less digits", text};
    if (digits == 0) return {"each colon-separated field must have at least one digit", text};
    if (digits < text.size() && text[digits] == '.') {
      if (!gap && bytes != 12) return {"embedded IPv4 address must replace the final 2 fields of the address", text};
      if (bytes + 4 > 16) {
        return {"too many hex fields to fit an embedded IPv4 at the end of the address", text};
      }
      if (AddressFault fault = InV4(text); !fault.what.empty()) return fault;
      text = {};
      bytes += 4;
      break;
    }
    bytes += 2;
    text.remove_prefix(digits);
    if (text.empty()) break;
    if (text[0] != ':') return {"unexpected character, want colon", text};
    if (text.size() == 1) return {"colon must be followed by more characters", text};
    text.remove_prefix(1);
    if (text[0] != ':') continue;
    if (gap) return {"multiple :: in address", text};
    gap = true;
    text.remove_prefix(1);
    if (text.empty()) break;
  }
  if (!text.empty()) return {"trailing garbage after address", text};
  if (bytes < 16) return {gap ? "" : "address string too short", {}};
  return {gap ? "the :: must expand to at least one field of zeros" : "", {}};
}

std::string NumError(std::string_view function, const std::string& text, std::string_view what) {
  return fmt::format("strconv.{}: parsing {}: {}", function, Quoted(text), what);
}

// A part of a URL with its percent signs; `host`: what may stand in a host's name.
std::string EscapeProblem(std::string_view text, bool host) {
  constexpr std::string_view kHostMarks = "-_.~!$&'()*+,;=:[]<>\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%') {
      const std::string_view three = text.substr(i, 3);
      const bool whole = three.size() == 3 && IsHexDigit(three[1]) && IsHexDigit(three[2]);
      if (!whole || (host && three[1] < '8' && IsDigit(three[1]) && three != "%25")) {
        return "invalid URL escape " + Quoted(three);
      }
      i += 2;
    } else if (host && static_cast<unsigned char>(c) < 0x80 && !IsLetter(c) && !IsDigit(c) &&
               kHostMarks.find(c) == std::string_view::npos) {
      return fmt::format("invalid character {} in host name", Quoted(text.substr(i, 1)));
    }
  }
  return "";
}

bool IsOptionalPort(std::string_view text) {
  return text.empty() || (text[0] == ':' && std::all_of(text.begin() + 1, text.end(), IsDigit));
}

// The host of a URL; `port` gets what stands behind its colon.
std::string HostProblem(std::string_view host, std::string* port) {
  std::string_view behind;
  if (host.starts_with('[')) {
    const size_t close = host.rfind(']');
    if (close == std::string_view::npos) return "missing ']' in host";
    behind = host.substr(close + 1);
  } else if (const size_t colon = host.rfind(':'); colon != std::string_view::npos) {
    behind = host.substr(colon);
  }
  if (!IsOptionalPort(behind)) return fmt::format("invalid port {} after host", Quoted(behind));
  *port = behind.empty() ? "" : std::string(behind.substr(1));
  return EscapeProblem(host, true);
}

std::string UserProblem(std::string_view user) {
  constexpr std::string_view kMarks = "-._:~!$&'()*+,;=%@";
  const bool valid = std::all_of(user.begin(), user.end(), [&](char c) {
    return IsLetter(c) || IsDigit(c) || kMarks.find(c) != std::string_view::npos;
  });
  return valid ? EscapeProblem(user, false) : "net/url: invalid userinfo";
}

std::string UrlProblem(std::string_view text, UrlParts* out) {
  const std::string_view whole = text.substr(0, text.find('#'));
  const std::string_view fragment = whole.size() < text.size() ? text.substr(whole.size() + 1) : std::string_view();
  text = whole;
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); })) {
    return "net/url: invalid control character in URL";
  }
  const size_t end = static_cast<size_t>(
      std::find_if_not(text.begin(), text.end(),
                       [](char c) { return IsLetter(c) || IsDigit(c) || c == '+' || c == '-' || c == '.'; }) -
      text.begin());
  if (end == 0 && text.starts_with(':')) return "missing protocol scheme";
  if (end > 0 && IsLetter(text[0]) && end < text.size() && text[end] == ':') {
    out->scheme = absl::AsciiStrToLower(std::string(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('?'));
  if (!text.starts_with('/')) {
    if (!out->scheme.empty()) return EscapeProblem(fragment, false);
    if (text.substr(0, text.find('/')).find(':') != std::string_view::npos) {
      return "first path segment in URL cannot contain colon";
    }
  }
  if (text.starts_with("//") && (!out->scheme.empty() || !text.starts_with("///"))) {
    text.remove_prefix(2);
    const size_t slash = std::min(text.find('/'), text.size());
    const std::string_view authority = text.substr(0, slash);
    text.remove_prefix(slash);
    const size_t at = authority.rfind('@');
    const bool user = at != std::string_view::npos;
    const std::string_view host = user ? authority.substr(at + 1) : authority;
    if (std::string wrong = HostProblem(host, &out->port); !wrong.empty()) return wrong;
    out->host = host;
    if (user) {
      if (std::string wrong = UserProblem(authority.substr(0, at)); !wrong.empty()) return wrong;
    }
  }
  out->path = text;
  std::string wrong = EscapeProblem(text, false);
  return wrong.empty() ? EscapeProblem(fragment, false) : wrong;
}

// Go's name of what RE2 found (regexp/syntax: ErrorCode).
std::string_view RegexFault(re2::RE2::ErrorCode code) {
  using R = re2::RE2;
  switch (code) {
    case R::ErrorBadEscape:
      return "invalid escape sequence";
    case R::ErrorBadCharClass:
      return "invalid character class";
    case R::ErrorBadCharRange:
      return "invalid character class range";
    case R::ErrorMissingBracket:
      return "missing closing ]";
    case R::ErrorMissingParen:
      return "missing closing )";
    case R::ErrorUnexpectedParen:
      return "unexpected )";
    case R::ErrorTrailingBackslash:
      return "trailing backslash at end of expression";
    case R::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case R::ErrorRepeatSize:
      return "invalid repeat count";
    case R::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case R::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case R::ErrorBadUTF8:
      return "invalid UTF-8";
    case R::ErrorBadNamedCapture:
      return "invalid named capture";
    default:
      return "expression too large";
  }
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = FirstRune(text);
    if (rune.length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    constexpr std::string_view kNamed = "\a\b\f\n\r\t\v", kNames = "abfnrtv";
    const auto c = static_cast<char>(rune.value);
    if (rune.value == '"' || rune.value == '\\') {
      out += '\\';
      out += c;
    } else if (rune.value < 0x80 && kNamed.find(c) != std::string_view::npos) {
      out += '\\';
      out += kNames[kNamed.find(c)];
    } else if (rune.value < 0x20 || rune.value == 0x7f) {
      out += fmt::format("\\x{:02x}", rune.value);
    } else if (rune.value < 0x80 || IsPrint(rune.value)) {
      out += text.substr(0, rune.length);
    } else {
      out += rune.value < 0x10000 ? fmt::format("\\u{:04x}", rune.value) : fmt::format("\\U{:08x}", rune.value);
    }
    text.remove_prefix(rune.length);
  }
  return out + "\"";
}

std::string AddressError(const std::string& text) {
  const size_t mark = text.find_first_of(".:%");
  AddressFault fault{"unable to parse IP", {}};
  if (mark != std::string::npos) {
    if (text[mark] == '.') fault = InV4(text);
    if (text[mark] == ':') fault = InV6(text);
    if (text[mark] == '%') fault = {"missing IPv6 address", {}};
  }
  if (fault.what.empty()) return "";
  const std::string at = fault.at.empty() ? "" : fmt::format(" (at {})", Quoted(fault.at));
  return fmt::format("ParseAddr({}): {}{}", Quoted(text), fault.what, at);
}

std::string PrefixError(const std::string& text) {
  const auto wrong = [&](std::string_view what) {
    return fmt::format("netip.ParsePrefix({}): {}", Quoted(text), what);
  };
  const size_t slash = text.rfind('/');
  if (slash == std::string::npos) return wrong("no '/'");
  const std::string address = text.substr(0, slash), bits = text.substr(slash + 1);
  if (const std::string error = AddressError(address); !error.empty()) return wrong(error);
  const bool v6 = address.find(':') != std::string::npos;
  if (v6 && address.find('%') != std::string::npos) return wrong("IPv6 zones cannot be present in a prefix");
  int64_t number = 0;
  const bool plain = bits.size() <= 1 || (bits[0] >= '1' && bits[0] <= '9');
  if (!plain || !NumberError(bits, &number).empty()) return wrong("bad bits after slash: " + Quoted(bits));
  return number < 0 || number > (v6 ? 128 : 32) ? wrong("prefix length out of range") : "";
}

std::string NumberError(const std::string& text, int64_t* value) {
  std::string_view digits = text;
  const bool minus = digits.starts_with('-');
  if (minus || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), IsDigit)) {
    return NumError("Atoi", text, "invalid syntax");
  }
  uint64_t sum = 0;
  const uint64_t most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (minus ? 1 : 0);
  for (const char c : digits) {
    const auto digit = static_cast<uint64_t>(c - '0');
    if (sum > (most - digit) / 10) return NumError("Atoi", text, "value out of range");
    sum = sum * 10 + digit;
  }
  *value = minus ? static_cast<int64_t>(0 - sum) : static_cast<int64_t>(sum);
  return "";
}

std::string PortTextError(const std::string& text, uint64_t* value) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), IsDigit)) {
    return NumError("ParseUint", text, "invalid syntax");
  }
  uint64_t sum = 0;
  for (const char c : text) {
    sum = sum * 10 + static_cast<uint64_t>(c - '0');
    if (sum > std::numeric_limits<uint32_t>::max()) return NumError("ParseUint", text, "value out of range");
  }
  *value = sum;
  return "";
}

HostPort SplitHostPort(const std::string& text) {
  const auto wrong = [&](std::string_view what) { return HostPort{"", "", fmt::format("address {}: {}", text, what)}; };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong("missing port in address");
  HostPort out;
  size_t open = 0, close = 0;  // from where on no bracket may stand
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string::npos) return wrong("missing ']' in address");
    if (end + 1 == text.size()) return wrong("missing port in address");
    if (end + 1 != colon) return wrong(text[end + 1] == ':' ? "too many colons in address" : "missing port in address");
    out.host = text.substr(1, end - 1);
    open = 1;
    close = end + 1;
  } else {
    out.host = text.substr(0, colon);
    if (out.host.find(':') != std::string::npos) return wrong("too many colons in address");
  }
  if (text.find('[', open) != std::string::npos) return wrong("unexpected '[' in address");
  if (text.find(']', close) != std::string::npos) return wrong("unexpected ']' in address");
  out.port = text.substr(colon + 1);
  return out;
}

UrlParts ParseUrl(const std::string& text) {
  UrlParts out;
  if (const std::string wrong = UrlProblem(text, &out); !wrong.empty()) {
    out.error = fmt::format("parse {}: {}", Quoted(text), wrong);
  }
  return out;
}

std::string RegexError(const std::string& text) {
  const re2::RE2 compiled(text, re2::RE2::Quiet);
  if (compiled.ok()) return "";
  return fmt::format("error parsing regexp: {}: `{}`", RegexFault(compiled.error_code()), compiled.error_arg());
}

}  // namespace wavetank::validation
