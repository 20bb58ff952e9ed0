#include "core/config/mesh/ca_certificates.h"

#include <utility>

#include "core/base/json_access.h"
#include "core/kube/yaml.h"

namespace wavetank::config {

CaCertificateSources ReadCaCertificateSources(std::string_view mesh_yaml) {
  CaCertificateSources out;
  const absl::StatusOr<nlohmann::json> mesh = kube::ParseYaml(mesh_yaml, "mesh config");
  if (!mesh.ok()) return out;
  for (const nlohmann::json& certificate : Items(At(*mesh, "caCertificates"))) {
    const std::string pem = Text(certificate, "pem"), url = Text(certificate, "spiffeBundleUrl");
    if (pem.empty() && !url.empty()) out.spiffe_bundle_urls.push_back(url);
    SignerRoots roots{{}, pem};
    for (const nlohmann::json& signer : Items(At(certificate, "certSigners"))) roots.signers.push_back(TextOf(signer));
    if (!pem.empty() && !roots.signers.empty()) out.signer_roots.push_back(std::move(roots));
  }
  return out;
}

}  // namespace wavetank::config
