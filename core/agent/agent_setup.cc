#include "core/agent/agent_setup.h"

#include "fmt/format.h"

namespace wavetank::agent {
namespace {

bool IsThere(Files& files, const std::string& path) { return !path.empty() && files.Read(path).ok(); }

}  // namespace

// FindRootCAForXDS and FindRootCAForCA.
absl::StatusOr<std::string> FindRoots(const pilot::AgentVariables& variables, Files& files, RootsOf of, bool mounted) {
  const bool xds = of == RootsOf::kXds;
  const char* const what = xds ? "XDS" : "CA";
  const std::string asked = variables.Text(xds ? "XDS_ROOT_CA" : "CA_ROOT_CA");
  const std::string provider = variables.Text("PILOT_CERT_PROVIDER", "istiod");
  const std::string provisioned = variables.Text("PROV_CERT");
  constexpr char kWellKnown[] = "./etc/certs/root-cert.pem";
  std::string path;
  if (asked == "SYSTEM") return std::string();
  if (!asked.empty()) {
    path = asked;
  } else if (xds && IsThere(files, kWellKnown)) {
    return std::string(kWellKnown);
  } else if (provider == "kubernetes") {
    path = "./var/run/secrets/istio/kubernetes/ca.crt";
    if (!IsThere(files, path)) path = "./var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  } else if (!xds && provider == "custom") {
    path = kWellKnown;
  } else if (!provisioned.empty()) {
    return provisioned + "/root-cert.pem";
  } else if (xds && mounted) {
    path = variables.Text("ISTIO_META_TLS_CLIENT_ROOT_CERT");
  } else if (provider == "none") {
    return absl::InvalidArgumentError(
        fmt::format("root CA file for {} required but configured provider as none", what));
  } else {
    path = "var/run/secrets/istio/root-cert.pem";
  }
  if (!IsThere(files, path)) {
    return absl::InvalidArgumentError(fmt::format("root CA file for {} does not exist {}", what, path));
  }
  return path;
}

absl::Status CheckIdentitySources(const pilot::AgentVariables& variables, bool mounted) {
  if (!mounted || variables.Text("PROV_CERT").empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("invalid options: PROV_CERT and FILE_MOUNTED_CERTS are mutually exclusive");
}

std::string_view TokenPath(const pilot::AgentVariables& variables) {
  const std::string policy = variables.Text("JWT_POLICY", "third-party-jwt");
  if (policy == "third-party-jwt") return kThirdPartyToken;
  return policy == "first-party-jwt" ? kFirstPartyToken : std::string_view();
}

KeyRequest ReadKeyRequest(const pilot::AgentVariables& variables) {
  return {variables.Text("ECC_SIGNATURE_ALGORITHM"), variables.Text("ECC_CURVE", "P256"),
          variables.Integer("WORKLOAD_RSA_KEY_SIZE", 2048)};
}

absl::Status CheckKeyRequest(const KeyRequest& key) {
  if (!key.ecc_algorithm.empty()) {
    if (key.ecc_algorithm == "ECDSA") return absl::OkStatus();
    return absl::InvalidArgumentError("csr cert generation fails due to unsupported EC signature algorithm");
  }
  constexpr int64_t kLeastBits = 2048;
  if (key.rsa_bits >= kLeastBits) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "requested key size does not meet the minimum requied size of {} (requested: {})", kLeastBits, key.rsa_bits));
}

}  // namespace wavetank::agent
