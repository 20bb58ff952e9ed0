// What the world outside of the clusters answers: DNS, and the URLs at which istiods look for keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/ip.h"
#include "core/base/time.h"
#include "nlohmann/json.hpp"
#include "sim/inputs/input.h"

namespace wavetank::sim::inputs {

// What DNS answers for a name; no addresses: the name is unknown.
struct SetDns {
  static constexpr std::string_view kKind = "dns";
  std::string name;
  std::vector<std::string> addresses;
  std::string alias = {};                 // another name instead (CNAME)
  std::vector<std::string> failing = {};  // types of queries that get no answer: A, AAAA
  std::optional<Duration> ttl = {};       // DnsRecord

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// What istiods find at a jwksUri.
struct ServeKeySet {
  static constexpr std::string_view kKind = "keySet";
  std::string uri;
  nlohmann::json keys;  // a key set, as JSON or as its text; null: no server answers there
  std::string issuer;   // whose OpenID discovery names the URI; may be empty

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

// An issuer of tokens (sim/apps/token_issuers.h), whose keys are served at `jwks_uri`, or below its name.
struct AddIssuer {
  static constexpr std::string_view kKind = "issuer";
  std::string name, jwks_uri;

  void Fields(FieldVisitor& visitor);
  absl::Status Apply(InputTarget& target) const;
};

}  // namespace wavetank::sim::inputs
