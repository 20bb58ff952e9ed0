// The way from an agent to istiod's CreateCertificate, and certificates that many agents are sent alike.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"
#include "core/x509/x509.h"

namespace wavetank::security {

// Connection, TLS, token and line are the implementor's.
class CaClient {
 public:
  virtual ~CaClient() = default;
  // Calls back later with IstioCertificateResponse.cert_chain. Unavailable: no server answers.
  virtual void CreateCertificate(std::string csr_pem, Duration ttl,
                                 absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> done) = 0;
};

// Remembers parsed certificates by their text, for many agents that get the same chain. Bounded.
class CertificateParser {
 public:
  // InvalidArgument as x509::ParseCertificates() and TrustBundle::FromPem(); `what` names the text.
  absl::StatusOr<std::vector<x509::CertificateRef>> Parse(const std::string& pem, std::string_view what);
  absl::StatusOr<x509::TrustBundleRef> ParseBundle(const std::string& pem, std::string_view what);

 private:
  std::map<std::string, std::vector<x509::CertificateRef>> chains_;
  std::map<std::string, x509::TrustBundleRef> bundles_;
};

}  // namespace wavetank::security
