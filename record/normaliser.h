// What of an object a recording keeps: the fields that a mesh's behaviour follows from, without credentials.
//
// Fault model: objects come from any client that may write to the cluster. What is kept has the types that the
// simulator relies on; what has not is left out. Nothing that is or may be a credential is kept: private keys, tokens,
// data of Secrets, environment variables of applications, and values whose names say what they are. In their place
// stands a digest of them, so that a change of one remains a change.
#pragma once

#include <string>
#include <string_view>

#include "core/kube/object.h"

namespace wavetank::record {

struct NormaliserOptions {
  bool keep_secrets = false;
  std::string system_namespace = "istio-system";
};

// What a recorded object does to a world: no input at all for what a mesh does not see, and more than one at most for
// Secrets.
struct Normalised {
  std::string kind;     // of the input: "apply", "cacerts"; empty: nothing of it is kept
  nlohmann::json body;  // of the input, without its cluster
};

// Pure: equal objects give equal results.
Normalised Normalise(const kube::Object& object, const NormaliserOptions& options);

// "sha256-<64 hexadecimal digits>"
std::string DigestOf(std::string_view secret);

// The remote Secret's text for a simulated istiod: a kubeconfig with the same server that is refused for the same kind
// of reason, if it is refused. Its token is the digest of the whole text, so that a rotation stays one.
std::string ServerOnly(const std::string& cluster, const std::string& kubeconfig);

}  // namespace wavetank::record
