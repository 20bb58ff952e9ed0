#include "sim/agent/agent_start.h"

#include <utility>

#include "core/agent/agent_setup.h"
#include "core/base/status.h"
#include "core/x509/x509.h"
#include "fmt/format.h"
#include "sim/apps/app_tls.h"

namespace wavetank::sim {
namespace {

// The pod's files, and what pods have that the world mounts nowhere.
class FilesAtStart final : public agent::Files {
 public:
  FilesAtStart(PodFiles& pod, const AgentStart::Pem& mesh_roots, const std::string& api_server_roots)
      : pod_(pod), mesh_roots_(mesh_roots), api_server_roots_(api_server_roots) {}

  absl::StatusOr<std::string> Read(std::string_view path) override {
    absl::StatusOr<std::string> mounted = pod_.Read(path);
    if (mounted.ok()) return mounted;
    std::string_view plain = path;
    if (plain.starts_with("./")) plain.remove_prefix(2);
    if (plain.starts_with('/')) plain.remove_prefix(1);
    if (plain == "var/run/secrets/istio/root-cert.pem") return mesh_roots_();
    const bool api_server = plain == "var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    return api_server && !api_server_roots_.empty() ? absl::StatusOr<std::string>(api_server_roots_) : mounted;
  }
  std::vector<std::string> List(std::string_view folder) override { return pod_.List(folder); }
  absl::Status Write(std::string_view path, std::string_view bytes) override { return pod_.Write(path, bytes); }

 private:
  PodFiles& pod_;
  const AgentStart::Pem& mesh_roots_;
  const std::string& api_server_roots_;
};

// What a machine trusts: no authority of a mesh is among them, but that of servers outside.
const std::string& SystemRoots() {
  static const auto* const pem = new std::string(PublicAuthority().root->ToPem());
  return *pem;
}

}  // namespace

absl::StatusOr<std::string> AgentStart::Read(const std::string& path) const {
  return FilesAtStart(*files_, mesh_roots_, api_server_roots_).Read(path);
}

absl::StatusOr<std::string> AgentStart::Roots(const std::string& path) const {
  return path.empty() ? SystemRoots() : Read(path);
}

// istiod: pkg/istio-agent/agent.go, Run().
absl::Status AgentStart::Look(const pilot::ProxyBootstrap& bootstrap, const pilot::ProxyEnvironment& environment) {
  const pilot::AgentVariables variables(environment, nullptr);
  const bool mounted = bootstrap.file_mounted_certs;
  if (absl::Status sources = agent::CheckIdentitySources(variables, mounted); !sources.ok()) return sources;
  provisioned_ = variables.Text("PROV_CERT");
  const std::string_view token = agent::TokenPath(variables);
  token_ = token.empty() ? Token::kNone : token == agent::kFirstPartyToken ? Token::kOfTheAccount : Token::kProjected;
  key_ = agent::CheckKeyRequest(agent::ReadKeyRequest(variables));
  FilesAtStart files(*files_, mesh_roots_, api_server_roots_);
  // Each is read once more when it is used: a path that is not looked at may lead nowhere, too.
  // Google's authorities, which no world has, are believed by the system's roots (agent.go, newSecretManager).
  const bool google = variables.Text("CA_PROVIDER", "Citadel").starts_with("Google");
  const auto find = [&](agent::RootsOf of, std::string* path) -> absl::Status {
    absl::StatusOr<std::string> found = agent::FindRoots(variables, files, of, mounted);
    if (!found.ok()) return found.status();
    *path = *std::move(found);
    return path->empty() ? absl::OkStatus() : files.Read(*path).status();
  };
  if (!google && !mounted && !bootstrap.ca_address.ends_with(":15010")) {
    if (absl::Status roots = find(agent::RootsOf::kCa, &ca_roots_); !roots.ok()) {
      return absl::InvalidArgumentError(fmt::format(
          "failed to start SDS server: failed to start workload secret manager failed to find root CA cert for CA: {}",
          Message(roots)));
    }
  }
  if (!bootstrap.xds_plaintext) {
    if (absl::Status roots = find(agent::RootsOf::kXds, &xds_roots_); !roots.ok()) {
      return absl::InvalidArgumentError(fmt::format(
          "failed to start xds proxy: failed to get TLS options to talk to upstream: failed to find root CA cert for "
          "XDS: {}",
          Message(roots)));
    }
  }
  if (mounted) ca_roots_ = xds_roots_;  // no CA is asked
  return absl::OkStatus();
}

// istiod: pkg/istio-agent/agent.go, getKeyCertInner; pilot/pkg/grpc/tls.go, getTLSDialOption: a chain that cannot be
// read or has expired leaves the token alone.
std::vector<x509::CertificateRef> AgentStart::ClientCertificate(Time now, std::string* why) const {
  if (provisioned_.empty()) return {};
  const absl::StatusOr<std::string> pem = Read(provisioned_ + "/cert-chain.pem");
  absl::StatusOr<std::vector<x509::CertificateRef>> chain =
      pem.ok() ? x509::ParseCertificates(*pem, "cert-chain.pem") : pem.status();
  if (!chain.ok()) {
    *why = fmt::format("cannot parse the cert chain, using token instead: {}", Message(chain.status()));
    return {};
  }
  if (chain->front()->not_after() < now) {
    *why = "cert expired, using token instead";
    return {};
  }
  return *std::move(chain);
}

// The same: a key that does not belong to the chain ends the handshake.
absl::Status AgentStart::ClientKey(Time now) const {
  std::string why;
  const std::vector<x509::CertificateRef> chain = ClientCertificate(now, &why);
  if (chain.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> pem = Read(provisioned_ + "/key.pem");
  const absl::StatusOr<x509::KeyPairRef> key = pem.ok() ? x509::KeyPair::FromPem(*pem, "key.pem") : pem.status();
  if (key.ok() && (*key)->public_key() == chain.front()->public_key()) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("connection error: desc = \"transport: authentication handshake failed: {}\"",
                  key.ok() ? "tls: private key does not match public key" : std::string(Message(key.status()))));
}

}  // namespace wavetank::sim
