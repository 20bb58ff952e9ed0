// Lists of revoked certificates (CRLs), and verification by rules that few ask for: them, dates that do not count, how
// long a chain may be. What comes from outside is hostile until parsed, as in x509.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/x509/x509.h"

namespace wavetank::x509 {

class RevocationList;
using RevocationListRef = std::shared_ptr<const RevocationList>;

// The lists of one PEM text, each of its own issuer.
class RevocationList {
 public:
  // InvalidArgument if one cannot be read; a text may hold none, and then no certificate has a list. `what` names the
  // input in the message.
  static absl::StatusOr<RevocationListRef> FromPem(std::string_view pem, std::string_view what);
  ~RevocationList();
  RevocationList(const RevocationList&) = delete;
  RevocationList& operator=(const RevocationList&) = delete;

 private:
  friend struct VerifierAccess;
  RevocationList();
  std::vector<std::shared_ptr<void>> lists_;  // X509_CRL
};

// `authority`, one that was made here, signed once more with the right to sign such lists, which istiod's and those of
// Istio's guide have not; `issuer_key`: the key by which it was signed.
absl::StatusOr<CertificateRef> WithCrlSign(const Certificate& authority, const KeyPair& issuer_key);

// A list signed with the issuer's key, PEM. It says of itself that it holds from `since` until `until`.
std::string MakeRevocationList(const Certificate& issuer, const KeyPair& key,
                               const std::vector<CertificateRef>& revoked, Time since, Time until);

struct VerifyRules {
  RevocationListRef revoked;     // null: nobody asks
  bool leaf_only = false;        // whether the leaf alone is looked up there; else each certificate of the chain
  bool ignores_dates = false;    // validity periods do not count
  std::optional<int> max_depth;  // of certificates between the leaf and the anchor
  bool plain() const { return revoked == nullptr && !ignores_dates && !max_depth.has_value(); }
};

// As Verify() without rules; the result holds for `now` alone.
VerifyResult Verify(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now, Purpose purpose,
                    const VerifyRules& rules);

}  // namespace wavetank::x509
