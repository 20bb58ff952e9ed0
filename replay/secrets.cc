#include "replay/secrets.h"

#include <openssl/sha.h>

#include <array>
#include <string>

#include "absl/strings/escaping.h"

namespace wavetank::replay {
namespace {

constexpr size_t kShortestBase64 = 48;  // shorter runs hold no key and no token worth the name

bool IsBase64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}
bool IsBase64Url(char c) { return IsBase64(c) || c == '-' || c == '_'; }

// header.payload.signature, the first two being JSON objects in base64url: both begin with eyJ.
bool HoldsJwt(std::string_view text) {
  for (size_t dot = text.find(".eyJ"); dot != text.npos; dot = text.find(".eyJ", dot + 1)) {
    size_t start = dot;
    while (start > 0 && IsBase64Url(text[start - 1])) --start;
    if (text.substr(start, 3) == "eyJ") return true;
  }
  return false;
}

bool Holds(std::string_view text, int depth) {
  if (text.find("PRIVATE KEY-----") != text.npos || HoldsJwt(text)) return true;
  if (depth == 0) return false;
  for (size_t i = 0; i < text.size();) {
    if (!IsBase64(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && IsBase64(text[end])) ++end;
    if (end - i >= kShortestBase64) {
      std::string decoded;
      const size_t whole = (end - i) / 4 * 4;
      if (absl::Base64Unescape(absl::string_view(text.data() + i, whole), &decoded) && Holds(decoded, depth - 1)) {
        return true;
      }
    }
    i = end;
  }
  return false;
}

}  // namespace

bool HoldsSecret(std::string_view text) { return Holds(text, 2); }

nlohmann::json Redacted(const nlohmann::json& value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (!HoldsSecret(text)) return value;
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
    const absl::string_view bytes(reinterpret_cast<const char*>(digest.data()), digest.size());
    return "redacted sha256:" + absl::BytesToHexString(bytes);
  }
  nlohmann::json copy = value;
  if (value.is_structured()) {
    for (auto& child : copy) child = Redacted(child);
  }
  return copy;
}

}  // namespace wavetank::replay
