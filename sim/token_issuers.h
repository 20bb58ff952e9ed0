// Who signs the tokens (JWT) that clients of a scenario bring: the keys derive from the world's seed, istiods find the
// public halves where a RequestAuthentication says, and neither a key nor a token leaves the world.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/model/environment.h"
#include "nlohmann/json_fwd.hpp"

namespace wavetank::sim {

class TokenIssuers final : public pilot::JwksResolver {
 public:
  explicit TokenIssuers(uint64_t seed) : seed_(seed) {}

  // `uri`: where its keys are served; empty: where OpenID discovery says.
  void Add(std::string name, std::string uri) { uris_[std::move(name)] = std::move(uri); }
  std::optional<std::string> KeySet(const std::string& issuer, const std::string& uri) override;

  // A token as `spec` wants it, signed with ES256 at `now`:
  //   {issuer, subject?, audiences?, claims?, lifetimeNs, notBeforeNs?, signedBy?}   signedBy: with that issuer's key
  absl::StatusOr<std::string> Mint(const nlohmann::json& spec, Time now) const;

 private:
  const uint64_t seed_;
  std::map<std::string, std::string> uris_;  // by name
};

}  // namespace wavetank::sim
