#include "oracles/envoy/tokens.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>

#include "absl/strings/str_replace.h"
#include "core/base/json_text.h"
#include "core/x509/jws.h"
#include "fmt/format.h"

namespace wavetank::envoydiff {
namespace {

using nlohmann::json;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
using KeyOwner = std::unique_ptr<EVP_PKEY, FreeKey>;

const unsigned char* Raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// Runners of several cases draw from several threads.
EVP_PKEY* KeyNamed(const std::string& name) {
  static std::mutex mutex;
  static auto& keys = *new std::map<std::string, KeyOwner>;
  const std::lock_guard<std::mutex> lock(mutex);
  KeyOwner& key = keys[name];
  if (key != nullptr) return key.get();
  if (name.starts_with("rsa")) key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", size_t{2048}));
  if (name.starts_with("p256")) key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  if (name.starts_with("p384")) key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-384"));
  if (name.starts_with("p521")) key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-521"));
  if (name.starts_with("ed25519")) key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (key == nullptr) throw std::runtime_error(fmt::format("'{}' is no kind of key", name));
  return key.get();
}

std::string Number(EVP_PKEY* key, const char* parameter, size_t size) {
  BIGNUM* number = nullptr;
  EVP_PKEY_get_bn_param(key, parameter, &number);
  std::string out(size == 0 ? static_cast<size_t>(BN_num_bytes(number)) : size, '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size()));
  BN_free(number);
  return out;
}

size_t CoordinateSize(const std::string& name) {
  return name.starts_with("p256") ? 32 : name.starts_with("p384") ? 48 : 66;
}

json PublicKey(const std::string& name) {
  if (name.starts_with("secret")) return {{"kty", "oct"}, {"k", x509::Base64Url(name)}};
  EVP_PKEY* key = KeyNamed(name);
  if (name.starts_with("rsa")) {
    return {{"kty", "RSA"},
            {"n", x509::Base64Url(Number(key, OSSL_PKEY_PARAM_RSA_N, 0))},
            {"e", x509::Base64Url(Number(key, OSSL_PKEY_PARAM_RSA_E, 0))}};
  }
  if (name.starts_with("ed25519")) {
    unsigned char point[32];
    size_t size = sizeof(point);
    EVP_PKEY_get_raw_public_key(key, point, &size);
    return {{"kty", "OKP"}, {"crv", "Ed25519"}, {"x", x509::Base64Url({reinterpret_cast<char*>(point), size})}};
  }
  const size_t size = CoordinateSize(name);
  return {{"kty", "EC"},
          {"crv", size == 32   ? "P-256"
                  : size == 48 ? "P-384"
                               : "P-521"},
          {"x", x509::Base64Url(Number(key, OSSL_PKEY_PARAM_EC_PUB_X, size))},
          {"y", x509::Base64Url(Number(key, OSSL_PKEY_PARAM_EC_PUB_Y, size))}};
}

const EVP_MD* DigestNamed(const std::string& algorithm) {
  if (algorithm.ends_with("384")) return EVP_sha384();
  return algorithm.ends_with("512") ? EVP_sha512() : EVP_sha256();
}

std::string Sign(const std::string& name, const std::string& algorithm, const std::string& data) {
  const EVP_MD* digest = DigestNamed(algorithm);
  if (name.starts_with("secret")) {
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    HMAC(digest, name.data(), static_cast<int>(name.size()), Raw(data), data.size(), out, &size);
    return {reinterpret_cast<char*>(out), size};
  }
  const std::unique_ptr<EVP_MD_CTX, FreeKey> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;
  EVP_DigestSignInit(context.get(), &options, name.starts_with("ed25519") ? nullptr : digest, nullptr, KeyNamed(name));
  if (algorithm.starts_with("PS")) {
    EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
  }
  size_t size = 0;
  EVP_DigestSign(context.get(), nullptr, &size, Raw(data), data.size());
  std::string out(size, '\0');
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size, Raw(data), data.size());
  out.resize(size);
  if (!name.starts_with("p")) return out;
  const unsigned char* from = Raw(out);
  const std::unique_ptr<ECDSA_SIG, FreeKey> pair(d2i_ECDSA_SIG(nullptr, &from, static_cast<long>(out.size())));
  const size_t half = CoordinateSize(name);
  std::string both(2 * half, '\0');
  auto* to = reinterpret_cast<unsigned char*>(both.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(pair.get()), to, static_cast<int>(half));
  BN_bn2binpad(ECDSA_SIG_get0_s(pair.get()), to + half, static_cast<int>(half));
  return both;
}

std::string Mint(const json& token, int64_t now) {
  if (token.contains("text")) return token["text"];
  const std::string algorithm = token.value("alg", "RS256"), key = token.value("key", "rsa");
  json header = {{"alg", algorithm}, {"typ", "JWT"}};
  if (token.contains("kid")) header["kid"] = token["kid"];
  header.merge_patch(token.value("header", json::object()));
  json claims = token.value("claims", json::object());
  for (const char* claim : {"exp", "nbf", "iat"}) {
    const std::string relative = std::string(claim) + "_in";
    if (token.contains(relative)) claims[claim] = now + token[relative].get<int64_t>();
  }
  const std::string data = x509::Base64Url(token.value("header_text", JsonText(header))) + "." +
                           x509::Base64Url(token.value("claims_text", JsonText(claims)));
  std::string signature = Sign(key, algorithm, data);
  if (token.value("spoil", false))
    signature[signature.size() / 2] = static_cast<char>(signature[signature.size() / 2] ^ 1);
  return data + "." + x509::Base64Url(signature);
}

}  // namespace

std::string CaseTokens::Expand(std::string text, int64_t now) const {
  for (const auto& [name, token] : tokens_.items()) {
    const std::string place = "{" + name + "}";
    if (text.find(place) != text.npos) text = absl::StrReplaceAll(text, {{place, Mint(token, now)}});
  }
  return text;
}

void CaseTokens::ExpandKeys(json* resources) const {
  if (resources->is_structured()) {
    for (json& child : *resources) ExpandKeys(&child);
    return;
  }
  if (!resources->is_string()) return;
  std::string text = resources->get<std::string>();
  if (text.find("{jwks ") == text.npos) return;
  for (const auto& [name, keys] : keys_.items()) {
    json set = {{"keys", json::array()}};
    for (const json& key : keys) {
      json jwk = PublicKey(key.at("key").get<std::string>());
      json more = key;
      more.erase("key");
      jwk.merge_patch(more);
      set["keys"].push_back(std::move(jwk));
    }
    text = absl::StrReplaceAll(text, {{"{jwks " + name + "}", JsonText(set)}});
  }
  *resources = text;
}

}  // namespace wavetank::envoydiff
