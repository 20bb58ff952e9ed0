// Chain verification by OpenSSL at an instant of virtual time.
#include "core/x509/calendar.h"
#include "core/x509/openssl.h"
#include "core/x509/revocation.h"
#include "core/x509/x509.h"

namespace wavetank::x509 {

// OpenSSL's objects behind the public classes.
struct VerifierAccess {
  static std::shared_ptr<X509> Parsed(const Certificate& certificate) {
    if (certificate.openssl_ != nullptr) return std::static_pointer_cast<X509>(certificate.openssl_);
    const unsigned char* p = ossl::Bytes(certificate.der());
    return std::shared_ptr<X509>(d2i_X509(nullptr, &p, static_cast<long>(certificate.der().size())), X509_free);
  }

  static X509_STORE* Store(const TrustBundle& bundle) {
    if (bundle.store_ == nullptr) {
      X509_STORE* store = X509_STORE_new();
      bundle.store_ = std::shared_ptr<X509_STORE>(store, X509_STORE_free);
      X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
      for (const CertificateRef& root : bundle.roots_) X509_STORE_add_cert(store, Parsed(*root).get());
    }
    return static_cast<X509_STORE*>(bundle.store_.get());
  }

  // The stack is the caller's, what is in it is not.
  static STACK_OF(X509_CRL) * Lists(const RevocationList& revoked) {
    STACK_OF(X509_CRL)* out = sk_X509_CRL_new_null();
    for (const auto& list : revoked.lists_) sk_X509_CRL_push(out, static_cast<X509_CRL*>(list.get()));
    return out;
  }
};

namespace {

struct Meaning {
  int code;
  const char* name;
  VerifyError error;
  // BoringSSL: SSL_alert_from_verify_result.
  const char* alert;
};

constexpr Meaning kMeanings[] = {
#define WAVETANK_X509_ERROR(code, error, alert) \
  { code, #code, VerifyError::error, alert }
    WAVETANK_X509_ERROR(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, kUnknownCa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, kUnknownCa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, kUnknownCa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, kUnknownCa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, kUnknownCa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_CERT_UNTRUSTED, kUnknownCa, "bad_certificate"),
    WAVETANK_X509_ERROR(X509_V_ERR_CERT_SIGNATURE_FAILURE, kBadSignature, "decrypt_error"),
    WAVETANK_X509_ERROR(X509_V_ERR_CERT_NOT_YET_VALID, kNotYetValid, "certificate_expired"),
    WAVETANK_X509_ERROR(X509_V_ERR_CERT_HAS_EXPIRED, kExpired, "certificate_expired"),
    WAVETANK_X509_ERROR(X509_V_ERR_INVALID_CA, kNotACa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_PATH_LENGTH_EXCEEDED, kNotACa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_CERT_CHAIN_TOO_LONG, kNotACa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_KEYUSAGE_NO_CERTSIGN, kNotACa, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_INVALID_PURPOSE, kWrongPurpose, "unsupported_certificate"),
    WAVETANK_X509_ERROR(X509_V_ERR_CERT_REVOKED, kOther, "certificate_revoked"),
    WAVETANK_X509_ERROR(X509_V_ERR_UNABLE_TO_GET_CRL, kOther, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, kOther, "unknown_ca"),
    WAVETANK_X509_ERROR(X509_V_ERR_CRL_SIGNATURE_FAILURE, kOther, "decrypt_error"),
    WAVETANK_X509_ERROR(X509_V_ERR_CRL_HAS_EXPIRED, kOther, "certificate_expired"),
    WAVETANK_X509_ERROR(X509_V_ERR_CRL_NOT_YET_VALID, kOther, "certificate_expired"),
#undef WAVETANK_X509_ERROR
};

// Between two neighbouring ends of validity periods no answer can change.
void SetWindow(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now, VerifyResult& result) {
  result.holds_from = Time::min();
  result.holds_until = Time::max();
  const auto bound = [&](Time t) {
    if (t <= now && t > result.holds_from) result.holds_from = t;
    if (t > now && t < result.holds_until) result.holds_until = t;
  };
  for (const auto& certificates : {chain, absl::MakeConstSpan(bundle.roots())}) {
    for (const CertificateRef& certificate : certificates) {
      bound(certificate->not_before());
      bound(certificate->not_after());
    }
  }
}

VerifyResult Refused(VerifyError error, std::string name, std::string reason, std::string alert) {
  VerifyResult result;
  result.error = error;
  result.openssl_error = std::move(name);
  result.reason = std::move(reason);
  result.tls_error = "CERTIFICATE_VERIFY_FAILED";
  result.tls_alert = std::move(alert);
  return result;
}

void SetRules(const VerifyRules& rules, X509_STORE_CTX* ctx, STACK_OF(X509_CRL) * lists) {
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(ctx);
  if (lists != nullptr) {
    X509_STORE_CTX_set0_crls(ctx, lists);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_CRL_CHECK | (rules.leaf_only ? 0 : X509_V_FLAG_CRL_CHECK_ALL));
  }
  if (rules.ignores_dates) X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME);
  if (rules.max_depth.has_value()) X509_VERIFY_PARAM_set_depth(param, *rules.max_depth);
}

VerifyResult Check(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now, Purpose purpose,
                   const VerifyRules& rules) {
  if (chain.empty()) {
    VerifyResult result = Refused(VerifyError::kEmpty, "X509_V_ERR_UNSPECIFIED", "peer did not return a certificate",
                                  "certificate_required");
    result.tls_error = "PEER_DID_NOT_RETURN_A_CERTIFICATE";
    return result;
  }
  std::vector<std::shared_ptr<X509>> parsed;
  STACK_OF(X509)* untrusted = sk_X509_new_null();
  for (const CertificateRef& certificate : chain) {
    parsed.push_back(VerifierAccess::Parsed(*certificate));
    if (parsed.size() > 1) sk_X509_push(untrusted, parsed.back().get());
  }
  ossl::StoreContext ctx(X509_STORE_CTX_new());
  X509_STORE_CTX_init(ctx.get(), VerifierAccess::Store(bundle), parsed.front().get(), untrusted);
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(ctx.get());
  // A time that is set counts whatever the flags say.
  if (!rules.ignores_dates) X509_VERIFY_PARAM_set_time(param, static_cast<time_t>(UnixSeconds(now)));
  if (purpose == Purpose::kServerAuth) X509_STORE_CTX_set_purpose(ctx.get(), X509_PURPOSE_SSL_SERVER);
  if (purpose == Purpose::kClientAuth) X509_STORE_CTX_set_purpose(ctx.get(), X509_PURPOSE_SSL_CLIENT);
  STACK_OF(X509_CRL)* lists = rules.revoked == nullptr ? nullptr : VerifierAccess::Lists(*rules.revoked);
  SetRules(rules, ctx.get(), lists);
  const int verified = X509_verify_cert(ctx.get());
  const int code = verified == 1 ? X509_V_OK : X509_STORE_CTX_get_error(ctx.get());
  const int depth = X509_STORE_CTX_get_error_depth(ctx.get());
  ctx.reset();
  sk_X509_free(untrusted);
  sk_X509_CRL_free(lists);
  ERR_clear_error();
  if (verified == 1) return {};
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) {
      VerifyResult result = Refused(meaning.error, meaning.name, X509_verify_cert_error_string(code), meaning.alert);
      result.depth = depth;
      return result;
    }
  }
  VerifyResult result = Refused(VerifyError::kOther, "X509_V_ERR_" + std::to_string(code),
                                X509_verify_cert_error_string(code), "certificate_unknown");
  result.depth = depth;
  return result;
}

}  // namespace

