#include "core/istiod/files/serving_files.h"

#include <utility>
#include <vector>

#include "fmt/format.h"

namespace wavetank::pilot {
namespace {

// istiod: pkg/config/constants, DefaultPilotTLS*.
const ServingPaths kWellKnown{"./var/run/secrets/istiod/tls/tls.crt", "./var/run/secrets/istiod/tls/tls.key",
                              "./var/run/secrets/istiod/ca/root-cert.pem"};
constexpr const char* kOtherRoots = "./var/run/secrets/istiod/tls/ca.crt";

absl::StatusOr<std::string> ReadFile(const LocalFiles& files, const std::string& path) {
  std::optional<std::string> text = files.Read(path);
  if (!text)
    return absl::NotFoundError(fmt::format("set keyCertBundle failed: open {}: no such file or directory", path));
  return *std::move(text);
}

}  // namespace

std::optional<ServingPaths> ServingFiles::Find(const LocalFiles& files, const ServingPaths& arguments) {
  if (!arguments.certificate.empty() && !arguments.key.empty() && !arguments.roots.empty()) return arguments;
  if (!files.Read(kWellKnown.certificate) || !files.Read(kWellKnown.key)) return std::nullopt;
  if (files.Read(kWellKnown.roots)) return kWellKnown;
  ServingPaths other = kWellKnown;
  other.roots = kOtherRoots;
  return files.Read(other.roots) ? std::optional(other) : std::nullopt;
}

absl::Status ServingFiles::Start(LocalFiles& files, std::function<void(absl::Status)> changed) {
  if (absl::Status status = Load(files); !status.ok()) return status;
  for (const std::string& path : {paths_.certificate, paths_.key})
    files.Watch(path, [this, &files, changed](const std::string&) { changed(Load(files)); });
  return absl::OkStatus();
}

absl::Status ServingFiles::Load(const LocalFiles& files) {
  const absl::StatusOr<std::string> certificate = ReadFile(files, paths_.certificate);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = ReadFile(files, paths_.key);
  if (!key.ok()) return key.status();
  absl::StatusOr<std::string> roots = ReadFile(files, paths_.roots);
  if (!roots.ok()) return roots.status();
  absl::StatusOr<std::vector<x509::CertificateRef>> chain = x509::ParseCertificates(*certificate, paths_.certificate);
  if (!chain.ok()) return chain.status();
  absl::StatusOr<x509::KeyPairRef> pair = x509::KeyPair::FromPem(*key, paths_.key);
  if (!pair.ok()) return pair.status();
  // Go: crypto/tls, X509KeyPair. For a while after one of the two has changed they do not fit.
  if (!chain->front()->Matches(**pair)) {
    return absl::InvalidArgumentError(
        "istiod loading x509 key pairs failed: tls: private key does not match public key");
  }
  certificate_ = {*std::move(pair), *std::move(chain)};
  if (!roots->empty()) roots_ = *std::move(roots);
  return absl::OkStatus();
}

}  // namespace wavetank::pilot
