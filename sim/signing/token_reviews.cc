#include "sim/signing/token_reviews.h"

#include <utility>

#include "core/base/status.h"
#include "fakes/kube/client/client.h"
#include "fmt/format.h"

namespace wavetank::sim {

absl::StatusOr<kube::TokenClaims> ReviewToken(const fakekube::ApiServer& api, const kube::TokenAuthority& tokens,
                                              const fakekube::CallFate& fate, const std::string& token,
                                              const std::vector<std::string>& audiences, Time now) {
  if (absl::IsUnauthenticated(fate.refusal)) return fate.refusal;
  absl::StatusOr<kube::TokenClaims> claims = tokens.Verify(token, audiences, now + api.faults().clock_skew);
  if (!claims.ok() || claims->pod_name.empty()) return claims;
  const kube::ObjectRef pod = api.Get("Pod", {claims->ns, claims->pod_name});
  if (pod == nullptr || pod->meta.uid != claims->pod_uid)
    return absl::UnauthenticatedError("the pod that the token was issued for is gone");
  return claims;
}

void TokenReviews::Review(const std::string& token, const std::vector<std::string>& audiences,
                          absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) {
  const fakekube::CallFate fate = api_.FateOf(fakekube::ApiCall::kTokenReview);
  if (!fate.answered) {
    constexpr Duration kRequestTimeout = 10s;
    host_.RunAfter(kRequestTimeout,
                   [done = std::move(done)]() mutable { done(absl::UnavailableError("token review: i/o timeout")); });
    return;
  }
  absl::StatusOr<kube::TokenClaims> claims = ReviewToken(api_, tokens_, fate, token, audiences, host_.Now());
  // istio: security/pkg/k8s/tokenreview/k8sauthn.go, ValidateK8sJwt().
  if (absl::Status may = permit_(); !may.ok())
    claims = absl::Status(may.code(), fmt::format("could not get a token review: {}", Message(may)));
  host_.RunAfter(fakekube::ClientLatency().request + fate.delay + fate.retry_after,
                 [done = std::move(done), claims = std::move(claims)]() mutable { done(std::move(claims)); });
}

}  // namespace wavetank::sim
