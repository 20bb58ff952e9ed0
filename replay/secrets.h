// What must never reach an event log: private keys and tokens.
#pragma once

#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::replay {

// True if `text` holds a PEM private key or what looks like a signed JWT, as it is or in base64 (twice at most: a
// kubeconfig inside a Secret's data holds its certificates in base64 again). O(size).
bool HoldsSecret(std::string_view text);

// `value` with every string that holds a secret replaced by "redacted sha256:<digest>": still the same for the same
// secret, so that a change of it remains a change.
nlohmann::json Redacted(nlohmann::json value);

// As Redacted(), but of a string only the tokens are replaced ("redacted-token-<digest>"), also inside base64, so that
// a kubeconfig stays one and a replay connects where the run did. A string with a private key is replaced whole.
nlohmann::json RedactedWithin(nlohmann::json value);

// Whether Redacted() wrote this.
bool IsRedacted(std::string_view text);

}  // namespace wavetank::replay
