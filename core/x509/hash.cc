#include "core/x509/hash.h"

#include "core/x509/openssl.h"
#include "core/x509/x509.h"

namespace wavetank::x509 {

std::string Hash(HashKind kind, std::initializer_list<std::string_view> parts) {
  if (kind == HashKind::kSha256) {
    SHA256_CTX ctx;
    SHA256_Init(&ctx);
    for (std::string_view part : parts) SHA256_Update(&ctx, part.data(), part.size());
    std::string out(SHA256_DIGEST_LENGTH, '\0');
    SHA256_Final(ossl::Bytes(out), &ctx);
    return out;
  }
  SHA512_CTX ctx;
  SHA384_Init(&ctx);
  for (std::string_view part : parts) SHA384_Update(&ctx, part.data(), part.size());
  std::string out(SHA384_DIGEST_LENGTH, '\0');
  SHA384_Final(ossl::Bytes(out), &ctx);
  return out;
}

std::string Hmac(HashKind kind, std::string_view key, std::initializer_list<std::string_view> parts) {
  const size_t block = kind == HashKind::kSha256 ? 64 : 128;
  std::string padded = key.size() > block ? Hash(kind, {key}) : std::string(key);
  padded.resize(block, '\0');
  std::string inner = padded, outer = padded;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  std::string message = inner;
  for (std::string_view part : parts) message.append(part);
  const std::string digest = Hash(kind, {message});
  std::string out = Hash(kind, {outer, digest});
  OPENSSL_cleanse(padded.data(), padded.size());
  OPENSSL_cleanse(inner.data(), inner.size());
  OPENSSL_cleanse(outer.data(), outer.size());
  OPENSSL_cleanse(message.data(), message.size());
  return out;
}

Sha256Digest Sha256(std::string_view bytes) {
  SHA256_CTX ctx;
  SHA256_Init(&ctx);
  SHA256_Update(&ctx, bytes.data(), bytes.size());
  Sha256Digest out;
  SHA256_Final(out.data(), &ctx);
  return out;
}

Fingerprint FingerprintOf(std::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  Fingerprint out = 0;
  for (int i = 0; i < 8; ++i) out = out << 8 | digest[static_cast<size_t>(i)];
  return out;
}

}  // namespace wavetank::x509
