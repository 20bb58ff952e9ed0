// Tokens of ServiceAccounts, as an API server issues and reviews them: JWTs bound to a pod, an audience and a time.
//
// Issuing and reviewing share a key that derives from the seed and the cluster's name, so a token of one cluster is no
// token in another. (Real API servers sign with RSA or ECDSA; nothing reads the signature but its own server.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/time.h"

namespace wavetank::kube {

// What a token says of its bearer.
struct TokenClaims {
  std::string ns, service_account;
  std::string pod_name, pod_uid;       // empty: not bound to a pod
  std::vector<std::string> audiences;  // empty: the API server itself
  Time issued{}, expires{};            // expires == issued: never
};

class TokenAuthority {
 public:
  TokenAuthority(uint64_t seed, std::string_view cluster);

  std::string Issue(const TokenClaims& claims) const;
  // What a token of this cluster says, whether or not it still holds. Unauthenticated: it is none.
  absl::StatusOr<TokenClaims> Read(std::string_view token) const;
  // Unauthenticated: no token of this cluster, expired, or for none of `audiences` (empty: the API server's own).
  absl::StatusOr<TokenClaims> Verify(std::string_view token, const std::vector<std::string>& audiences, Time now) const;

 private:
  std::string issuer_, key_;
};

// The TokenReview API of a cluster. The implementation also knows whether the pod still exists, which a token bound
// to it needs.
class TokenReviewer {
 public:
  virtual ~TokenReviewer() = default;
  // Calls back later. Unauthenticated: refused; Unavailable: no server answers.
  virtual void Review(const std::string& token, const std::vector<std::string>& audiences,
                      absl::AnyInvocable<void(absl::StatusOr<TokenClaims>)> done) = 0;
};

}  // namespace wavetank::kube
