// The token reviews that a server of a pod asks of its own cluster's API server.
#pragma once

#include <functional>
#include <string>
#include <utility>
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
  // All outlive it. `permit`: whether the server may ask for one.
  TokenReviews(Host& host, const fakekube::ApiServer& api, const kube::TokenAuthority& tokens,
               std::function<absl::Status()> permit)
      : host_(host), api_(api), tokens_(tokens), permit_(std::move(permit)) {}
  void Review(const std::string& token, const std::vector<std::string>& audiences,
              absl::AnyInvocable<void(absl::StatusOr<kube::TokenClaims>)> done) override;

 private:
  Host& host_;
  const fakekube::ApiServer& api_;
  const kube::TokenAuthority& tokens_;
  const std::function<absl::Status()> permit_;
};

}  // namespace wavetank::sim
