#include "core/kube/credentials/sealing.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/base/text/token_text.h"
#include "core/x509/hash.h"

namespace wavetank::kube {
namespace {

using nlohmann::json;

constexpr size_t kShortest = 4;
constexpr std::string_view kMark = "r~";  // begins every stand-in

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsLetter(char c) { return (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9'); }
bool IsNameChar(char c) { return IsLetter(c) || c == '_' || c == '-' || c == '.'; }

// Letters and digits alone, in lower case: "X-Api-Key", "api_key" and "apiKey" are one name.
std::string Plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (IsLetter(c)) out += Lower(c);
  }
  return out;
}

bool EndsWithAny(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return text.ends_with(end); });
}

// A stand-in, or what access logs ("redacted") and event logs (replay/secrets.h) put in the place of tokens and keys.
bool IsReplaced(std::string_view text) {
  if (text == "redacted" || text.starts_with("redacted ") || text.starts_with("redacted-")) return true;
  return text.starts_with(kMark) && std::all_of(text.begin() + kMark.size(), text.end(), IsLetter);
}

bool IsText(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return c == '\n' || c == '\t' || c == '\r' || static_cast<unsigned char>(c) >= ' ';
  });
}

// What is public in a Secret, or known by its looks and somebody else's business.
bool IsPem(std::string_view text) { return text.find("-----BEGIN ") != text.npos; }

// "Bearer abc": the scheme is none. Of a value of which the whole is a credential.
std::string SealedValue(std::string_view value) {
  // Known by their looks, and replaced already or elsewhere.
  if (IsReplaced(value) || FindToken(value)) return std::string(value);
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token ", "ApiKey "}) {
    if (value.starts_with(scheme)) return std::string(scheme) + StandIn(value.substr(scheme.size()));
  }
  return StandIn(value);
}

// --- texts

// Where a value that begins at `at` ends: a quoted one at its quote, another one at what cannot be part of it.
struct Place {
  size_t begin, end;
};
Place ValueAt(std::string_view text, size_t at, bool assignment) {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    const char quote = text[at];
    size_t end = at + 1;
    while (end < text.size() && text[end] != quote && text[end] != '\n')
      end += text[end] == '\\' && quote == '"' ? 2 : 1;
    return {at + 1, std::min(end, text.size())};
  }
  size_t end = at;
  const std::string_view ends = assignment ? std::string_view(" \t\r\n&;,\"'}])#") : std::string_view("\r\n,}]\"'");
  while (end < text.size() && ends.find(text[end]) == ends.npos) ++end;
  while (end > at && text[end - 1] == ' ') --end;
  return {at, end};
}

// Values that describe a credential, or that are none.
bool Describes(std::string_view value) {
  static constexpr std::string_view kWords[] = {"true", "false", "null", "none", "|", "|-", ">", ">-"};
  return std::find(std::begin(kWords), std::end(kWords), value) != std::end(kWords) || value.find_first_of("{[&*") == 0;
}

// Stand-ins after "scheme://user:" and before '@'.
void SealUserOfUrl(std::string& text) {
  for (size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const size_t end = text.find_first_of("/?# \t\r\n\"'<>", at + 3);
    const std::string_view authority =
        std::string_view(text).substr(at + 3, end == std::string::npos ? end : end - at - 3);
    const size_t host = authority.rfind('@');
    if (host == authority.npos) continue;
    const size_t colon = authority.find(':');
    const size_t from = colon < host ? colon + 1 : 0;  // a user alone may be a token
    text.replace(at + 3 + from, host - from, StandIn(authority.substr(from, host - from)));
  }
}

// A line of indentation alone goes on with a block that `name: |` began.
void SealBlock(std::string& text, size_t line_begin, size_t line_end) {
  const size_t indent = text.find_first_not_of(" -", line_begin) - line_begin;
  for (size_t at = line_end + 1; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t first = text.find_first_not_of(' ', at);
    if (first < end) {
      if (first - at <= indent) return;
      text.replace(first, end - first, StandIn(std::string_view(text).substr(first, end - first)));
    }
    at = end + 1;
  }
}

// --- JSON

std::string SealedBytes(std::string_view bytes) {
  if (IsPem(bytes) || IsReplaced(bytes) || FindToken(bytes)) return std::string(bytes);
  // A kubeconfig, a Docker configuration: what is no credential in them decides.
  const std::string sealed = SealedText(bytes);
  if (IsText(bytes) && (bytes.find("clusters:") != bytes.npos || bytes.find('{') == 0)) return sealed;
  return StandIn(bytes);
}

std::string SealedBase64(const std::string& text) {
  if (IsReplaced(text)) return text;
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes)) return StandIn(text);
  return absl::Base64Escape(SealedBytes(bytes));
}

enum class What : unsigned char { kAnything, kSecretData, kSecretText, kCredential };

void Seal(json& value, What what);

bool HasNameAndValue(const json& in, std::string* name, std::string* member) {
  for (const char* of_name : {"name", "key", "headerName"}) {
    for (const char* of_value : {"value", "headerValue", "exactMatch", "exact_match"}) {
      if (!At(in, of_name).is_string() || !At(in, of_value).is_string()) continue;
      *name = Text(in, of_name);
      *member = of_value;
      return true;
    }
  }
  return false;
}

// A JSON patch's operation, or a request, by the path that it names.
bool IsOfSecrets(std::string_view path) { return path.find("/secrets/") != path.npos || path.ends_with("/secrets"); }

