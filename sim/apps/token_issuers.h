// The issuers of the tokens (JWT) that clients of a scenario bring: the keys derive from the world's seed, istiods find
// the public halves where a RequestAuthentication says, and neither a key nor a token leaves the world.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"

namespace wavetank::sim {

struct TokenToMint {
  std::string issuer, subject;         // claims iss and sub; no subject: none
  std::vector<std::string> audiences;  // claim aud
  nlohmann::json claims;               // further ones, or null
  Duration lifetime{};                 // claim exp, from then; negative: it has expired
  std::optional<Duration> not_before;  // claim nbf, from then
  std::string signed_by;               // the issuer with whose key it is signed; empty: its own
};

class TokenIssuers {
 public:
  explicit TokenIssuers(uint64_t seed) : seed_(seed) {}

  void Add(std::string name) { names_.insert(std::move(name)); }
  // The public keys of an issuer, as its jwksUri serves them.
  std::string KeySet(const std::string& name) const;

  // Signed with ES256 at `now`. InvalidArgument: no issuer has the name of the one that signs.
  absl::StatusOr<std::string> Mint(const TokenToMint& spec, Time now) const;

 private:
  const uint64_t seed_;
  std::set<std::string> names_;
};

}  // namespace wavetank::sim
