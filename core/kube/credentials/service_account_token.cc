#include "core/kube/credentials/service_account_token.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "core/base/containers/memo.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/x509/hash.h"
#include "core/x509/jws.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace wavetank::kube {
namespace {

absl::Status Refused(std::string_view why) { return absl::UnauthenticatedError(std::string(why)); }

// Seconds since the world began; JWTs count whole seconds.
int64_t Seconds(Time t) { return std::chrono::floor<std::chrono::seconds>(t.time_since_epoch()).count(); }

constexpr char kKubernetesAudience[] = "https://kubernetes.default.svc.cluster.local";

// As JSON.
std::string Quoted(const std::string& text) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  return plain ? '"' + text + '"' : JsonText(nlohmann::json(text));
}

// What the tokens that this thread issued last say, and the key that signed them: mostly their own cluster reads them
// back.
struct Issued {
  std::string key;
  TokenClaims claims;
};
Memo<Issued>& IssuedHere() {
  thread_local Memo<Issued> issued(1024);
  return issued;
}

}  // namespace

TokenAuthority::TokenAuthority(uint64_t seed, std::string_view cluster)
    : issuer_("https://kubernetes.default.svc.cluster.local"),
      key_(x509::Hmac(x509::HashKind::kSha256, "wavetank service account tokens",
                      {std::to_string(seed), "/", cluster})) {}

std::string TokenAuthority::Issue(const TokenClaims& claims) const {
  // Every proxy brings a new one to every call, so the payload is written as it stands.
  const std::vector<std::string> api_server = {kKubernetesAudience};
  std::string audiences;
  for (const std::string& audience : claims.audiences.empty() ? api_server : claims.audiences) {
    if (!audiences.empty()) audiences += ',';
    audiences += Quoted(audience);
  }
  std::string payload = fmt::format(R"({{"aud":[{}],)", audiences);
  const auto seconds = [](Time t) { return kWorldEpochUnixSeconds + Seconds(t); };
  if (claims.expires != claims.issued) payload += fmt::format(R"("exp":{},)", seconds(claims.expires));
  payload += fmt::format(R"("iat":{},"iss":{},"kubernetes.io":{{"namespace":{},)", seconds(claims.issued),
                         Quoted(issuer_), Quoted(claims.ns));
  if (!claims.pod_name.empty()) {
    payload += fmt::format(R"("pod":{{"name":{},"uid":{}}},)", Quoted(claims.pod_name), Quoted(claims.pod_uid));
  }
  payload += fmt::format(R"("serviceaccount":{{"name":{}}}}},"sub":{}}})", Quoted(claims.service_account),
                         Quoted(fmt::format("system:serviceaccount:{}:{}", claims.ns, claims.service_account)));
  static const std::string header = x509::Base64Url(R"({"alg":"HS256","typ":"JWT"})") + ".";
  const std::string text = header + x509::Base64Url(payload);
  std::string token = text + "." + x509::Base64Url(x509::Hmac(x509::HashKind::kSha256, key_, {text}));
  Issued issued = {key_, claims};
  issued.claims.issued = Time(std::chrono::seconds(Seconds(claims.issued)));
  issued.claims.expires = Time(std::chrono::seconds(Seconds(claims.expires)));
  if (claims.audiences.empty()) issued.claims.audiences = api_server;
  IssuedHere().Keep(token, std::move(issued));
  return token;
}

absl::StatusOr<TokenClaims> TokenAuthority::Read(std::string_view token) const {
  if (const Issued* issued = IssuedHere().Find(token); issued != nullptr && issued->key == key_) return issued->claims;
  const size_t first = token.find('.'), last = token.rfind('.');
  if (first == std::string_view::npos || first == last || token.size() > 65536) {
    return Refused("the token is no JSON web token");
  }
  if (x509::Base64Url(x509::Hmac(x509::HashKind::kSha256, key_, {token.substr(0, last)})) != token.substr(last + 1)) {
    return Refused("the token was not issued by this cluster");
  }
  std::string text;
  const std::string_view middle = token.substr(first + 1, last - first - 1);
  absl::WebSafeBase64Unescape(absl::string_view(middle.data(), middle.size()), &text);
  // Signed by this very class, so its form is known.
  const nlohmann::json payload = ParseJson(text);
  if (payload.is_discarded()) return Refused("the token's payload cannot be read");
  TokenClaims out;
  const nlohmann::json& bound = At(payload, "kubernetes.io");
  out.ns = Text(bound, "namespace");
  out.service_account = Text(At(bound, "serviceaccount"), "name");
  out.pod_name = Text(At(bound, "pod"), "name");
  out.pod_uid = Text(At(bound, "pod"), "uid");
  for (const nlohmann::json& audience : Items(At(payload, "aud"))) out.audiences.push_back(TextOf(audience));
  const auto time = [](int64_t unix) { return Time(std::chrono::seconds(unix - kWorldEpochUnixSeconds)); };
  out.issued = time(NumberOf(At(payload, "iat")));
  out.expires = payload.contains("exp") ? time(NumberOf(At(payload, "exp"))) : out.issued;
  return out;
}

absl::StatusOr<TokenClaims> TokenAuthority::Verify(std::string_view token, const std::vector<std::string>& audiences,
                                                   Time now) const {
  absl::StatusOr<TokenClaims> out = Read(token);
  if (!out.ok()) return out;
  if (out->expires != out->issued && now >= out->expires) return Refused("the token has expired");
  const std::vector<std::string> wanted = audiences.empty() ? std::vector<std::string>{kKubernetesAudience} : audiences;
  const bool fits = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& audience) {
    return std::find(out->audiences.begin(), out->audiences.end(), audience) != out->audiences.end();
  });
  if (!fits) return Refused("the token is for another audience");
  return out;
}

}  // namespace wavetank::kube
