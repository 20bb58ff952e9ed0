#include "core/base/text/go_url.h"

#include <algorithm>
#include <cctype>

#include "core/base/text/percent.h"

namespace wavetank {
namespace {

constexpr std::string_view kAlways = "-_.~", kSubDelimiters = "!$&'()*+,;=", kHex = "0123456789ABCDEF";

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool In(std::string_view set, char c) { return set.find(c) != std::string_view::npos; }

// All but letters, digits and `kept`.
std::string Escape(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    if (IsAlnum(c) || In(kAlways, c) || In(kept, c)) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

// A path or a fragment stays as it is written if that is a way to write it: `valid` may stand there as they are, though
// Go would escape all but `kept` by itself.
std::optional<std::string> Rewritten(std::string_view text, std::string_view kept, std::string_view valid) {
  const std::optional<std::string> plain = PercentDecoded(text);
  if (!plain) return std::nullopt;
  const bool stays = std::all_of(text.begin(), text.end(), [&](char c) {
    return IsAlnum(c) || In(kAlways, c) || In(kept, c) || In(valid, c) || c == '%';
  });
  return stays ? std::string(text) : Escape(*plain, kept);
}

// The scheme's end; npos: there is none; nullopt: a colon with nothing before it.
std::optional<size_t> SchemeEnd(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) continue;
    if (c == ':') return i == 0 ? std::nullopt : std::optional(i);
    if (i == 0 || !(IsAlnum(c) || In("+-.", c))) break;
  }
  return std::string_view::npos;
}

bool IsPort(std::string_view text) {  // ":" and digits, or nothing
  return text.empty() || (text[0] == ':' && std::all_of(text.begin() + 1, text.end(), [](char c) {
                            return std::isdigit(static_cast<unsigned char>(c)) != 0;
                          }));
}

std::optional<std::string> Authority(std::string_view text) {
  const size_t at = text.rfind('@');
  const std::string_view user = at == std::string_view::npos ? std::string_view() : text.substr(0, at + 1);
  for (const char c : user) {
    if (!IsAlnum(c) && !In(kAlways, c) && !In(kSubDelimiters, c) && !In(":%@", c)) return std::nullopt;
  }
  if (!PercentDecoded(user)) return std::nullopt;
  const std::string_view host = text.substr(user.size());
  const bool brackets = host.starts_with('[');
  const size_t end = brackets ? host.rfind(']') : host.rfind(':');
  if (brackets && end == std::string_view::npos) return std::nullopt;
  if (end != std::string_view::npos && !IsPort(host.substr(brackets ? end + 1 : end))) return std::nullopt;
  constexpr std::string_view kKept = "!$&'()*+,;=:[]<>\"";
  for (const char c : host) {
    const bool ascii = static_cast<unsigned char>(c) < 0x80;
    if (ascii && !IsAlnum(c) && !In(kAlways, c) && !In(kKept, c)) return std::nullopt;
  }
  return std::string(user) + Escape(host, kKept);
}

}  // namespace

std::optional<GoUrl> ParseGoUrl(std::string_view text) {
  const size_t hash = text.find('#');
  std::string_view rest = text.substr(0, hash);
  std::string fragment;
  if (hash != std::string_view::npos && hash + 1 < text.size()) {
    const auto written = Rewritten(text.substr(hash + 1), "$&+,/:;=?@!()*", "'[]");
    if (!written) return std::nullopt;
    fragment = "#" + *written;
  }
  if (std::any_of(rest.begin(), rest.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
    return std::nullopt;
  }
  const std::optional<size_t> colon = SchemeEnd(rest);
  if (!colon) return std::nullopt;
  GoUrl out;
  if (*colon != std::string_view::npos) {
    out.scheme = rest.substr(0, *colon);
    std::transform(out.scheme.begin(), out.scheme.end(), out.scheme.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    rest.remove_prefix(*colon + 1);
  }
  const size_t question = rest.find('?');
  const std::string tail =
      (question == std::string_view::npos ? std::string() : std::string(rest.substr(question))) + fragment;
  rest = rest.substr(0, question);
  if (!rest.starts_with('/')) {
    if (!out.scheme.empty()) {
      out.rest = std::string(rest) + tail;
      return out;
    }
    const std::string_view first = rest.substr(0, rest.find('/'));
    if (first.find(':') != std::string_view::npos) return std::nullopt;
  }
  bool no_host = false;
  if (rest.starts_with("//") && (!out.scheme.empty() || !rest.starts_with("///"))) {
    rest.remove_prefix(2);
    const size_t slash = rest.find('/');
    const auto authority = Authority(rest.substr(0, slash));
    if (!authority) return std::nullopt;
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
    out.rest = *authority;
  } else {
    no_host = !out.scheme.empty() && rest.starts_with('/');
  }
  const auto path = Rewritten(rest, "$&+,/:;=@", "!'()*[]");
  if (!path) return std::nullopt;
  if (!no_host && (!out.rest.empty() || !path->empty())) out.rest.insert(0, "//");
  out.rest += *path + tail;
  return out;
}

std::string CleanPath(std::string_view path) {
  const bool folder = path.ends_with('/');
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string out;
  for (const std::string_view part : parts) out.append("/").append(part);
  return folder || out.empty() ? out + "/" : out;
}

}  // namespace wavetank
