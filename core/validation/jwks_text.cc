#include "core/validation/jwks_text.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "core/validation/go_text.h"
#include "fmt/format.h"

namespace wavetank::validation {
namespace {

using nlohmann::json;

// A number in base64 of a URL or of MIME, with or without padding.
bool IsBase64(const std::string& text) {
  std::string bytes;
  return absl::WebSafeBase64Unescape(text, &bytes) || absl::Base64Unescape(text, &bytes);
}

std::string_view GoKind(const json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "bool";
  if (value.is_array()) return "array";
  return value.is_number() ? "number" : "object";
}

// A field of a key that is bytes; `where` names it.
std::string BytesProblem(const json& key, const char* field) {
  const json& value = At(key, field);
  if (value.is_null() && !key.contains(field)) return "";
  const std::string begin = fmt::format("failed to decode value for key {}: ", field);
  if (!value.is_string()) {
    return begin + fmt::format("error reading next value: json: cannot unmarshal {} into Go value of type string",
                               GoKind(value));
  }
  return IsBase64(value.get_ref<const std::string&>()) ? "" : begin + "expected base64 encoded []byte (string)";
}

std::string KeyProblem(const json& key) {
  if (!key.is_object() && !key.is_null()) {
    return fmt::format(
        "failed to unmarshal JSON into key hint: json: cannot unmarshal {} into Go value of type struct {{ Kty string "
        "\"json:\\\"kty\\\"\"; D json.RawMessage \"json:\\\"d\\\"\" }}",
        GoKind(key));
  }
  const std::string type = Text(key, "kty");
  const bool whole = key.contains("d");
  std::string_view go_type;
  std::initializer_list<const char*> needed;
  if (type == "RSA") {
    go_type = whole ? "*jwk.rsaPrivateKey" : "*jwk.rsaPublicKey";
    static constexpr std::initializer_list<const char*> kRsa = {"e", "n"}, kRsaPrivate = {"d", "e", "n"};
    needed = whole ? kRsaPrivate : kRsa;
  } else if (type == "EC") {
    go_type = whole ? "*jwk.ecdsaPrivateKey" : "*jwk.ecdsaPublicKey";
    static constexpr std::initializer_list<const char*> kEc = {"crv", "x", "y"}, kEcPrivate = {"crv", "d", "x", "y"};
    needed = whole ? kEcPrivate : kEc;
  } else if (type == "OKP") {
    go_type = whole ? "*jwk.okpPrivateKey" : "*jwk.okpPublicKey";
    static constexpr std::initializer_list<const char*> kOkp = {"crv", "x"}, kOkpPrivate = {"crv", "d", "x"};
    needed = whole ? kOkpPrivate : kOkp;
  } else if (type == "oct") {
    go_type = "*jwk.symmetricKey";
    static constexpr std::initializer_list<const char*> kOct = {"k"};
    needed = kOct;
  } else {
    return fmt::format("invalid key type from JSON ({})", type);
  }
  const std::string begin = fmt::format("failed to unmarshal JSON into key ({}): ", go_type);
  for (const char* field : needed) {
    if (std::string_view(field) == "crv") continue;
    if (const std::string wrong = BytesProblem(key, field); !wrong.empty()) return begin + wrong;
  }
  for (const char* field : needed) {
    if (!key.contains(field)) return begin + fmt::format("required field {} is missing", field);
  }
  return "";
}

}  // namespace

std::string KeySetError(const std::string& text) {
  constexpr std::string_view kBegin = "failed to unmarshal JWK set: ";
  const json set = ParseJson(text);
  if (set.is_discarded()) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return fmt::format("{}EOF", kBegin);
    constexpr std::string_view kBegins = "{[\"-0123456789tfn";
    if (kBegins.find(text[first]) == std::string_view::npos) {
      return fmt::format("{}invalid character {} looking for beginning of value", kBegin,
                         "'" + Quoted(text.substr(first, 1)).substr(1, 1) + "'");
    }
    return fmt::format("{}unexpected EOF", kBegin);
  }
  if (!set.is_object()) {
    if (set.is_array()) return fmt::format("{}expected '{{', but got '['", kBegin);
    if (set.is_string()) return fmt::format("{}failed to decode value for key {}: EOF", kBegin, Quoted(TextOf(set)));
    return fmt::format("{}error reading token: EOF", kBegin);
  }
  if (!set.contains("keys")) {
    const std::string wrong = KeyProblem(set);
    return wrong.empty() ? "" : fmt::format("{}failed to parse sole key in key set: {}", kBegin, wrong);
  }
  if (!At(set, "keys").is_array() && !At(set, "keys").is_null()) {
    return fmt::format("{}failed to decode \"keys\": json: cannot unmarshal {} into Go value of type []json.RawMessage",
                       kBegin, GoKind(At(set, "keys")));
  }
  size_t number = 0;
  for (const json& key : Items(At(set, "keys"))) {
    if (const std::string wrong = KeyProblem(key); !wrong.empty()) {
      return fmt::format("{}failed to decode key #{} in \"keys\": {}", kBegin, number, wrong);
    }
    ++number;
  }
  return "";
}

}  // namespace wavetank::validation
