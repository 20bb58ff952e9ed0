// What is a credential: the one list that logs, recordings, printed configuration and messages go by. Private keys and
// JSON Web Tokens are known by their looks (replay/secrets.h); passwords, API keys and opaque tokens are not, and are
// known by where they stand: data of Secrets, variables, headers, fields and keys by name, users and queries of URLs.
//
// A credential is replaced by a stand-in: letters that follow from it, as many as it has, so that equal ones stay
// equal, different ones different, and all sizes what they were. So a log replays to the same digest without it.
#pragma once

#include <string>
#include <string_view>

#include "nlohmann/json.hpp"

namespace wavetank::kube {

// Whether what stands under this name is a credential: a field or a header ("password", "clientSecret", "x-api-key",
// "Authorization"), a variable or a key of a ConfigMap ("DB_PASSWORD", "github.token").
bool NamesCredential(std::string_view name);

// Of as many bytes. What is shorter than four bytes, or a stand-in already, is left as it is.
std::string StandIn(std::string_view secret);

// A text with stand-ins for the credentials in it: `password: x`, `"token": "x"`, `API_KEY=x`, `Authorization: Bearer
// x`, `https://user:x@host/?token=x`, and the same in a kubeconfig. Everything else stays, byte for byte. O(text).
std::string SealedText(std::string_view text);

// The same for a JSON value: an object of Kubernetes, a patch of one, an input of a world, or anything that holds such.
nlohmann::json Sealed(nlohmann::json value);

}  // namespace wavetank::kube
