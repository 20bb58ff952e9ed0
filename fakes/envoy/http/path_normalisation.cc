#include "fakes/envoy/http/path_normalisation.h"

#include <algorithm>
#include <cctype>

namespace wavetank::envoysim {
namespace {

int DigitOfEscape(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte behind "%XX" at `at`; -1: there is none.
int EscapedAt(std::string_view text, size_t at) {
  if (text[at] != '%' || at + 2 >= text.size()) return -1;
  const int high = DigitOfEscape(text[at + 1]), low = DigitOfEscape(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool Unreserved(int c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~'; }

// Those that a path carries escaped only.
bool MustBeEscaped(unsigned char c) {
  return c <= 0x20 || c >= 0x7f || std::string_view("\"<>`{}").find(static_cast<char>(c)) != std::string_view::npos;
}

bool UnescapeSlashes(std::string* path) {
  bool found = false;
  std::string out;
  for (size_t i = 0; i < path->size(); ++i) {
    const int escaped = EscapedAt(*path, i);
    if (escaped == '/' || escaped == '\\') {
      out.push_back(static_cast<char>(escaped));
      found = true;
      i += 2;
    } else {
      out.push_back((*path)[i]);
    }
  }
  *path = out;
  return found;
}

void MergeSlashes(std::string* path) {
  path->erase(std::unique(path->begin(), path->end(), [](char a, char b) { return a == '/' && b == '/'; }),
              path->end());
}

}  // namespace

bool CanonicalPath(std::string* path) {
  if (path->empty() || (path->front() != '/' && path->front() != '\\')) return false;
  std::string plain;
  for (size_t i = 0; i < path->size(); ++i) {
    const auto c = static_cast<unsigned char>((*path)[i]);
    const int escaped = EscapedAt(*path, i);
    if (escaped == 0) return false;
    if (escaped > 0) {
      if (Unreserved(escaped)) {
        plain.push_back(static_cast<char>(escaped));
      } else {
        plain.append(*path, i, 3);
      }
      i += 2;
    } else if (c == '\\') {
      plain.push_back('/');
    } else if (MustBeEscaped(c)) {
      constexpr char kHex[] = "0123456789ABCDEF";
      for (const char digit : {'%', kHex[c >> 4], kHex[c & 15]}) plain.push_back(digit);
    } else {
      plain.push_back(static_cast<char>(c));
    }
  }
  std::string out;
  for (size_t at = 0; at < plain.size();) {  // at a slash
    const size_t end = std::min(plain.find('/', at + 1), plain.size());
    const std::string_view segment = std::string_view(plain).substr(at + 1, end - at - 1);
    const bool last = end == plain.size();
    if (segment == "..") out.resize(std::min(out.rfind('/'), out.size()));
    if (segment == "." || segment == "..") {
      if (last) out.push_back('/');
    } else {
      out.append(plain, at, end - at);
    }
    at = end;
  }
  *path = out.empty() ? "/" : out;
  return true;
}

PathNormalisation::Verdict PathNormalisation::Apply(std::string* path) const {
  const size_t end = std::min(path->find_first_of("?#"), path->size());
  std::string plain = path->substr(0, end);
  bool redirect = false;
  if (escaped != EscapedSlashes::kKeep && UnescapeSlashes(&plain)) {
    if (escaped == EscapedSlashes::kReject) return Verdict::kReject;
    redirect = escaped == EscapedSlashes::kRedirect;
  }
  if (normalise && !CanonicalPath(&plain)) return Verdict::kReject;
  if (merge_slashes) MergeSlashes(&plain);
  *path = plain + path->substr(end);
  return redirect ? Verdict::kRedirect : Verdict::kGoOn;
}

}  // namespace wavetank::envoysim
