#include "replay/secrets.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/escaping.h"
#include "core/base/text/token_text.h"

namespace wavetank::replay {
namespace {

constexpr std::string_view kRedacted = "redacted sha256:";
constexpr size_t kShortestBase64 = 48;  // shorter runs hold no key and no token worth the name

bool IsBase64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}
bool IsBase64Url(char c) { return IsBase64(c) || c == '-' || c == '_'; }

bool HoldsJwt(std::string_view text) { return FindToken(text).has_value(); }

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

namespace {

std::string Digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string WithoutTokens(std::string_view text, int depth) {
  std::string out;
  size_t done = 0, word_end = 0;
  for (size_t i = 0; i < text.size();) {
    if (!IsBase64Url(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    std::string_view word;  // what may be a token: runs with dots between, looked at once
    if (i >= word_end) {
      while (end < text.size() && (IsBase64Url(text[end]) || text[end] == '.')) ++end;
      word_end = end;
      word = text.substr(i, end - i);
    }
    std::string instead;
    if (HoldsJwt(word)) {
      instead = "redacted-token-" + Digest(word).substr(0, 16);
    } else if (depth > 0) {
      end = i;
      while (end < text.size() && IsBase64(text[end])) ++end;
      const size_t letters = end - i;
      while (end < text.size() && text[end] == '=' && end - i < letters + 2) ++end;
      std::string decoded;
      if (letters >= kShortestBase64 && absl::Base64Unescape(absl::string_view(text.data() + i, end - i), &decoded) &&
          Holds(decoded, depth - 1)) {
        instead = absl::Base64Escape(WithoutTokens(decoded, depth - 1));
      }
    }
    if (!instead.empty()) {
      out.append(text.substr(done, i - done)).append(instead);
      done = end;
    }
    i = std::max(end, i + 1);
  }
  out.append(text.substr(done));
  return out;
}

}  // namespace

bool IsRedacted(std::string_view text) { return text.starts_with(kRedacted); }

bool HoldsSecret(std::string_view text) { return Holds(text, 2); }

nlohmann::json Redacted(nlohmann::json value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (HoldsSecret(text)) value = std::string(kRedacted) + Digest(text);
  } else if (value.is_structured()) {
    for (auto& child : value) child = Redacted(std::move(child));
  }
  return value;
}

nlohmann::json RedactedWithin(nlohmann::json value) {
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    if (!HoldsSecret(text)) return value;
    std::string without = WithoutTokens(text, 2);
    return HoldsSecret(without) ? Redacted(std::move(value)) : nlohmann::json(std::move(without));
  }
  if (value.is_structured()) {
    for (auto& child : value) child = RedactedWithin(std::move(child));
  }
  return value;
}

}  // namespace wavetank::replay
