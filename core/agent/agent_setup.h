// What pilot-agent looks for before it starts: the roots by which it believes istiod and the CA, the token that it
// shows, the key that it is to make (istiod: pkg/istio-agent/agent.go, pilot/cmd/pilot-agent/options/security.go,
// security/pkg/pki/util/generate_csr.go).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/agent/files.h"
#include "core/inject/agent_variables.h"

namespace wavetank::agent {

enum class RootsOf : uint8_t { kXds, kCa };

// The file with the roots for that connection; empty: the system's own. InvalidArgument: it is not there, which ends
// the agent. `mounted`: FILE_MOUNTED_CERTS.
absl::StatusOr<std::string> FindRoots(const pilot::AgentVariables& variables, Files& files, RootsOf of, bool mounted);

// What of the variables excludes each other; OK if nothing does.
absl::Status CheckIdentitySources(const pilot::AgentVariables& variables, bool mounted);

// The file with the workload's token, by JWT_POLICY; empty: none is shown.
std::string_view TokenPath(const pilot::AgentVariables& variables);
inline constexpr std::string_view kThirdPartyToken = "./var/run/secrets/tokens/istio-token";
inline constexpr std::string_view kFirstPartyToken = "/var/run/secrets/kubernetes.io/serviceaccount/token";

// WORKLOAD_RSA_KEY_SIZE, ECC_SIGNATURE_ALGORITHM and ECC_CURVE.
struct KeyRequest {
  std::string ecc_algorithm;  // empty: RSA
  std::string curve = "P256";
  int64_t rsa_bits = 2048;
};
KeyRequest ReadKeyRequest(const pilot::AgentVariables& variables);
// InvalidArgument: no such key is made, so that there is no certificate.
absl::Status CheckKeyRequest(const KeyRequest& key);

}  // namespace wavetank::agent
