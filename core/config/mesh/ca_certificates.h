// What meshConfig.caCertificates says beside the roots themselves (istio.io/api: MeshConfig.CertificateData): where
// further roots are to be fetched, and for which signers of the Kubernetes API a root is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::config {

struct SignerRoots {
  std::vector<std::string> signers;  // whole names: "clusterissuers.cert-manager.io/istio-system"
  std::string pem;
};

struct CaCertificateSources {
  std::vector<std::string> spiffe_bundle_urls;
  std::vector<SignerRoots> signer_roots;
};

// Of a mesh config in YAML; what is of another shape is nothing.
CaCertificateSources ReadCaCertificateSources(std::string_view mesh_yaml);

}  // namespace wavetank::config