void SealObject(json& object, What what) {
  const bool secret = At(object, "kind") == "Secret" || IsOfSecrets(Text(object, "path"));
  std::string name, member;
  if (HasNameAndValue(object, &name, &member) && NamesCredential(name)) Seal(object[member], What::kCredential);
  for (auto& [key, child] : object.items()) {
    What inner = what;
    if (what == What::kAnything) {
      const bool scalar_or_match = !child.is_object() || !At(child, "exact").is_null() || !At(child, "value").is_null();
      if (secret && key == "data") {
        inner = What::kSecretData;
      } else if (secret && key == "stringData") {
        inner = What::kSecretText;
      } else if (secret && (key == "patch" || key == "body" || key == "object") && child.is_object()) {
        // What is written about a Secret need not say that it is one.
        if (const auto it = child.find("data"); it != child.end()) Seal(*it, What::kSecretData);
        if (const auto it = child.find("stringData"); it != child.end()) Seal(*it, What::kSecretText);
      } else if (secret && key == "body" && child.is_array()) {
        // A JSON patch: what its operations put there.
        for (json& operation : child) {
          if (operation.is_object() && operation.contains("value")) Seal(operation["value"], What::kSecretData);
        }
      } else if (NamesCredential(key) && scalar_or_match) {
        inner = What::kCredential;
      }
    }
    if (what == What::kCredential && (key == "prefix" || key == "regex" || key == "suffix")) continue;
    Seal(child, inner);
  }
}

void Seal(json& value, What what) {
  if (value.is_object()) return SealObject(value, what);
  if (value.is_array()) {
    for (json& item : value) Seal(item, what);
    return;
  }
  if (!value.is_string()) return;
  std::string& text = value.get_ref<std::string&>();
  switch (what) {
    case What::kSecretData:
      text = SealedBase64(text);
      return;
    case What::kSecretText:
      text = SealedBytes(text);
      return;
    case What::kCredential:
      if (!IsPem(text)) text = SealedValue(text);
      return;
    case What::kAnything:
      text = SealedText(text);
      return;
  }
}

}  // namespace

bool NamesCredential(std::string_view name) {
  const std::string plain = Plain(name);
  // What describes or mounts a token, or goes on with a list.
  if (plain == "serviceaccounttoken" || plain == "automountserviceaccounttoken" || plain == "nexttoken") return false;
  static constexpr std::string_view kWhole[] = {"authorization", "proxyauthorization", "auth", "credentials", "secret"};
  if (std::find(std::begin(kWhole), std::end(kWhole), plain) != std::end(kWhole)) return true;
  if (plain.find("password") != plain.npos || plain.find("passwd") != plain.npos) return true;
  if (EndsWithAny(plain, {"passphrase", "token", "apikey", "secretkey", "accesskey", "clientsecret", "authkey",
                          "credential", "signingkey", "encryptionkey", "apisecret", "appsecret", "sharedsecret",
                          "connectionstring", "secretkeybase", "webhooksecret"})) {
    return true;
  }
  // DB_PASS, github.secret, SSH_KEY; but not NO_BYPASS, nor key.
  const size_t last = name.find_last_of("_-.");
  if (last == name.npos) return false;
  const std::string word = Plain(name.substr(last));
  const bool variable = std::none_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return word == "secret" || word == "pass" || word == "pwd" || (variable && word == "key");
}

std::string StandIn(std::string_view secret) {
  if (secret.size() < kShortest || IsReplaced(secret)) return std::string(secret);
  static constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string out(kMark);
  for (uint32_t block = 0; out.size() < secret.size(); ++block) {
    const std::string digest =
        x509::Hmac(x509::HashKind::kSha256, "wavetank stand-in", {std::to_string(block), ":", secret});
    for (const char byte : digest) {
      if (out.size() < secret.size()) out += kLetters[static_cast<unsigned char>(byte) % kLetters.size()];
    }
  }
  return out;
}

std::string SealedText(std::string_view text) {
  std::string out(text);
  if (IsPem(text) && text.find("clusters:") == text.npos) return out;
  for (size_t at = 0; at < out.size();) {
    if (!IsNameChar(out[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < out.size() && IsNameChar(out[end])) ++end;
    const std::string_view name = std::string_view(out).substr(at, end - at);
    size_t sign = end;
    if (sign < out.size() && (out[sign] == '"' || out[sign] == '\'')) ++sign;
    while (sign < out.size() && out[sign] == ' ') ++sign;
    const size_t next = end;
    if (sign >= out.size() || (out[sign] != ':' && out[sign] != '=') || name.size() > 128 || !NamesCredential(name)) {
      at = next;
      continue;
    }
    const bool assignment = out[sign] == '=';
    size_t from = sign + 1;
    // "a:b" in a word is no field of YAML; "token=x" may be anything.
    if (!assignment && from < out.size() && out[from] != ' ' && out[from] != '"' && out[from] != '\n' &&
        out[sign - 1] != '"') {
      at = next;
      continue;
    }
    while (from < out.size() && out[from] == ' ') ++from;
    const Place place = ValueAt(out, from, assignment);
    const std::string value = out.substr(place.begin, place.end - place.begin);
    if (value.starts_with('|') || value.starts_with('>')) {
      const size_t line = out.rfind('\n', at);
      SealBlock(out, line == std::string::npos ? 0 : line + 1, std::min(out.find('\n', from), out.size()));
    } else if (!Describes(value)) {
      out.replace(place.begin, value.size(), SealedValue(value));
    }
    at = place.end;
  }
  SealUserOfUrl(out);
  return out;
}

json Sealed(json value) {
  Seal(value, What::kAnything);
  return value;
}

}  // namespace wavetank::kube
