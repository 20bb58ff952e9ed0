// The certificates of a case: derived, hence the same on every run, and valid in virtual as in real time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fakes/envoy/tls/secret.h"
#include "nlohmann/json_fwd.hpp"

namespace wavetank::envoydiff {

struct CaseSecret {
  envoysim::Secret secret;  // what the simulated Envoy is given
  std::string key_pem;      // of its certificate
};
using Secrets = std::map<std::string, CaseSecret>;

// {"san": URI or DNS name, or a list, "ca": NAME, "validity": "valid" | "expired" | "future"}: a workload's
// certificate, below an intermediate of the CA of that name (default "mesh"); {"roots": [NAME, ...]}: the roots of CAs.
absl::StatusOr<CaseSecret> MakeSecret(const std::string& name, const nlohmann::json& json);

// envoy.extensions.transport_sockets.tls.v3.Secret, serialised.
std::string SecretBytes(const std::string& name, const CaseSecret& secret);

// Any name that a mesh's resources may ask for gets something that loads: roots where the name says so ("ROOTCA",
// "file-root:...", "...-cacert"), else a certificate.
CaseSecret SecretForAnyName(const std::string& name);

}  // namespace wavetank::envoydiff
