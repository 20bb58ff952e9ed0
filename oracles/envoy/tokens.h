// The JSON Web Tokens of a case, and the keys that sign them: drawn anew in every process, never written anywhere.
//
//   "keys": {"k": [{"key": "rsa", "kid": "one", "alg": "RS256", ...}, ...]}   a key set, in resources "{jwks k}"
//   "tokens": {"t": {"key": "rsa", "alg": "RS256", "kid": "one", "claims": {...}, "exp_in": 3600, "nbf_in": -5,
//                    "header": {...}, "spoil": true}, "u": {"text": "a.b.c"}}
//                                                      a token, in a request's path or headers "{t}"
// The name of a key begins with its kind: rsa, p256, p384, p521, ed25519, secret. Times are seconds from the present of
// the process that runs the case; `header` and further members of a JWK are merged in; `spoil` breaks the signature;
// `header_text` and `claims_text` replace the JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "nlohmann/json.hpp"

namespace wavetank::envoydiff {

class CaseTokens {
 public:
  CaseTokens() = default;
  CaseTokens(nlohmann::json keys, nlohmann::json tokens) : keys_(std::move(keys)), tokens_(std::move(tokens)) {}

  // `text` with tokens in place of their names; `now`: seconds since 1970.
  std::string Expand(std::string text, int64_t now) const;
  // Every "{jwks NAME}" within, likewise.
  void ExpandKeys(nlohmann::json* resources) const;

 private:
  nlohmann::json keys_ = nlohmann::json::object(), tokens_ = nlohmann::json::object();
};

}  // namespace wavetank::envoydiff
