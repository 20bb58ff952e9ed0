// The token reviews that a server of a pod asks of its own cluster's API server.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/host.h"
#include "core/kube/credentials/service_account_token.h"
#include "fakes/kube/store/api_server.h"

namespace wavetank::sim {

// What an API server answers to a review that reaches it, whoever may ask for one. `fate`: what becomes of the call.
absl::StatusOr<kube::TokenClaims> ReviewToken(const fakekube::ApiServer& api, const kube::TokenAuthority& tokens,
                                              const fakekube::CallFate& fate, const std::string& token,
                                              const std::vector<std::string>& audiences, Time now);

class TokenReviews final : public kube::TokenReviewer {
 public:
  // All outlive it.
  TokenReviews(Host& host, const fakekube::ApiServer& api, const kube::TokenAuthority& tokens)
      : host_(host), api_(api), tokens_(tokens) {}
  void Review(const std::string& token, const std::vector<std::string>& audiences,
              absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override;

 private:
  Host& host_;
  const fakekube::ApiServer& api_;
  const kube::TokenAuthority& tokens_;
};

}  // namespace wavetank::sim
