// SHA-256/384 and HMAC over OpenSSL's low-level functions (its one-shot SHA256() of version 3.0 costs a provider
// look-up per call).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace wavetank::x509 {

enum class HashKind : unsigned char { kSha256, kSha384 };

std::string Hash(HashKind kind, std::initializer_list<std::string_view> parts);
// RFC 2104.
std::string Hmac(HashKind kind, std::string_view key, std::initializer_list<std::string_view> parts);

}  // namespace wavetank::x509
