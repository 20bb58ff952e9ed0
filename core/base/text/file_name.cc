#include "core/base/text/file_name.h"

#include <fmt/format.h>

#include <cstdint>

namespace wavetank {
namespace {

// FNV-1a.
uint64_t Digest(std::string_view text) {
  uint64_t out = 0xcbf29ce484222325;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return out;
}

}  // namespace

std::string FileName(std::string_view name) {
  // NAME_MAX of Linux is 255 bytes, some of which are the ending's.
  constexpr size_t kMostBytes = 200, kKept = 160;
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool hidden = c == '.' && out.empty();
    if (c == '/' || c == '%' || byte < 0x20 || byte == 0x7f || hidden) {
      out += fmt::format("%{:02X}", byte);
    } else {
      out += c;
    }
  }
  if (out.empty()) return "%";
  if (out.size() <= kMostBytes) return out;
  size_t kept = kKept;
  while ((static_cast<unsigned char>(out[kept]) & 0xc0) == 0x80) --kept;  // within a letter of several bytes
  return fmt::format("{}%{:016x}", out.substr(0, kept), Digest(name));
}

}  // namespace wavetank
