// The identities that a trusted gateway in front of istiod forwards of its client's certificate (istiod:
// security/pkg/server/ca/authenticate/xfcc_authenticator.go).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/security/authenticator.h"

namespace wavetank::security {

// One element of an x-forwarded-client-cert header, as far as it names somebody.
struct ForwardedCertificate {
  std::string uri, common_name;
  std::vector<std::string> dns_names;
};
// InvalidArgument: it is no such header.
absl::StatusOr<std::vector<ForwardedCertificate>> ParseForwardedClientCert(std::string_view header);

class XfccAuthenticator final : public Authenticator {
 public:
  // TRUSTED_GATEWAY_CIDR: who may forward. The local host always may; what is no range is nobody's.
  explicit XfccAuthenticator(std::vector<std::string> trusted) : trusted_(std::move(trusted)) {}

  std::string_view type() const override { return "XfccAuthenticator"; }
  void Authenticate(const PeerCredentials& peer, AuthenticateCallback done) override;

 private:
  bool Trusts(std::string_view address) const;
  const std::vector<std::string> trusted_;
};

}  // namespace wavetank::security