TrustBundle::TrustBundle(std::vector<CertificateRef> roots) {
  for (CertificateRef& root : roots) {
    bool known = false;
    for (const CertificateRef& have : roots_) known = known || have->der() == root->der();
    if (!known) roots_.push_back(std::move(root));
  }
  fingerprint_ = FingerprintOf(absl::MakeConstSpan(roots_));
}
TrustBundle::~TrustBundle() = default;

TrustBundleRef TrustBundle::Of(std::vector<CertificateRef> roots) {
  return TrustBundleRef(new TrustBundle(std::move(roots)));
}

absl::StatusOr<TrustBundleRef> TrustBundle::FromPem(std::string_view pem, std::string_view what) {
  absl::StatusOr<std::vector<CertificateRef>> roots = ParseCertificates(pem, what);
  if (!roots.ok()) return roots.status();
  return Of(*std::move(roots));
}

VerifyResult Verify(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now, Purpose purpose) {
  VerifyResult result = Check(chain, bundle, now, purpose, {});
  SetWindow(chain, bundle, now, result);
  return result;
}

VerifyResult Verify(absl::Span<const CertificateRef> chain, const TrustBundle& bundle, Time now, Purpose purpose,
                    const VerifyRules& rules) {
  return Check(chain, bundle, now, purpose, rules);
}

const VerifyResult& VerificationCache::Verify(absl::Span<const CertificateRef> chain, const TrustBundle& bundle,
                                              Time now, Purpose purpose) {
  const Key key(FingerprintOf(chain), bundle.fingerprint(), purpose);
  if (const auto it = results_.find(key); it != results_.end()) {
    if (it->second.holds_from <= now && now < it->second.holds_until) return it->second;
  } else if (results_.size() >= capacity_) {
    results_.clear();
  }
  ++misses_;
  return results_[key] = x509::Verify(chain, bundle, now, purpose);
}

}  // namespace wavetank::x509
