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
  std::string crl_pem;      // beside its roots
};
using Secrets = std::map<std::string, CaseSecret>;

// {"san": URI or DNS name, or a list, "ca": NAME, "validity": "valid" | "expired" | "future"}: a workload's
// certificate, below an intermediate of the CA of that name (default "mesh"); {"roots": [NAME, ...]}: the roots of CAs,
// and with "crl": "{crl ...}" as below a list of what is revoked.
// InvalidArgument: one of them is none of these.
absl::StatusOr<Secrets> MakeSecrets(const nlohmann::json& json);

// In every text of `resources`, in place of what stands there: "{roots SECRET}", "{certificate_hash SECRET}" and
// "{spki_hash SECRET}", as validation contexts hold and pin them; "{crl CA WORD...}", lists of the CA's intermediate
// and root, where a word is a secret whose certificate is revoked, "intermediate", "leaf-only" (no list of the root) or
// "expired" (the lists are). InvalidArgument: there is no such secret.
absl::Status ExpandSecrets(const Secrets& secrets, nlohmann::json* resources);

// envoy.extensions.transport_sockets.tls.v3.Secret, serialised.
std::string SecretBytes(const std::string& name, const CaseSecret& secret);

// Any name that a mesh's resources may ask for gets something that loads: roots where the name says so ("ROOTCA",
// "file-root:...", "...-cacert"), else a certificate.
CaseSecret SecretForAnyName(const std::string& name);

}  // namespace wavetank::envoydiff
