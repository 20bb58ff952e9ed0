// The issuers of the tokens (JWT) that clients of a scenario bring: the keys derive from the world's seed, istiods find
// the public halves where a RequestAuthentication says, and neither a key nor a token leaves the world.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "nlohmann/json_fwd.hpp"

namespace wavetank::sim {

class TokenIssuers {
 public:
  explicit TokenIssuers(uint64_t seed) : seed_(seed) {}

  void Add(std::string name) { names_.insert(std::move(name)); }
  // The public keys of an issuer, as its jwksUri serves them.
  std::string KeySet(const std::string& name) const;

  // A token as `spec` wants it, signed with ES256 at `now`:
  //   {issuer, subject?, audiences?, claims?, lifetimeNs, notBeforeNs?, signedBy?}   signedBy: with that issuer's key
  absl::StatusOr<std::string> Mint(const nlohmann::json& spec, Time now) const;

 private:
  const uint64_t seed_;
  std::set<std::string> names_;
};

}  // namespace wavetank::sim
