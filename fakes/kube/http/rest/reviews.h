// The API's answers about rights and tokens: access reviews, rules reviews, token reviews, tokens; and in whose name
// somebody may ask (kubectl --as, --as-group, --as-uid).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/kube/credentials/service_account_token.h"
#include "fakes/kube/store/api_server.h"
#include "nlohmann/json.hpp"

namespace wavetank::fakekube::http {

struct Caller;
struct Refusal;
struct Request;

// May `caller` do what `attributes` (resourceAttributes or nonResourceAttributes of a review) says?
bool MayDo(const ApiServer& server, const Caller& caller, const nlohmann::json& spec);

// SelfSubjectRulesReview's status: what `caller` may do in namespace `ns`.
nlohmann::json RulesOf(const ApiServer& server, const Caller& caller, const std::string& ns);

// TokenReview's status. Never shows the token.
nlohmann::json ReviewToken(ApiServer& server, const kube::TokenAuthority* tokens, const nlohmann::json& spec);

// The user, uid, groups and pod that a ServiceAccount's token stands for.
Caller CallerOf(const ApiServer& server, const kube::TokenClaims& claims);

// The same as the UserInfo of reviews.
nlohmann::json UserInfo(const Caller& caller);

// NotFound: the pod that the token is bound to has gone.
absl::Status CheckBinding(const ApiServer& server, const kube::TokenClaims& claims);

// Whom `requestor` speaks for, if `request` names somebody: each user, group, uid and extra value is something that it
// must be allowed to impersonate. nullopt: it speaks for itself.
std::optional<std::variant<Caller, Refusal>> Impersonate(const ApiServer& server, const Caller& requestor,
                                                         const Request& request);

}  // namespace wavetank::fakekube::http
